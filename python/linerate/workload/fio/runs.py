"""Jobs as the steps of a plan: jobs that run at the same time are one run; stonewall begins the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.quantity import number_text
from linerate.workload.fio.ends import JobStream, read_times, with_ends
from linerate.workload.fio.entries.steps import EntrySteps
from linerate.workload.fio.jobs import FioJob
from linerate.workload.fio.parts import files_of, shares_of, uses_of
from linerate.workload.fio.verify import VerifyUse
from linerate.workload.fio.volumes import JobVolumes, file_name, unused_name
from linerate.workload.overrides import Overrides
from linerate.workload.plan import (
    RUNS_MAX,
    UNCONTROLLED,
    PlannedJob,
    PlannedRun,
    PlanStep,
    Rate,
)
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import RunSpec, StreamSpec

_INTERVALS_S = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001)
_RANDOM_MAP = "random places may repeat before all have been used, as with norandommap"


def steps_of(jobs: Sequence[FioJob], overrides: Overrides, problems: Problems) -> list[PlanStep]:
    """The steps of all jobs in order; empty after a problem was noted."""
    groups = list(_groups(jobs, problems))
    if problems.errors:
        return []
    if len(groups) > RUNS_MAX:
        problems.error(groups[-1][0].place, f"{len(groups):,} runs; at most {RUNS_MAX:,}", "split the file")
        return []
    numbers: dict[str, int] = {}
    for job in (one for one in jobs if one.entries is None):
        for copy in range(job.copies):
            for file in files_of(job, copy):
                numbers.setdefault(file, len(numbers) + 1)
    if not numbers:
        overrides.refuse_volume_settings("change directory=, nrfiles= and numjobs= of the file")
    overrides.luns.check([(file_name(number), file) for file, number in numbers.items()])
    volumes = JobVolumes(overrides, numbers, problems)
    labels: set[str] = set()
    entries = EntrySteps(labels)
    steps: list[PlanStep] = []
    for group in groups:
        if any(job.entries for job in group):
            steps += _entry_steps(group, entries, problems)
        elif (step := _step(group, volumes, labels, problems)) is not None:
            steps.append(step)
    return [] if problems.errors else steps


def _entry_steps(jobs: Sequence[FioJob], entries: EntrySteps, problems: Problems) -> list[PlanStep]:
    """Those of jobs with filecreate, filestat or filedelete: no other job runs with them."""
    other = next((job for job in jobs if job.entries is None), None)
    if other is not None:
        what = f"[{other.name}] runs at the same time as a job with filecreate, filestat or filedelete: not supported"
        problems.error(other.place, what, "write stonewall in the later one")
        return []
    return entries.steps_of(jobs, problems)


def _groups(jobs: Sequence[FioJob], problems: Problems) -> Iterator[list[FioJob]]:
    """Jobs up to the next that waits for all before it."""
    group: list[FioJob] = []
    ended: set[str] = set()
    for job in jobs:
        if _waits(job, group, ended, problems) or (group and job.stonewall):
            yield group
            ended |= {one.name for one in group}
            group = []
        group.append(job)
    if group:
        yield group


def _waits(job: FioJob, group: Sequence[FioJob], ended: set[str], problems: Problems) -> bool:
    """Whether wait_for= of a job is what stonewall is: it waits for all jobs that run before it."""
    running = {one.name for one in group}
    if job.wait_for is None or (group and job.stonewall and job.wait_for in running):
        return False
    if running == {job.wait_for}:
        return True
    if job.wait_for in running:
        others = ", ".join(sorted(running - {job.wait_for}))
        what = f"wait_for={job.wait_for} is not supported: {others} would still run"
        problems.error(job.place, f"[{job.name}]: {what}", "write stonewall, or put the job behind those")
    elif job.wait_for not in ended:
        what = f"wait_for={job.wait_for}: no job before it has this name"
        problems.error(job.place, f"[{job.name}]: {what}", "put the job that it waits for before it")
    return False


def _step(
    jobs: Sequence[FioJob], volumes: JobVolumes, labels: set[str], problems: Problems
) -> PlanStep | None:
    uses = [use for job in jobs for use in uses_of(job, problems)]
    shares = shares_of(uses, problems)
    times = read_times(jobs, problems)
    made = volumes.make(shares) if shares else None
    if made is None or times is None:
        return None
    ended = with_ends(made[1], problems)
    if ended is None:
        return None
    timed = [times.of(stream.job, spec) for stream, spec in zip(made[1], ended, strict=True)]
    streams, rate = _with_rates(timed, jobs, problems, are_apart=times.are_apart)
    name = jobs[0].name if len(jobs) == 1 else f"{jobs[0].name}+{len(jobs) - 1}"
    label = unused_name(name, labels, " ")
    elapsed_s, warmup_s = times.elapsed_s, times.warmup_s
    spec = RunSpec(
        name=label,
        seed=next((job.seed for job in jobs if job.seed is not None), 1),
        volumes=tuple(made[0]),
        streams=tuple(streams),
        verify="off" if jobs[0].load.verify is VerifyUse.OFF else "on",
        elapsed_s=elapsed_s,
        warmup_s=warmup_s,
        interval_s=_interval_s(elapsed_s, warmup_s),
    )
    _note_places(jobs, problems)
    ends_when_done = times.ends_when_done
    span = "until its size is moved" if ends_when_done else f"elapsed={number_text(elapsed_s)}"
    warmup_text = f" warmup={number_text(warmup_s)}" if warmup_s else ""
    limits = [job.error_limit for job in jobs if job.error_limit is not None]
    run = PlannedRun(
        spec=spec,
        name=name,
        label=label,
        rate_text=number_text(rate.value) if rate.kind == "fixed" else UNCONTROLLED,
        timing_text=f"{span}{warmup_text}",
        pause_s=times.pause_s,
        start_commands=tuple(dict.fromkeys(command for job in jobs for command in job.start_commands)),
        end_commands=tuple(dict.fromkeys(command for job in jobs for command in job.end_commands)),
        error_limit=min(limits) if limits else None,
        jobs=tuple(_planned(job, made[1]) for job in jobs),
        ends_when_done=ends_when_done,
        source=str(jobs[0].place),
    )
    return PlanStep(run, rate)


def _planned(job: FioJob, streams: Sequence[JobStream]) -> PlannedJob:
    """The job for results in fio's form: what their readers look for is always there."""
    defaults = {"rw": "read", "bs": "4096", "iodepth": "1", "numjobs": "1"}
    own = tuple(stream.spec.name for stream in streams if stream.job is job)
    return PlannedJob(job.name, {**defaults, **job.options}, own)


