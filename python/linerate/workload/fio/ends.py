"""When the jobs of a run begin and end: at a time, at the end of their part, or after an amount.

fio ends each job by itself. So does the data plane: a sequential stream stops at the end of its part, another stops
after its bytes, and the run ends with the last of them. Jobs of one run that begin or end at different times have
these in their streams. What is moved during ramp_time= is part of the amount, as in
fio, and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from linerate.workload.fio.jobs import FioJob
from linerate.workload.fio.load import JobLoad
from linerate.workload.fio.parts import Use, files_of
from linerate.workload.fio.verify import VerifyUse
from linerate.workload.plan import UNTIL_DONE_S
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
    """The streams, with the ends of those whose jobs end after an amount; None after a problem was noted."""
    ending = [stream for stream in streams if not stream.job.time_based]
    jobs = list({id(stream.job): stream.job for stream in ending}.values())
    if len(jobs) > 1 and any(job.ends_with_first for job in jobs):
        what = f"[{jobs[0].name}]: exitall is not supported for jobs that end after an amount"
        problems.error(jobs[0].place, what, "write time_based and runtime=")
        return None
    unknown = [stream for stream in ending if not _is_known(stream)]
    if unknown and not _note_unknown(unknown[0].job, problems):
        return None
    # Where one time ends the run, all go on to it if one does: the run would end with the others otherwise.
    may_end = not unknown or differ([one.job for one in streams])
    have_end = [may_end and not one.job.time_based and _is_known(one) for one in streams]
    return [_with_end(one) if has_end else one.spec for one, has_end in zip(streams, have_end, strict=True)]


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


def _note_unknown(job: FioJob, problems: Problems) -> bool:
    """How much a job moves is not known: its time ends it. Returns whether it has one."""
    if job.load.is_mixed and job.load.has_rate and not job.load.is_rated:
        what = f"[{job.name}]: with a rate for one direction, how much each moves is not known"
        problems.error(job.place, what, "write time_based and runtime=")
        return False
    if job.runtime_s is None or job.load.verify is VerifyUse.READ_BACK:
        what = f"[{job.name}]: neither a time nor an amount says when it ends"
        problems.error(job.place, what, "write time_based and runtime=, or size= in bytes")
        return False
    what = f"[{job.name}]: runs for {job.runtime_s:g} s; fio would end earlier, once all of the file was used"
    problems.notice(job.place, what)
    return True


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Times of a run, in seconds. are_apart: its jobs have their own. ends_when_done: no time ends all of it."""

    pause_s: float
    warmup_s: float
    elapsed_s: float
    are_apart: bool
    ends_when_done: bool

    def of(self, job: FioJob, stream: StreamSpec) -> StreamSpec:
        """A stream of a job, with the job's times."""
        if not self.are_apart:
            return stream
        begins_s = job.delay_s - self.pause_s
        times: dict[str, Any] = {"start_after_s": begins_s}
        if job.runtime_s:
            times["stop_after_s"] = begins_s + job.ramp_s + job.runtime_s
        return stream.model_copy(update=times)


def differ(jobs: Sequence[FioJob]) -> bool:
    """Whether the jobs of a run begin or end at times of their own."""
    return len({(job.runtime_s, job.time_based, job.delay_s) for job in jobs}) > 1


def read_times(jobs: Sequence[FioJob], problems: Problems) -> RunTimes | None:
    """The times of the jobs of one run; None after a problem was noted."""
    before = len(problems.errors)
    first = jobs[0]
    have_own = differ(jobs)
    _same(jobs, "ramp_time=", lambda job: job.ramp_s, problems)
    _same(jobs, "verify=", lambda job: job.load.verify is VerifyUse.OFF, problems)
    if first.ramp_s:
        _same(jobs, "startdelay=", lambda job: job.delay_s, problems)
    if have_own and any(job.ends_with_first for job in jobs):
        what = f"[{first.name}]: exitall is not supported for jobs that run at the same time and end at different ones"
        problems.error(first.place, what, "give them the same runtime=, or write stonewall")
    if len(problems.errors) > before:
        return None
    pause_s = min(job.delay_s for job in jobs)
    ends_when_done = not all(job.runtime_s for job in jobs)
    ends_s = [job.delay_s - pause_s + (job.runtime_s or 0) for job in jobs]
    elapsed_s = UNTIL_DONE_S if ends_when_done else max(ends_s)
    return RunTimes(pause_s, first.ramp_s, elapsed_s, have_own, ends_when_done)


def _same(
    jobs: Sequence[FioJob], keyword: str, value: Callable[[FioJob], object], problems: Problems
) -> None:
    """All jobs of a run have one of it."""
    for job in jobs[1:]:
        if value(job) != value(jobs[0]):
            what = f"jobs {jobs[0].name} and {job.name} run at the same time and differ in {keyword}: not supported"
            problems.error(job.place, what, f"give them the same {keyword}, or write stonewall")
            return
