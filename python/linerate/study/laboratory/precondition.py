"""Preconditions thin volumes: writes them full once, before anything is measured on them.

A block that was never written has no place on a disk. Reading it takes no disk time, and there is nothing to copy.
"""

from __future__ import annotations

from collections.abc import Collection

from linerate.errors import HostError
from linerate.run import VirtualSan
from linerate.study.laboratory.measure import Placed
from linerate.volumes import Consent, clear
from linerate.workload import RunSpec, StreamSpec, VolumeSpec
from linerate.workload.spec import SizeMix

TRANSFER_BYTES = 1 << 20
OUTSTANDING = 8
TIME_S_MAX = 3600.0


def precondition(volumes: Collection[Placed]) -> None:
    """Fills volumes of a virtual SAN. Raises the LinerateError that kept it from being done, or KeyboardInterrupt."""
    spec = _spec(volumes)
    san = VirtualSan()
    load = san.start(clear([spec], san.look, Consent.nothing()).of(spec))
    try:
        while not load.finished:
            load.next_interval(0.2)
    except KeyboardInterrupt:
        load.stop()
        load.finish()
        raise
    ended = load.finish()
    if ended.error is not None:
        raise ended.error
    if any(row.errors for row in ended.total.rows):
        raise HostError("the volumes could not be written full", "see whether their pool has room")


def _spec(volumes: Collection[Placed]) -> RunSpec:
    """Sequential writes over all of them, to their ends."""
    names = tuple(f"precondition{number}" for number in range(len(volumes)))
    return RunSpec(
        name="precondition",
        warmup_s=0.0,
        elapsed_s=TIME_S_MAX,
        interval_s=1.0,
        volumes=tuple(
            VolumeSpec(
                name=name,
                url=place.url,
                netns=place.netns,
                outstanding=OUTSTANDING,
                iscsi=place.iscsi.model_copy(update={"source_address": place.source_address}),
            )
            for name, place in zip(names, volumes, strict=True)
        ),
        streams=(
            StreamSpec(
                name="precondition",
                volumes=names,
                sizes=SizeMix.one(TRANSFER_BYTES),
                read_percent=0.0,
                random_percent=0.0,
                stop_at_end=True,
            ),
        ),
    )
