"""Which files the jobs of a run use, which part of each, and what that makes of its queue.

A `Use` is what one or several equal copies of a job do with one part of one file. fio gives each copy a queue of its
own, Linerate each volume. So the uses of a file become one volume if they are alike (its queue is as deep as
theirs together, and they take turns), and a volume each if they are different.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from linerate.workload.fio.jobs import FioJob
from linerate.workload.fio.values import Amount
from linerate.workload.fio.verify import VerifyUse
from linerate.workload.problems import Problems


@dataclass(frozen=True, slots=True)
class Use:
    """Equal copies of a job on one part of one file.

    depth: I/Os in flight of all copies on this file. rates: I/Os per second of all copies on this file, of reads and of
    writes; None where they are not limited. length: None is all.
    """

    job: FioJob
    file: str
    start: Amount
    length: Amount | None
    depth: Fraction
    rates: tuple[float | None, float | None]
    copies: int = 1
    queue: int | None = None
    """The copy whose queue it has; None: it shares one with the other copies."""

    @property
    def extent(self) -> tuple[int, int | None] | None:
        """First byte and byte after the last (None: the file's end); None where a percentage says it."""
        if self.start.is_percent or (self.length is not None and self.length.is_percent):
            return None
        return self.start.value, None if self.length is None else self.start.value + self.length.value


@dataclass(frozen=True, slots=True)
class FileShare:
    """The uses of one file that make one volume."""

    file: str
    uses: tuple[Use, ...]
    alone: bool
    """The file has no other volume."""


def files_of(job: FioJob, copy: int) -> tuple[str, ...]:
    """The files of one copy: filename=, or names from filename_format=; a section may be named after a device."""
    files = job.files
    folders = files.directories
    if files.names is not None:
        return tuple(os.path.join(folders[0], name) if folders else name for name in files.names)
    if files.number == 1 and _is_device(job.section):
        return (job.section,)
    folder = folders[copy % len(folders)] if folders else ""
    return tuple(
        os.path.join(
            folder,
            files.name_format.replace("$jobname", job.section)
            .replace("$jobnum", str(copy))
            .replace("$filenum", str(number)),
        )
        for number in range(files.number)
    )


def _is_device(name: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(name).st_mode) and not os.path.isdir(name)
    except (OSError, ValueError):
        return False


def uses_of(job: FioJob, problems: Problems) -> list[Use]:
    """The uses of all copies; copies that go to random places of the same part are one use."""
    uses: dict[tuple[object, ...], Use] = {}
    for copy in range(job.copies):
        files = files_of(job, copy)
        start, length = _part(job, copy, len(files), problems)
        rates = _part_of(job.load.read_rate_iops, len(files)), _part_of(job.load.write_rate_iops, len(files))
        for file in files:
            # Sequential copies each have a place of their own and read the same blocks, as in fio.
            queue = copy if has_own_queue(job) else None
            own = None if job.load.random_percent == 100 and queue is None else copy
            key = (file, start, length, own)
            depth = Fraction(job.load.depth, len(files))
            if key in uses:
                one = uses[key]
                sums = _sum(one.rates[0], rates[0]), _sum(one.rates[1], rates[1])
                uses[key] = replace(one, depth=one.depth + depth, rates=sums, copies=one.copies + 1)
            else:
                uses[key] = Use(job, file, start, length, depth, rates, queue=queue)
    return list(uses.values())


def has_own_queue(job: FioJob) -> bool:
    """Each copy waits for its own flushes, and the others go on."""
    flush = job.load.flush
    return job.copies > 1 and job.load.depth > 1 and flush is not None and flush.blocks


def _part_of(rate_iops: float | None, files: int) -> float | None:
    return None if rate_iops is None else rate_iops / files


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _part(job: FioJob, copy: int, number: int, problems: Problems) -> tuple[Amount, Amount | None]:
    """Where the used part of each file begins, and how long it is."""
    files = job.files
    start, increment, size = files.offset, files.increment, files.size
    if increment.value:
        if start.value and start.is_percent != increment.is_percent:
            what = f"[{job.name}]: offset= and offset_increment= are not both bytes or both percent"
            problems.error(job.place, what, "write both the same way")
        start = Amount(start.value + copy * increment.value, increment.is_percent)
    if start.is_percent and start.value >= 100:
        problems.error(
            job.place, f"[{job.name}]: copy {copy + 1} begins at the end of its file", "fewer numjobs="
        )
        return Amount(0, is_percent=True), None
    length = size
    if size is not None and not size.is_percent:
        each = size.value // number
        room = None if files.file_bytes is None or start.is_percent else files.file_bytes - start.value
        length = Amount(each if room is None else min(each, room))
    elif files.file_bytes is not None and not start.is_percent and size is None:
        length = Amount(files.file_bytes - start.value)
    if length is not None and length.value < 1:
        problems.error(
            job.place, f"[{job.name}]: no byte of its files is left to use", "correct size= and offset="
        )
        length = None
    _check_areas(job, length, problems)
    if start.value and length is not None and start.is_percent != length.is_percent:
        what = f"[{job.name}]: offset= and size= are not both bytes or both percent"
        problems.error(job.place, what, "write both the same way")
    return start, length


def _check_areas(job: FioJob, length: Amount | None, problems: Problems) -> None:
    """fio refuses areas that are longer than the used part. How long that of a device is, only the run knows."""
    areas = job.load.distribution
    if areas is None or areas.unit == "percent" or length is None or length.is_percent:
        return
    total = round(sum(area_bytes for _, area_bytes in areas.parts))
    if total > length.value:
        what = f"[{job.name}]: the areas of zoned_abs: have {total} bytes, "
        what += f"and the used part of a file has {length.value}"
        problems.error(job.place, what, "write shorter areas, or a larger size=")


def shares_of(uses: Sequence[Use], problems: Problems) -> list[FileShare]:
    """The volumes of a run: one for each file, or one for each job where jobs that differ use the same file."""
    by_file: dict[str, list[Use]] = {}
    for use in uses:
        by_file.setdefault(use.file, []).append(use)
    shares: list[FileShare] = []
    for file, those in by_file.items():
        by_job: dict[tuple[int, int | None], list[Use]] = {}
        for use in those:
            by_job.setdefault((id(use.job), use.queue), []).append(use)
        if len(by_job) == 1 or _alike(those):
            shares.append(FileShare(file, tuple(those), alone=True))
            continue
        if any(use.job.load.verify is not VerifyUse.OFF for use in those):
            what = f"[{those[-1].job.name}]: {file} is used by other jobs too, and differently: "
            what += "not supported with verify="
            problems.error(those[-1].job.place, what, "write stonewall, or verify=0")
        shares += [FileShare(file, tuple(own), alone=False) for own in by_job.values()]
    return shares


def _alike(uses: Sequence[Use]) -> bool:
    """Whether taking turns is what the jobs would do: the same load and depth, or all at a rate of their own."""
    first = uses[0].job.load
    if any(use.queue is not None or _opening(use.job) != _opening(uses[0].job) for use in uses):
        return False
    if all(use.job.load.is_rated for use in uses):
        return True
    return all(use.job.load == first and use.depth == uses[0].depth for use in uses)


def _opening(job: FioJob) -> tuple[object, ...]:
    """What a volume has once for all that use it."""
    load = job.load
    return load.direct, load.durable, load.flush, job.delay_s, job.runtime_s, job.time_based