def _note_places(jobs: Sequence[FioJob], problems: Problems) -> None:
    where = SourceLocation(jobs[0].place.path, 0)
    if any(job.load.random_percent for job in jobs):
        problems.notice(where, _RANDOM_MAP)
    for job in jobs:
        files = len(files_of(job, 0))
        if files > 1 and job.load.depth * job.copies % files == 0 and not job.files.is_null:
            what = f"[{job.name}]: each of its {files} files has a queue of its own; fio goes round the files"
            problems.notice(job.place, what)
        if (
            job.copies > 1
            and job.load.random_percent < 100
            and not job.files.increment.value
            and job.files.names
        ):
            what = f"[{job.name}]: {job.copies} copies go through the same blocks, as in fio: a cache may answer most"
            problems.notice(job.place, what)


def _interval_s(elapsed_s: float, warmup_s: float) -> float:
    """One second, or the longest shorter one that divides both times."""

    def fits(interval_s: float) -> bool:
        parts = (elapsed_s / interval_s, warmup_s / interval_s)
        return parts[0] >= 2 and all(abs(part - round(part)) < 1e-6 for part in parts)

    return next((interval_s for interval_s in _INTERVALS_S if fits(interval_s)), elapsed_s)


def _with_rates(
    streams: Sequence[StreamSpec], jobs: Sequence[FioJob], problems: Problems, *, are_apart: bool
) -> tuple[list[StreamSpec], Rate]:
    """Streams that all have a rate become shares of one; beside streams without one, and where they begin or end at
    different times (are_apart), they keep their own."""
    rates = [stream.rate_iops for stream in streams if stream.rate_iops is not None]
    if not rates:
        return list(streams), Rate("max")
    rated = next(job for job in jobs if job.load.has_rate)
    if len(rates) < len(streams) or are_apart:
        if rated.load.process != "poisson":
            why = "have other times" if are_apart else "have no rate"
            what = f"[{rated.name}]: its I/Os start at random times, because others of its run {why}"
            problems.notice(rated.place, what)
        return list(streams), Rate("max")
    processes = {job.load.process for job in jobs}
    if len(processes) > 1:
        problems.error(
            rated.place, f"[{rated.name}]: jobs of a run have one rate_process=", "write it once in [global]"
        )
    total = sum(rates)
    if len(streams) == 1:
        shared = [streams[0].model_copy(update={"rate_iops": None})]
    else:
        shared = [
            stream.model_copy(
                update={"rate_iops": None, "share_percent": (stream.rate_iops or 0) / total * 100}
            )
            for stream in streams
        ]
    return shared, Rate("fixed", total, rated.load.process)
