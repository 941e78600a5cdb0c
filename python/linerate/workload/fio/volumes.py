"""Shares of files as volumes, and their uses as streams."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from linerate.errors import UserError
from linerate.workload.fio.ends import JobStream, amount_of, mean_bytes, percent_of
from linerate.workload.fio.parts import FileShare, Use, files_of
from linerate.workload.fio.verify import VerifyUse
from linerate.workload.overrides import Overrides
from linerate.workload.problems import Problems
from linerate.workload.spec import ByteSpan, FlushSpec, SharedQueue, StreamSpec, VolumeRegion, VolumeSpec
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of

_OUTSTANDING_MAX = 65_536
_STREAMS_MAX = 4096


@dataclass(slots=True)
class JobVolumes:
    """Makes volumes and streams; files are numbered in the order of the job file: file1, file2, .."""

    overrides: Overrides
    numbers: Mapping[str, int]
    problems: Problems
    _targets: dict[str, Target | None] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def make(self, shares: Sequence[FileShare]) -> tuple[list[VolumeSpec], list[JobStream]] | None:
        """The volumes of one run and the streams with their jobs, or None after a problem was noted."""
        self._names.clear()
        queues = _shared_queues(shares)
        self._note_queues(queues, shares)
        volumes: list[VolumeSpec] = []
        placed: list[tuple[str, Use, VolumeRegion | None]] = []
        for share in shares:
            made = self._volume(share, queues.get((id(share.uses[0].job), share.file)))
            if made is None:
                return None
            volumes.append(made)
            span = _span(share)
            placed += [(made.name, use, _region(use, span, self.problems)) for use in share.uses]
        if len(placed) > _STREAMS_MAX:
            job = placed[0][1].job
            what = f"[{job.name}]: {len(placed):,} sequential copies on all files; at most {_STREAMS_MAX:,}"
            self.problems.error(job.place, what, "write fewer numjobs=")
            return None
        return volumes, _streams(placed)

    def _note_queues(
        self, queues: Mapping[tuple[int, str], tuple[SharedQueue, Fraction]], shares: Sequence[FileShare]
    ) -> None:
        jobs = {id(use.job): use.job for share in shares for use in share.uses}
        for number in dict.fromkeys(job for job, _ in queues):
            job = jobs[number]
            what = f"[{job.name}]: its files have one queue of iodepth= for each copy, as in fio; the file of each I/O "
            self.problems.notice(job.place, f"{what}is drawn, where fio goes round")

    def _volume(self, share: FileShare, queue: tuple[SharedQueue, Fraction] | None) -> VolumeSpec | None:
        job = share.uses[0].job
        name = file_name(self.numbers[share.file])
        target = self._target(share, name)
        outstanding = queue[1] if queue else _depth_of(share)
        if outstanding.denominator != 1 or outstanding > _OUTSTANDING_MAX:
            what = f"[{job.name}]: {float(outstanding):g} I/Os in flight on each file; "
            what += f"a volume has a whole number of at most {_OUTSTANDING_MAX:,}"
            hint = "make iodepth= a multiple of the number of files; without a rate, a pause, verify= "
            self.problems.error(job.place, what, f"{hint}and fsync=, the files have one queue")
            return None
        if target is None:
            return None
        first_byte, size_bytes = _span(share)
        direct = job.load.direct or target.kind not in ("file", "block")
        if not direct:
            what = f"[{job.name}]: direct=0, fio's default: its I/Os go through the page cache of this host"
            self.problems.notice(job.place, what)
        return VolumeSpec(
            name=unused_name(name if share.alone else f"{name}.{job.name}", self._names, "-"),
            url=target.url,
            user=target.user,
            secret=target.secret,
            mutual_user=target.mutual_user,
            mutual_secret=target.mutual_secret,
            first_byte=first_byte,
            size_bytes=size_bytes,
            outstanding=int(outstanding),
            direct=direct,
            create=target.can_be_made and size_bytes is not None,
            durable_writes=job.load.durable,
            flush=_flush_of(share),
            queue=queue[0] if queue else None,
            shares_device=not share.alone,
            iscsi=target.iscsi,
        )

    def _target(self, share: FileShare, name: str) -> Target | None:
        if share.uses[0].job.files.is_null and self.overrides.luns.resolve(name, share.file) is None:
            return self._null(share)
        if share.file not in self._targets:
            self._targets[share.file] = self._looked_up(share, name)
        return self._targets[share.file]

    def _null(self, share: FileShare) -> Target | None:
        """As large as the job says."""
        job = share.uses[0].job
        first_byte, size_bytes = _span(share)
        if size_bytes is None:
            what = f"[{job.name}]: the engine null has no size of its own"
            self.problems.error(job.place, what, "write size= or filesize= in bytes")
            return None
        return parse_target(f"null:{first_byte + size_bytes}")

    def _looked_up(self, share: FileShare, name: str) -> Target | None:
        job = share.uses[0].job
        where = f"[{job.name}]: {share.file}"
        try:
            mapped = self.overrides.luns.resolve(name, share.file)
            if mapped is None and share.file == "-":
                self.problems.error(
                    job.place, f"{where}: standard input is no volume", "name a file or a device"
                )
                return None
            target = parse_target(mapped or share.file)
        except UserError as error:
            self.problems.error(job.place, f"[{job.name}]: {error.message}", error.hint)
            return None
        path = path_of(target.url)
        if target.kind == "file" and path and not os.path.exists(path):
            return self._new_file(share, target, path, where)
        return target

    def _new_file(self, share: FileShare, target: Target, path: str, where: str) -> Target | None:
        place = share.uses[0].job.place
        if in_dev(path):
            self.problems.error(place, f"{where}: no such device", NO_DEVICE)
            return None
        if _span(share)[1] is None and not (self.overrides.create and self.overrides.size_bytes):
            hint = "correct filename=, or give size= or filesize= in bytes to have a file made"
            self.problems.error(place, f"{where} does not exist", hint)
            return None
        self.problems.notice(place, f"{where} is made unwritten; fio would fill it first where it is read")
        return target


def _depth_of(share: FileShare) -> Fraction:
    """I/Os in flight on a file."""
    return sum((use.depth for use in share.uses), Fraction(0))


def _flush_of(share: FileShare) -> FlushSpec | None:
    """Copies with one I/O in flight each share a queue: a flush is in the place of one of them, and others go on."""
    flush = share.uses[0].job.load.flush
    together = flush is not None and flush.blocks and _depth_of(share) > share.uses[0].job.load.depth
    return flush.model_copy(update={"blocks": False}) if flush and together else flush


def _shared_queues(shares: Sequence[FileShare]) -> dict[tuple[int, str], tuple[SharedQueue, Fraction]]:
    """The queue, and how deep it is, of jobs whose iodepth= does not go into their files: as in fio, all files of a
    copy have one. By job and file."""
    depths: dict[tuple[int, tuple[str, ...]], Fraction] = {}
    group_of: dict[tuple[int, str], tuple[int, tuple[str, ...]]] = {}
    odd: dict[tuple[int, tuple[str, ...]], None] = {}
    for share in shares:
        job = share.uses[0].job
        if not _can_share_queue(share):
            continue
        files = next(those for copy in range(job.copies) if share.file in (those := files_of(job, copy)))
        key = group_of[id(job), share.file] = (id(job), files)
        depths[key] = depths.get(key, Fraction(0)) + _depth_of(share)
        if _depth_of(share).denominator != 1:
            odd[key] = None
    names = {key: SharedQueue(name=f"queue{nth}") for nth, key in enumerate(odd, start=1)}
    return {place: (names[key], depths[key]) for place, key in group_of.items() if key in odd}


def _can_share_queue(share: FileShare) -> bool:
    """What the data plane asks of volumes with one queue."""
    job = share.uses[0].job
    load = job.load
    plain = not load.has_rate and load.think_time is None and load.flush is None
    alone = all(use.job is job for use in share.uses)
    return plain and alone and load.verify is VerifyUse.OFF


def file_name(number: int) -> str:
    """The name of a file's volume."""
    return f"file{number}"


