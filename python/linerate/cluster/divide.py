"""One run for several hosts: what each of them does, and what all of them do together.

Every host has all volumes and all streams, under names of its own (`h1/vol1`), and as many I/Os in flight as the file
says. What the file says of the whole run, rates and limits, is divided evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linerate.errors import UserError
from linerate.workload import RunSpec
from linerate.workload.spec import OpenArrival, VolumeSpec

SEPARATOR = "/"
"""Between a host and a volume in names."""

Volumes = Mapping[str, Mapping[str, str]]
"""Host -> volume -> URL, where hosts reach the same volume by different ways."""


def divide(
    spec: RunSpec, hosts: Sequence[str], urls: Volumes | None = None
) -> tuple[dict[str, RunSpec], RunSpec]:
    """What each host runs, and the whole as a run directory records it.

    Each host draws its own sequence of I/Os. Raises UserError for verification: hosts would find each other's blocks.
    """
    if spec.verify == "on" and len(hosts) > 1:
        raise UserError(
            f"{spec.name}: several hosts cannot verify the same volumes",
            "run without --verify, or on one host",
        )
    share = 1 / len(hosts)
    parts = {host: _part(spec, host, number, share, urls) for number, host in enumerate(hosts)}
    whole = spec.model_copy(
        update={
            "volumes": tuple(volume for part in parts.values() for volume in part.volumes),
            "streams": tuple(
                stream.model_copy(
                    update={
                        "volumes": tuple(name for part in parts.values() for name in part.streams[at].volumes)
                    }
                )
                for at, stream in enumerate(spec.streams)
            ),
        }
    )
    return parts, whole


def _part(spec: RunSpec, host: str, number: int, share: float, urls: Volumes | None) -> RunSpec:
    limits = {
        key: max(1, round(value * share))
        for key, value in spec.limits.model_dump().items()
        if value is not None
    }
    arrival = spec.arrival
    if isinstance(arrival, OpenArrival):
        arrival = arrival.model_copy(update={"rate_iops": arrival.rate_iops * share})
    return spec.model_copy(
        update={
            "seed": spec.seed + number,
            "arrival": arrival,
            "limits": spec.limits.model_copy(update=limits),
            "volumes": tuple(_volume(volume, host, urls) for volume in spec.volumes),
            "streams": tuple(
                stream.model_copy(
                    update={
                        "volumes": tuple(named(host, name) for name in stream.volumes),
                        "rate_iops": stream.rate_iops * share if stream.rate_iops else None,
                    }
                )
                for stream in spec.streams
            ),
        }
    )


def _volume(volume: VolumeSpec, host: str, urls: Volumes | None) -> VolumeSpec:
    url = (urls or {}).get(host, {}).get(volume.name, volume.url)
    return volume.model_copy(update={"name": named(host, volume.name), "url": url})


def named(host: str, volume: str) -> str:
    """The name of a host's volume in the results of all."""
    return f"{host}{SEPARATOR}{volume}"
