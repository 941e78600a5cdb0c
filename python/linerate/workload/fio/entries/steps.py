"""The runs of jobs that make, look up or remove files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class EntrySteps:
    """Makes the steps of one plan. labels: those of all runs."""

    labels: set[str]
    _made: dict[str, int] = field(default_factory=dict)
    """By anchor: how many whole files an earlier run of the plan left. New ones are empty."""

    def steps_of(self, job: FioJob, problems: Problems) -> list[PlanStep]:
        """The run of a job, and before it the one that makes or removes files."""
        if job.entries is None:
            return []
        structure = _structure(job)
        files = structure.files
        made = self._made.get(structure.anchor, 0)
        steps: list[PlanStep] = []
        if job.entries.operation == "create":
            removed = (
                "files that are there are removed before the run, so that each is made; fio would open them"
            )
            problems.notice(job.place, f"[{job.name}]: {removed}")
            steps.append(self._format(job, structure, FormatSpec(delete=True, folders=True, files=False)))
        elif job.entries.lays_out and made < files:
            steps.append(self._format(job, structure, FormatSpec(delete=False, folders=True, files=True)))
        where = os.path.join(structure.anchor, _FOLDER)
        problems.notice(job.place, f"[{job.name}]: its files are {where}/vdb_f0001.file and so on")
        left = {"create": 0, "delete": max(made - files, 0)}
        self._made[structure.anchor] = left.get(job.entries.operation, max(made, files))
        return [*steps, self._run(job, job.entries, structure)]

    def _format(self, job: FioJob, structure: StructureSpec, what: FormatSpec) -> PlanStep:
        """A run that makes all files, or none and removes those that are there."""
        work = FileWorkSpec(
            name="format",
            structure=0,
            operation="write",
            sizes=((_FORMAT_BYTES, 100.0),),
            threads=_FORMAT_THREADS,
            share_percent=100.0,
        )
        name = f"format_for_{job.name}"
        shown = f"{structure.files:,} file{'' if structure.files == 1 else 's'}"
        text = f"{shown}, {size_text(structure.mean_bytes)}" if what.files else "an empty folder"
        spec = self._spec(job, (name, structure, work), what)
        return PlanStep(
            PlannedRun(
                spec=spec,
                name=name,
                label=spec.name,
                timing_text=f"until it has {text}",
                error_limit=job.error_limit,
                ends_when_done=True,
                source=str(job.place),
            )
        )

    def _run(self, job: FioJob, entries: EntryLoad, structure: StructureSpec) -> PlanStep:
        work = FileWorkSpec(
            name=job.name,
            structure=0,
            operation=entries.operation,
            select=entries.select,
            sizes=((_FORMAT_BYTES, 100.0),),
            threads=job.copies,
            share_percent=100.0,
        )
        spec = self._spec(job, (job.name, structure, work), None)
        span = f"elapsed={number_text(job.runtime_s)}" if job.runtime_s else "until each file had its turn"
        warmup_text = f" warmup={number_text(job.ramp_s)}" if job.ramp_s else ""
        asked = spec.streams[0].name
        return PlanStep(
            PlannedRun(
                spec=spec,
                name=job.name,
                label=spec.name,
                timing_text=f"{span}{warmup_text}",
                pause_s=job.delay_s,
                start_commands=job.start_commands,
                end_commands=job.end_commands,
                error_limit=job.error_limit,
                jobs=(PlannedJob(job.name, _shown(job), (asked,)),),
                ends_when_done=not job.runtime_s,
                source=str(job.place),
            )
        )

    def _spec(
        self, job: FioJob, what: tuple[str, StructureSpec, FileWorkSpec], making: FormatSpec | None
    ) -> FilesLoadSpec:
        """Of the name, the structure and the work of a run."""
        name, structure, work = what
        runtime_s = None if making else job.runtime_s
        warmup_s = 0.0 if making else job.ramp_s
        seed = 1 if job.seed is None else job.seed
        streams = streams_of([work], [structure])
        files = FilesRunSpec(
            seed=seed,
            warmup_s=warmup_s,
            elapsed_s=runtime_s,
            interval_s=_INTERVAL_S,
            structures=(structure,),
            workloads=(work,),
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
            volumes=(volume_of(0, structure, [work]),),
            streams=tuple(stream for _, stream in streams),
            files=files,
        )


def _structure(job: FioJob) -> StructureSpec:
    """The files of all copies: one folder, named after the files that fio would make."""
    files = job.files
    folder = os.path.abspath(files.directories[0] if files.directories else "")
    base = files.name_format.replace("$jobname", job.section).replace("$", "").replace("/", "_")
    return StructureSpec(
        name="files",
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
