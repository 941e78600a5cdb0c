"""One run for several hosts: what each of them does, and what all of them do together.

`divide`: every host has all volumes and all streams, under names of its own (`h1/vol1`), and as many I/Os in flight as
the file says. What the file says of the whole run, rates and limits, is divided evenly. `apportion`: every volume has
one host that loads it, and rates and limits go with the volumes.
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

Divided = tuple[Mapping[str, RunSpec], RunSpec]
"""What each host runs, and the whole as a run directory records it."""


def divide(spec: RunSpec, hosts: Sequence[str], urls: Volumes | None = None) -> Divided:
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
    return parts, whole(spec, parts)


def whole(spec: RunSpec, parts: Mapping[str, RunSpec]) -> RunSpec:
    """The volumes of all parts, each stream on those that it has in any part."""
    on: dict[str, list[str]] = {stream.name: [] for stream in spec.streams}
    for part in parts.values():
        for stream in part.streams:
            on[stream.name] += stream.volumes
    return spec.model_copy(
        update={
            "volumes": tuple(volume for part in parts.values() for volume in part.volumes),
            "streams": tuple(
                stream.model_copy(update={"volumes": tuple(on[stream.name])}) for stream in spec.streams
            ),
        }
    )


def loading(divided: Divided) -> dict[str, list[str]]:
    """By volume of the run, the hosts that have it in their parts."""
    hosts: dict[str, list[str]] = {}
    for host, its_part in divided[0].items():
        for volume in its_part.volumes:
            hosts.setdefault(unnamed(volume.name), []).append(host)
    return hosts


def apportion(spec: RunSpec, owners: Mapping[str, str]) -> Divided:
    """Each volume is loaded by its owner (volume -> host). Hosts that own none with a stream on it have no part.

    Rates and limits of a host are as large as its share of the I/Os, by the volumes of each stream. Raises UserError
    for verification of a volume that two hosts load.
    """
    urls = [volume.url for volume in spec.volumes]
    used = {name for stream in spec.streams for name in stream.volumes}
    hosts = list(dict.fromkeys(owners[volume.name] for volume in spec.volumes if volume.name in used))
    if spec.verify == "on" and len(hosts) > 1 and len(set(urls)) < len(urls):
        raise UserError(
            f"{spec.name}: several hosts cannot verify the same volumes", "give each host volumes of its own"
        )
    parts = {host: _owned(spec, host, number, owners) for number, host in enumerate(hosts)}
    return parts, whole(spec, parts)


def _owned(spec: RunSpec, host: str, number: int, owners: Mapping[str, str]) -> RunSpec:
    own = [volume for volume in spec.volumes if owners[volume.name] == host]
    names = {volume.name for volume in own}
    portions = {
        stream.name: (
            [name for name in stream.volumes if name in names],
            len(names.intersection(stream.volumes)) / len(stream.volumes),
        )
        for stream in spec.streams
    }
    return part(spec, host, number, own, portions)


def part(
    spec: RunSpec,
    host: str,
    number: int,
    volumes: Sequence[VolumeSpec],
    portions: Mapping[str, tuple[Sequence[str], float]],
) -> RunSpec:
    """What a host runs that has these volumes of a run, and of each stream the named volumes and this part (0 to 1) of
    its I/Os. `number` makes its sequence of I/Os differ from those of others."""
    weights = _weights(spec)
    share = sum(weights[name] * portion for name, (_, portion) in portions.items())
    streams = [
        stream.model_copy(
            update={
                "volumes": tuple(named(host, name) for name in on),
                "rate_iops": stream.rate_iops * portion if stream.rate_iops else None,
                "share_percent": (
                    min(stream.share_percent * portion / share, 100.0)
                    if stream.share_percent and share
                    else None
                ),
            }
        )
        for stream in spec.streams
        for on, portion in (portions[stream.name],)
        if portion
    ]
    own = tuple(_volume(volume, host, None) for volume in volumes)
    return _shared(spec, number, share).model_copy(update={"volumes": own, "streams": tuple(streams)})


def _weights(spec: RunSpec) -> dict[str, float]:
    """Which part of the run's I/Os each stream is: by rate where all have one, else its share of them, or an equal part
    of what the shares leave."""
    if all(stream.rate_iops for stream in spec.streams):
        total = sum(stream.rate_iops or 0.0 for stream in spec.streams)
        return {stream.name: (stream.rate_iops or 0.0) / total for stream in spec.streams}
    given = {stream.name: stream.share_percent / 100 for stream in spec.streams if stream.share_percent}
    rest = max(1 - sum(given.values()), 0.0) / max(len(spec.streams) - len(given), 1)
    return {stream.name: given.get(stream.name, rest) for stream in spec.streams}


def _part(spec: RunSpec, host: str, number: int, share: float, urls: Volumes | None) -> RunSpec:
    streams = tuple(
        stream.model_copy(
            update={
                "volumes": tuple(named(host, name) for name in stream.volumes),
                "rate_iops": stream.rate_iops * share if stream.rate_iops else None,
                "stop_after_bytes": (
                    max(1, round(stream.stop_after_bytes * share)) if stream.stop_after_bytes else None
                ),
                "stop_after_percent": stream.stop_after_percent * share
                if stream.stop_after_percent
                else None,
            }
        )
        for stream in spec.streams
    )
    volumes = tuple(_volume(volume, host, urls) for volume in spec.volumes)
    return _shared(spec, number, share).model_copy(update={"volumes": volumes, "streams": streams})


def _shared(spec: RunSpec, number: int, share: float) -> RunSpec:
    """A host's share of what holds for the whole run, and its own sequence of I/Os."""
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
        }
    )


def _volume(volume: VolumeSpec, host: str, urls: Volumes | None) -> VolumeSpec:
    url = (urls or {}).get(host, {}).get(volume.name, volume.url)
    return volume.model_copy(update={"name": named(host, volume.name), "url": url})


def named(host: str, volume: str) -> str:
    """The name of a host's volume in the results of all."""
    return f"{host}{SEPARATOR}{volume}"


def unnamed(name: str) -> str:
    """The volume's own name again."""
    return name.partition(SEPARATOR)[2]
