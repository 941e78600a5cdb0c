"""The runs of jobs that make, look up or remove files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from linerate.quantity import number_text, size_text
from linerate.workload.files import FilesLoadSpec, FilesRunSpec, FileWorkSpec, FormatSpec, StructureSpec
from linerate.workload.files.results import streams_of, volume_of
from linerate.workload.fio.entries.load import EntryLoad
from linerate.workload.fio.jobs import FioJob
from linerate.workload.fio.volumes import unused_name
from linerate.workload.plan import UNTIL_DONE_S, PlannedJob, PlannedRun, PlanStep
from linerate.workload.problems import Problems

_FORMAT_THREADS = 8
_FORMAT_BYTES = 128 << 10
_INTERVAL_S = 1.0
_FOLDER = "vdb.1_1.dir"
"""The one folder of a structure."""


class _Work(NamedTuple):
    """A job, what it does, and with which files."""

    job: FioJob
    entries: EntryLoad
    structure: StructureSpec


@dataclass(slots=True)
class EntrySteps:
    """Makes the steps of one plan. labels: those of all runs."""

    labels: set[str]
    _made: dict[str, int] = field(default_factory=dict)
    """By anchor: how many whole files an earlier run of the plan left. New ones are empty."""

    def steps_of(self, jobs: Sequence[FioJob], problems: Problems) -> list[PlanStep]:
        """The run of jobs that go at the same time, and before it those that make or remove their files. Jobs without
        entries are left out."""
        names: set[str] = set()
        works = [
            _Work(
                job,
                job.entries,
                _structure(job, "files" if len(jobs) == 1 else unused_name(job.name, names, "-")),
            )
            for job in jobs
            if job.entries is not None
        ]
        if not _fit(works, problems):
            return []
        removed: list[_Work] = []
        laid_out: list[_Work] = []
        for work in works:
            job, entries, structure = work
            files = structure.files
            made = self._made.get(structure.anchor, 0)
            if entries.operation == "create":
                what = "files that are there are removed before the run, so that each is made; fio would open them"
                problems.notice(job.place, f"[{job.name}]: {what}")
                removed.append(work)
            elif entries.lays_out and made < files:
                laid_out.append(work)
            where = os.path.join(structure.anchor, _FOLDER)
            problems.notice(job.place, f"[{job.name}]: its files are {where}/vdb_f0001.file and so on")
            left = {"create": 0, "delete": max(made - files, 0)}
            self._made[structure.anchor] = left.get(entries.operation, max(made, files))
        steps = [self._format(removed, FormatSpec(delete=True, folders=True, files=False))] if removed else []
        if laid_out:
            steps.append(self._format(laid_out, FormatSpec(delete=False, folders=True, files=True)))
        return [*steps, self._run(works)]

    def _format(self, works: Sequence[_Work], what: FormatSpec) -> PlanStep:
        """A run that makes all files, or none and removes those that are there."""
        first, name = works[0].job, f"format_for_{_name_of(works)}"
        structures = [work.structure for work in works]
        making = [
            FileWorkSpec(
                name="format",
                structure=index,
                operation="write",
                sizes=((_FORMAT_BYTES, 100.0),),
                threads=_FORMAT_THREADS,
                share_percent=100.0 / len(works),
            )
            for index in range(len(works))
        ]
        files = sum(structure.files for structure in structures)
        shown = f"{files:,} file{'' if files == 1 else 's'}"
        text = f"{shown}, {size_text(sum(structure.mean_bytes for structure in structures))}"
        spec = self._spec(first, (name, structures, making), what)
        return PlanStep(
            PlannedRun(
                spec=spec,
                name=name,
                label=spec.name,
                timing_text=f"until it has {text if what.files else 'an empty folder'}",
                error_limit=_error_limit(works),
                ends_when_done=True,
                source=str(first.place),
            )
        )

    def _run(self, works: Sequence[_Work]) -> PlanStep:
        first, name = works[0].job, _name_of(works)
        doing = [
            FileWorkSpec(
                name=job.name,
                structure=index,
                operation=entries.operation,
                select=entries.select,
                sizes=((_FORMAT_BYTES, 100.0),),
                threads=job.copies,
                share_percent=100.0 / len(works),
            )
            for index, (job, entries, _) in enumerate(works)
        ]
        spec = self._spec(first, (name, [work.structure for work in works], doing), None)
        span = (
            f"elapsed={number_text(first.runtime_s)}" if first.runtime_s else "until each file had its turn"
        )
        warmup_text = f" warmup={number_text(first.ramp_s)}" if first.ramp_s else ""
        asked = {stream.workload: stream.name for stream in reversed(spec.files.streams)}
        return PlanStep(
            PlannedRun(
                spec=spec,
                name=name,
                label=spec.name,
                timing_text=f"{span}{warmup_text}",
                pause_s=first.delay_s,
                start_commands=tuple(dict.fromkeys(one for work in works for one in work.job.start_commands)),
                end_commands=tuple(dict.fromkeys(one for work in works for one in work.job.end_commands)),
                error_limit=_error_limit(works),
                jobs=tuple(
                    PlannedJob(work.job.name, _shown(work.job), (asked[index],))
                    for index, work in enumerate(works)
                ),
                ends_when_done=not first.runtime_s,
                source=str(first.place),
            )
        )

    def _spec(
        self,
        job: FioJob,
        what: tuple[str, Sequence[StructureSpec], Sequence[FileWorkSpec]],
        making: FormatSpec | None,
    ) -> FilesLoadSpec:
        """Of the name, the structures and the works of a run; its times are those of the job."""
        name, structures, works = what
        runtime_s = None if making else job.runtime_s
        warmup_s = 0.0 if making else job.ramp_s
        seed = 1 if job.seed is None else job.seed
        streams = streams_of(works, structures)
        files = FilesRunSpec(
            seed=seed,
            warmup_s=warmup_s,
            elapsed_s=runtime_s,
            interval_s=_INTERVAL_S,
            structures=tuple(structures),
            workloads=tuple(works),
            streams=tuple(stream for stream, _ in streams),
            format=making,
        )
        return FilesLoadSpec(
            name=unused_name(name, self.labels, " "),
            seed=seed,
            verify="off",
            warmup_s=warmup_s,
            elapsed_s=runtime_s or UNTIL_DONE_S,
            interval_s=_INTERVAL_S,
            volumes=tuple(volume_of(index, one, works) for index, one in enumerate(structures)),
            streams=tuple(stream for _, stream in streams),
            files=files,
        )


def _fit(works: Sequence[_Work], problems: Problems) -> bool:
    """Whether the jobs of a run do the same at the same times, with files of their own; what is wrong is noted.

    In fio each goes at its own pace; the data plane holds the shares of those of a run, so they are equal.
    """
    first, doing, structure_of_first = works[0]
    anchors: dict[str, FioJob] = {}
    for job, entries, structure in works:
        what = ""
        if (job.copies, structure.files, entries) != (first.copies, structure_of_first.files, doing):
            what = f"jobs {first.name} and {job.name} run at the same time and differ in their engine, numjobs= or "
            what += "nrfiles=: not supported for file operations"
        elif (job.runtime_s, job.ramp_s, job.delay_s) != (first.runtime_s, first.ramp_s, first.delay_s):
            what = f"jobs {first.name} and {job.name} run at the same time and differ in their times: not supported"
        elif structure.anchor in anchors:
            what = (
                f"jobs {anchors[structure.anchor].name} and {job.name} run at the same time on the same files"
            )
        if what:
            problems.error(job.place, what, "write stonewall in the later one")
            return False
        anchors[structure.anchor] = job
    return True


def _name_of(works: Sequence[_Work]) -> str:
    first = works[0].job.name
    return first if len(works) == 1 else f"{first}+{len(works) - 1}"


def _error_limit(works: Sequence[_Work]) -> int | None:
    return min((work.job.error_limit for work in works if work.job.error_limit is not None), default=None)


def _structure(job: FioJob, name: str) -> StructureSpec:
    """The files of all copies: one folder, named after the files that fio would make."""
    files = job.files
    folder = os.path.abspath(files.directories[0] if files.directories else "")
    base = files.name_format.replace("$jobname", job.section).replace("$", "").replace("/", "_")
    return StructureSpec(
        name=name,
        anchor=os.path.join(folder, base),
        depth=1,
        width=1,
        files=files.number * job.copies,
        sizes=((files.each_bytes or 1, 100.0),),
        create_anchor=True,
    )


def _shown(job: FioJob) -> dict[str, str]:
    """The options of a job for results in fio's form."""
    defaults: Sequence[tuple[str, str]] = (("rw", "read"), ("bs", "4096"), ("iodepth", "1"), ("numjobs", "1"))
    return {**dict(defaults), **job.options}