def _span(share: FileShare) -> tuple[int, int | None]:
    """The bytes of the file that all uses need together."""
    extents = [use.extent for use in share.uses]
    if any(extent is None for extent in extents):
        return 0, None
    known = [extent for extent in extents if extent is not None]
    start = min(first for first, _ in known)
    ends = [end for _, end in known if end is not None]
    return start, max(ends) - start if len(ends) == len(known) else None


def _region(use: Use, span: tuple[int, int | None], problems: Problems) -> VolumeRegion | None:
    """The part of the volume that the use has; None: all of it."""
    if use.extent is None:
        last = 100 if use.length is None else min(use.start.value + use.length.value, 100)
        whole = use.start.value == 0 and last == 100
        return None if whole else VolumeRegion(unit="percent", start=use.start.value, end=last)
    first_byte, size_bytes = span
    start, end = use.extent
    if (start, end) == (first_byte, None if size_bytes is None else first_byte + size_bytes):
        return None
    if end is None:
        what = f"[{use.job.name}]: copies begin at different places of {use.file}, and how far they go is not said"
        problems.error(use.job.place, what, "write size=, or offset_increment= in percent")
        return None
    return VolumeRegion(unit="bytes", start=start - first_byte, end=end - first_byte)


def _streams(placed: Sequence[tuple[str, Use, VolumeRegion | None]]) -> list[JobStream]:
    """One stream for the same use on several volumes; more where copies go through a file each by itself."""
    groups: dict[tuple[int, VolumeRegion | None, int], list[tuple[str, Use]]] = {}
    seen: Counter[tuple[int, VolumeRegion | None, str]] = Counter()
    for volume, use, region in placed:
        nth = seen[id(use.job), region, volume]
        seen[id(use.job), region, volume] += 1
        groups.setdefault((id(use.job), region, nth), []).append((volume, use))
    streams_of = Counter(job for job, _, _ in groups)
    taken: set[str] = set()
    numbers: Counter[int] = Counter()
    streams: list[JobStream] = []
    for (job_id, region, _), those in groups.items():
        job = those[0][1].job
        numbers[job_id] += 1
        name = unused_name(
            job.name if streams_of[job_id] == 1 else f"{job.name}.{numbers[job_id]}", taken, "-"
        )
        stream = StreamSpec(
            name=name,
            volumes=tuple(volume for volume, _ in those),
            sizes=job.load.read_sizes,
            read_percent=job.load.read_percent,
            random_percent=100.0 if job.load.skip_bytes else job.load.random_percent,
            distribution=job.load.distribution,
            ios_per_place=job.load.ios_per_place,
            stride=_stride(job.load.skip_bytes),
            range=region,
            align_bytes=job.load.align_bytes,
            think_time=job.load.think_time,
            compression_ratio=job.load.compression_ratio,
        )
        streams += _by_direction(stream, [use for _, use in those], taken)
    return streams


