"""An access specification as the stream of a worker.

Iometer keeps one position for each worker and target, and all lines of a specification move it. So lines become one
stream: its sizes, and those of its writes, are drawn by the shares of the lines. Lines that differ in their random
places or grids are kinds of I/O of the stream, each drawn as a whole. Lines whose pauses differ are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linerate.workload.iometer.configuration import SECTOR_BYTES, AccessLine, AccessSpecification, IcfWorker
from linerate.workload.problems import Problems, shorten
from linerate.workload.spec import MixPart, SizeMix, StreamSpec, ThinkTime

_ONE_BYTE_RATIO = 512.0
"""A write of one repeated byte: as compressible as the data plane makes it."""


def check_lines(specification: AccessSpecification, problems: Problems) -> None:
    """Notes what is wrong or not supported in the lines, for any worker."""
    first = specification.lines[0]
    for line in specification.lines:
        if line.size_bytes % SECTOR_BYTES:
            what = f"{line.text}: size {line.size_bytes}: not a multiple of {SECTOR_BYTES} bytes"
            problems.error(line.place, what, "disks move whole sectors")
        if line.align_bytes % SECTOR_BYTES:
            what = f"{line.text}: align {line.align_bytes}: not a multiple of {SECTOR_BYTES} bytes"
            problems.error(line.place, what, f"write 0 for sectors, or {line.size_bytes}")
        if line.reply_bytes:
            reason = "transactions of a request and an answer are not made"
            _refuse(line, f"reply {line.reply_bytes}", reason, "write 0", problems)
        if len(specification.lines) > 1 and line.burst > 1:
            reason = "lines are drawn for each I/O, not for several in a row"
            _refuse(line, f"burst {line.burst}", reason, "write 1", problems)
        if line.delay_ms != first.delay_ms:
            reason = f"lines of a specification have one delay here, and the first has {first.delay_ms}"
            hint = "write a specification for each kind of I/O"
            _refuse(line, f"delay {line.delay_ms}", reason, hint, problems)
            return


def check_pauses(
    worker: IcfWorker, specification: AccessSpecification, slots: int, problems: Problems
) -> None:
    """Notes a pause that no slot can make alone. slots: I/Os in flight of the worker."""
    line = specification.lines[0]
    if line.delay_ms and slots > 1:
        what = f"delay {line.delay_ms} of {shorten(worker.name)} with {slots} I/Os in flight"
        reason = "a worker pauses as a whole, and here each place of a queue by itself"
        hint = "write 1 outstanding I/O and one target, or a delay of 0"
        _refuse(line, what, reason, hint, problems)


def _refuse(line: AccessLine, what: str, reason: str, accepted: str, problems: Problems) -> None:
    problems.error(line.place, f"{shorten(line.text)}: {what} is not supported: {reason}", accepted)


def read_percent(lines: Iterable[AccessLine]) -> float:
    """Share of the reads in all I/Os."""
    return sum(line.share_percent * line.read_percent for line in lines) / 100


def random_percent(lines: Iterable[AccessLine]) -> float:
    """Share of the random places in all I/Os."""
    return sum(line.share_percent * line.random_percent for line in lines) / 100


def grid_bytes(lines: Sequence[AccessLine]) -> int | None:
    """The grid of places; None: whole I/Os follow each other, so that none is off the grid."""
    follow = not any(one.random_percent for one in lines)
    on_grid = not any(one.size_bytes % other.grid_bytes for one in lines for other in lines)
    return None if follow and on_grid else max(line.grid_bytes for line in lines)


def _kinds(lines: Sequence[AccessLine]) -> tuple[MixPart, ...]:
    """The lines as kinds of I/O; none if they have their random places and their grid together."""
    if len({(line.random_percent, line.grid_bytes) for line in lines}) == 1 or grid_bytes(lines) is None:
        return ()
    return tuple(
        MixPart(
            share_percent=line.share_percent,
            size_bytes=line.size_bytes,
            read_percent=line.read_percent,
            random_percent=line.random_percent,
            align_bytes=line.grid_bytes,
        )
        for line in lines
    )


def stream_of(
    name: str, worker: IcfWorker, specification: AccessSpecification, volumes: Sequence[str]
) -> StreamSpec:
    """What a worker does on its volumes in one run."""
    lines = specification.lines
    reads = _sizes((line.size_bytes, line.share_percent * line.read_percent) for line in lines)
    writes = _sizes((line.size_bytes, line.share_percent * (100 - line.read_percent)) for line in lines)
    sizes = reads or writes or SizeMix.one(lines[0].size_bytes)
    first = lines[0]
    pause = (
        ThinkTime(pause_s=first.delay_ms / 1000, after_ios=max(first.burst, 1)) if first.delay_ms else None
    )
    return StreamSpec(
        name=name,
        volumes=tuple(volumes),
        sizes=sizes,
        mix=_kinds(lines),
        write_sizes=writes if writes is not None and writes != sizes else None,
        read_percent=read_percent(lines),
        random_percent=random_percent(lines),
        align_bytes=grid_bytes(lines),
        think_time=pause,
        compression_ratio=_ONE_BYTE_RATIO if writes is not None and not worker.pattern else None,
    )


def _sizes(weighted: Iterable[tuple[int, int]]) -> SizeMix | None:
    """Sizes by share; None if no line has any."""
    weights: dict[int, int] = {}
    for size_bytes, weight in weighted:
        if weight:
            weights[size_bytes] = weights.get(size_bytes, 0) + weight
    total = sum(weights.values())
    if not total:
        return None
    return SizeMix(parts=tuple((size, 100 * weight / total) for size, weight in weights.items()))
