"""What blocks of files contain: data that are checked, that compress, that repeat; as all runs of a file have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import DedupSpec
from linerate.workload.vdbench.fsd.settings import FileRd, Fwd
from linerate.workload.vdbench.settings import SECTOR_BYTES, General
from linerate.workload.vdbench.streams import dedup_of

_UNIT_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class FileData:
    """The data of all runs of a file."""

    verify_unit_bytes: int | None
    """Data are checked in blocks of so many bytes."""
    compression_ratio: float | None
    dedup: DedupSpec | None


@dataclass(frozen=True, slots=True)
class DataUse:
    """What uses data: FWDs, those of formats too, and RDs. `fsds` is their number, `where` the place of the first."""

    fwds: Sequence[Fwd]
    rds: Sequence[FileRd]
    fsds: int
    where: SourceLocation


def read_data(general: General, use: DataUse, problems: Problems, *, verify: bool) -> FileData:
    """The data of all runs. `verify`: --verify says so, or validate=yes."""
    unit_bytes = _verify_unit(use, problems) if verify else None
    ratio = general.compression_ratio
    dedup = dedup_of(general, use.fsds)
    if verify and ratio is not None:
        problems.notice(use.where, f"compratio={ratio:g}: no effect, data that are checked do not compress")
        ratio = None
    if verify and dedup is not None:
        problems.error(
            use.where, "data with duplicates cannot be checked", "leave out dedupratio=, or do not verify"
        )
    return FileData(unit_bytes, ratio, dedup)


def _verify_unit(use: DataUse, problems: Problems) -> int:
    """The largest block that divides all sizes: a run checks what another one with other sizes wrote."""
    unit_bytes = _UNIT_BYTES_MAX
    sized = [(fwd.place, f"fwd={fwd.name}", [size for size, _ in fwd.sizes]) for fwd in use.fwds]
    for rd in use.rds:
        for loop in rd.loops:
            if loop.keyword == "xfersize":
                sizes = [int(value) for value in loop.values if isinstance(value, float)]
                sized.append((rd.place, f"rd={rd.name}", sizes))
            if loop.keyword == "compratio":
                what = f"rd={rd.name}: forcompratio= with data that are checked: they do not compress"
                problems.error(rd.place, what, "leave it out, or do not verify")
    for place, name, sizes in sized:
        for size in sizes:
            if size % SECTOR_BYTES:
                what = f"{name}: xfersize={size}: data are checked in blocks of {SECTOR_BYTES} bytes"
                problems.error(place, what, f"write a multiple of {SECTOR_BYTES}")
                return SECTOR_BYTES
            unit_bytes = math.gcd(unit_bytes, size)
    for fwd in use.fwds:
        if fwd.shared_files:
            what = f"fwd={fwd.name}: fileio=(random,shared) with data that are checked"
            problems.error(fwd.place, f"{what}: two threads may use one block at once", "write fileio=random")
    return unit_bytes