def _stride(skip_bytes: int) -> ByteSpan | None:
    return ByteSpan(min_bytes=skip_bytes, max_bytes=skip_bytes) if skip_bytes else None


def _by_direction(stream: StreamSpec, uses: Sequence[Use], taken: set[str]) -> list[JobStream]:
    """Reads and writes that are limited each by itself are two streams, as fio keeps their rates and not their mix."""
    job, amount_bytes, percent = uses[0].job, amount_of(uses[0]), percent_of(uses[0])
    load = job.load
    rates = [_sum_of(use.rates[place] for use in uses) for place in (0, 1)]
    if not load.is_mixed:
        own = rates[0] if load.read_percent else rates[1]
        return [JobStream(job, stream.model_copy(update={"rate_iops": own}), amount_bytes, percent)]
    if not load.has_rate:
        mixed: dict[str, Any] = {"separate_directions": load.random_percent < 100}
        if load.read_sizes != load.write_sizes:
            mixed["write_sizes"] = load.write_sizes
        return [JobStream(job, stream.model_copy(update=mixed), amount_bytes, percent)]
    parts = (("read", 100.0, load.read_sizes), ("write", 0.0, load.write_sizes))
    speeds = [(rate or 0.0) * mean_bytes(sizes) for rate, (_, _, sizes) in zip(rates, parts, strict=True)]
    made = []
    for (word, share, sizes), rate, speed in zip(parts, rates, speeds, strict=True):
        name = unused_name(f"{stream.name}.{word}", taken, "-")
        update = {"name": name, "read_percent": share, "sizes": sizes, "rate_iops": rate}
        amount_share = speed / sum(speeds) if load.is_rated else None
        part = (
            None if amount_share is None or amount_bytes is None else round(amount_bytes * amount_share) or 1
        )
        part_percent = None if amount_share is None or percent is None else percent * amount_share
        made.append(JobStream(job, stream.model_copy(update=update), part, part_percent))
    return made


def _sum_of(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def unused_name(name: str, taken: set[str], joint: str) -> str:
    """The name, or that with the first free number from 2 on behind `joint`; it is taken from then on."""
    number, one = 1, name
    while one in taken:
        number += 1
        one = f"{name}{joint}{number}"
    taken.add(one)
    return one
