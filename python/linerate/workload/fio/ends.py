"""When the jobs of a run end: after a time, at the end of their part, or after an amount.

fio ends each job by itself. So does the data plane: a sequential stream stops at the end of its part, another stops
after its bytes, and the run ends with the last of them. What is moved during ramp_time= is part of the amount, as in
fio, and is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.workload.fio.jobs import FioJob
from linerate.workload.fio.load import JobLoad
from linerate.workload.fio.parts import Use, files_of
from linerate.workload.fio.verify import VerifyUse
from linerate.workload.problems import Problems
from linerate.workload.spec import SizeMix, Sizes, StreamSpec


@dataclass(frozen=True, slots=True)
class JobStream:
    """A stream that a job became. amount_bytes: what it moves on each of its volumes if no time ends it; None: the size
    of the file says it. amount_percent: that in percent of the part of the file that it uses; None: not known."""

    job: FioJob
    spec: StreamSpec
    amount_bytes: int | None
    amount_percent: float | None


def percent_of(use: Use) -> float | None:
    """What all copies of a use move on its file if its size says it, in percent of their part; None: not known."""
    if use.job.load.skip_bytes:
        return None
    return 100.0 * use.job.loops * use.copies


def amount_of(use: Use) -> int | None:
    """What all copies of a use move on its file; None: the size of the file says it."""
    job = use.job
    files = len(files_of(job, 0))
    amounts: list[int] = []
    if job.io_bytes is not None:
        amounts.append(job.io_bytes // files)
    elif use.length is not None and not use.length.is_percent:
        amounts.append(_one_pass_bytes(use.length.value, job.load))
    if job.number_ios is not None:
        amounts.append(round(job.number_ios * _mean_io_bytes(job.load) / files))
    return max(min(amounts), 1) * job.loops * use.copies if amounts else None


def _mean_io_bytes(load: JobLoad) -> float:
    share = load.read_percent / 100
    return share * mean_bytes(load.read_sizes) + (1 - share) * mean_bytes(load.write_sizes)


def _one_pass_bytes(length: int, load: JobLoad) -> int:
    """What fio moves in a part of a file. Where bytes are left out between I/Os, it begins again until it has moved as
    much as the part has, unless the last I/O reaches the end or leaves too little for another."""
    size = mean_bytes(load.read_sizes)
    step = size + load.skip_bytes
    if not load.skip_bytes or length < size:
        return length
    ios = int((length - size) // step) + 1
    begins_again = (ios - 1) * step + size < length <= ios * step
    return length if begins_again else int(ios * size)


def mean_bytes(sizes: Sizes) -> float:
    """Mean size of an I/O."""
    if isinstance(sizes, SizeMix):
        return sum(size * share for size, share in sizes.parts) / sum(share for _, share in sizes.parts)
    return (sizes.min_bytes + sizes.max_bytes) / 2


def with_ends(streams: Sequence[JobStream], problems: Problems) -> list[StreamSpec] | None:
    """The streams of jobs that end after an amount; None after a problem was noted."""
    jobs = list({id(stream.job): stream.job for stream in streams}.values())
    first = jobs[0]
    if len(jobs) > 1 and any(job.ends_with_first for job in jobs):
        what = f"[{first.name}]: exitall is not supported for jobs that end after an amount"
        problems.error(first.place, what, "write time_based and runtime=")
        return None
    unknown = [stream for stream in streams if not _is_known(stream)]
    if unknown:
        return _without_ends(streams, unknown[0].job, problems)
    return [_with_end(stream) for stream in streams]


def _with_end(stream: JobStream) -> StreamSpec:
    back = {"read_back": stream.job.load.verify is VerifyUse.READ_BACK}
    if _is_one_pass(stream.job):
        return stream.spec.model_copy(update={"stop_at_end": True, **back})
    if stream.amount_bytes is None:
        return stream.spec.model_copy(update={"stop_after_percent": stream.amount_percent, **back})
    return stream.spec.model_copy(update={"stop_after_bytes": stream.amount_bytes, **back})


def _is_known(stream: JobStream) -> bool:
    """Whether it is known when it ends."""
    has_amount = stream.amount_bytes is not None or stream.amount_percent is not None
    return has_amount or _is_one_pass(stream.job)


def _is_one_pass(job: FioJob) -> bool:
    """Each of its streams ends when it has reached the end of its part."""
    load = job.load
    once = job.loops == 1 and job.io_bytes is None and job.number_ios is None
    return once and not load.random_percent and not load.skip_bytes and not load.is_mixed


def _without_ends(streams: Sequence[JobStream], job: FioJob, problems: Problems) -> list[StreamSpec] | None:
    """How much a job moves is not known: its time ends the run, if it has one."""
    if job.load.is_mixed and job.load.has_rate and not job.load.is_rated:
        what = f"[{job.name}]: with a rate for one direction, how much each moves is not known"
        problems.error(job.place, what, "write time_based and runtime=")
        return None
    if job.runtime_s is None or job.load.verify is VerifyUse.READ_BACK:
        what = f"[{job.name}]: neither a time nor an amount says when it ends"
        problems.error(job.place, what, "write time_based and runtime=, or size= in bytes")
        return None
    what = f"[{job.name}]: runs for {job.runtime_s:g} s; fio would end earlier, once all of the file was used"
    problems.notice(job.place, what)
    return [stream.spec for stream in streams]
