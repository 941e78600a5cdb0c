"""The study directory, for reading: what was planned, what has been measured, what was concluded.

study.json      the study as resolved, the file it was read from, versions
journal.jsonl   what has happened, one line each (`journal`)
runs/           a run directory per step, `<number>-<block>-<workload>-<case>`
verdicts.json   the judgement over what the journal holds (`judge`); can be made again
report.html     likewise
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from linerate import _core
from linerate.analysis.verdict import Attribution, ClaimVerdict, Judgement, Observation, Verdict
from linerate.errors import UserError, quote
from linerate.model import Model
from linerate.results import RunDirectory
from linerate.results.files import write_atomically
from linerate.study.journal import (
    BlocksAdded,
    CaseSkipped,
    Entry,
    LoadMeasured,
    SanFacts,
    SessionEnded,
    StepDone,
    WarmUpFound,
    disk_error,
    is_being_run,
    read_journal,
)
from linerate.study.model import Study
from linerate.study.plan import StudyPlan, StudyStep

STUDY = "study.json"
JOURNAL = "journal.jsonl"
RUNS = "runs"
VERDICTS = "verdicts.json"
REPORT = "report.html"
SEARCH = "tune.json"
"""In the folder of the stages of a search by `linerate tune`, each of which is a study directory."""
CONFIRMATION = "confirmation"
"""The stage of a search whose runs took no part in the choice."""

FORMAT_VERSION = 1

StudyState = Literal["running", "interrupted", "failed", "incomplete", "complete"]

REFUSALS_MOST = 2
"""A case that could not be had in so many blocks running is given up; once may pass."""


class StudyRecord(Model):
    """study.json."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["linerate-study"] = "linerate-study"
    format_version: int = FORMAT_VERSION
    started_at: datetime
    command: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    source: str = ""
    """The study file as it was."""
    source_name: str = ""
    study: Study


@dataclass(frozen=True, slots=True)
class Repeated:
    """How often a case was measured under a workload, and the verdict that this led to."""

    case: str
    workload: str
    runs: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Verdicts:
    """verdicts.json: everything that was concluded."""

    judgement: Judgement
    attributions: tuple[Attribution, ...]
    claims: tuple[ClaimVerdict, ...]
    repeated: tuple[Repeated, ...]
    not_applicable: Mapping[str, str]
    """Case -> why it could not be had."""
    void: tuple[str, ...]
    """Runs that ran but are not counted, with the reason."""
    missing: tuple[str, ...] = ()
    """Runs that the study wants and has not, each with the reason."""


VERDICTS_JSON: TypeAdapter[Verdicts] = TypeAdapter(Verdicts)


class StudyDirectory:
    """A study directory as it is on disk when it is opened; nothing is written."""

    def __init__(self, path: Path, record: StudyRecord, entries: tuple[Entry, ...]) -> None:
        self.path = path
        self.record = record
        self.entries = entries

    @classmethod
    def create(cls, path: Path, study: Study, *, source: str = "", source_name: str = "") -> Self:
        """Makes the directory of a study that is about to begin.

        Raises UserError when there is something already, HostError when it cannot be written.
        """
        record = StudyRecord(
            started_at=datetime.now(UTC),
            command=tuple(sys.argv),
            versions={"linerate": _core.__version__, "python": platform.python_version()},
            source=source,
            source_name=source_name,
            study=study,
        )
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise UserError(
                    f"{path} is not empty",
                    f"give another directory, or go on with: linerate study resume {quote(path)}",
                )
            (path / RUNS).mkdir()
            write_atomically(path / STUDY, record.model_dump_json(indent=1).encode() + b"\n")
        except OSError as error:
            raise disk_error(path / STUDY, error) from error
        return cls(path, record, ())

    @classmethod
    def open(cls, path: Path) -> Self:
        """Raises UserError when it is no study directory, damaged, or of a newer format."""
        try:
            record = StudyRecord.model_validate_json((path / STUDY).read_bytes())
        except OSError as error:
            raise UserError(
                f"{path} is not a study directory: {STUDY}: {error.strerror}", _way_to_study(path)
            ) from error
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(str(part) for part in problem["loc"]) or "the file"
            raise UserError(
                f"{path / STUDY}: {where}: {problem['msg']}", "take the study directory from a backup"
            ) from error
        if record.format_version > FORMAT_VERSION:
            raise UserError(
                f"{path} has study format {record.format_version}; this version reads up to {FORMAT_VERSION}",
                "read it with the Linerate that wrote it, or a newer one",
            )
        entries = read_journal(path / JOURNAL)
        _check_names(path / JOURNAL, record.study, entries)
        return cls(path, record, entries)

    @cached_property
    def study(self) -> Study:
        """What is compared with what; in as many blocks as were asked for last."""
        planned = self.record.study
        if not self.blocks_added:
            return planned
        blocks = self.blocks_added[-1].blocks
        repeat = planned.repeat.model_copy(update={"blocks_min": blocks, "blocks_max": blocks})
        return planned.model_copy(update={"repeat": repeat})

    @property
    def blocks_added(self) -> tuple[BlocksAdded, ...]:
        """Each time that more blocks were asked for than planned."""
        return tuple(entry for entry in self.entries if isinstance(entry, BlocksAdded))

    @property
    def plan(self) -> StudyPlan:
        """Which step comes when."""
        return StudyPlan(self.study)

    @property
    def search(self) -> Path | None:
        """The search by `linerate tune` of which it is a stage that only chooses settings. None: it is judged.

        A verdict on runs that were used for a choice would be too good.
        """
        place = self.path.resolve()
        if place.name.endswith(f"-{CONFIRMATION}") or not (place.parent / SEARCH).is_file():
            return None
        return self.path.parent if self.path.parent.name else place.parent

    @property
    def state(self) -> StudyState:
        """How far it is; "interrupted" as well when its process died without a word."""
        if is_being_run(self.path / JOURNAL):
            return "running"
        last = self.entries[-1] if self.entries else None
        return last.state if isinstance(last, SessionEnded) else "interrupted"

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end and nothing is left to do."""
        last = self.entries[-1] if self.entries else None
        return isinstance(last, SessionEnded) and last.state == "complete"

    @property
    def reason(self) -> str:
        """Why it failed or was left."""
        last = self.entries[-1] if self.entries else None
        return last.reason if isinstance(last, SessionEnded) else ""

    @cached_property
    def steps(self) -> tuple[StepDone, ...]:
        """Every step that has ended, in order; a step that was run again is in it again."""
        return tuple(entry for entry in self.entries if isinstance(entry, StepDone))

    @cached_property
    def loads(self) -> Mapping[str, tuple[LoadMeasured, ...]]:
        """By key of a step, the runs of its search in their order, void ones included."""
        found: dict[str, tuple[LoadMeasured, ...]] = {}
        for entry in self.entries:
            if isinstance(entry, LoadMeasured):
                found[entry.key] = (*found.get(entry.key, ()), entry)
        return found

    @cached_property
    def measured(self) -> Mapping[str, StepDone]:
        """By key, the steps whose figures count."""
        return {step.key: step for step in self.steps if step.state == "complete"}

    @cached_property
    def refusals(self) -> Mapping[tuple[str, str], tuple[CaseSkipped, ...]]:
        """(SAN, case) -> the blocks in which it could not be had there, since a run of it was last tried."""
        found: dict[tuple[str, str], tuple[CaseSkipped, ...]] = {}
        for entry in self.entries:
            if isinstance(entry, CaseSkipped):
                earlier = found.get((entry.san, entry.case), ())
                found[entry.san, entry.case] = (*earlier, entry)
            elif isinstance(entry, StepDone):
                found.pop((entry.san, entry.case), None)
        return found

    @property
    def not_applicable(self) -> Mapping[tuple[str, str], str]:
        """(SAN, case) -> why it cannot be had there. One that was measured there once can be had."""
        had = {(step.san, step.case) for step in self.measured.values()}
        return {place: last[-1].reason for place, last in self.refusals.items() if place not in had}

    @property
    def lacking(self) -> Mapping[str, str]:
        """Settings that the baseline could not have where it was run last -> why."""
        facts = [entry for entry in self.entries if isinstance(entry, SanFacts)]
        return {name: why for one in facts for name, why in one.lacking.items()}

    def is_given_up(self, step: StudyStep) -> bool:
        """Whether its case is not asked for again on its SAN."""
        return len(self.refusals.get((step.san, step.case), ())) >= REFUSALS_MOST

    @property
    def warmups_s(self) -> Mapping[str, float]:
        """Workload -> the warm-up that was found for it."""
        return {entry.workload: entry.seconds for entry in self.entries if isinstance(entry, WarmUpFound)}

    @property
    def san_facts(self) -> Mapping[str, Mapping[str, object]]:
        """SAN -> what carried it, as of its last bring-up."""
        return {entry.san: entry.facts for entry in self.entries if isinstance(entry, SanFacts)}

    def observations(self) -> tuple[Observation, ...]:
        """The measured steps as the judgement takes them. What is computed has no place in time: it cannot drift."""
        computed = {san.name for san in self.study.sans if san.clock == "virtual"}
        return tuple(
            Observation(
                step.case,
                step.workload,
                step.block,
                step.values,
                None if step.san in computed else step.position,
            )
            for step in self.measured.values()
        )

    def run(self, step: StepDone) -> RunDirectory:
        """The run directory of a step. Raises NotARunError when it is gone."""
        return RunDirectory.open(self.path / step.directory)

    @property
    def verdicts(self) -> Verdicts | None:
        """What was concluded; None before `judge` has written it. Raises UserError when the file is damaged."""
        try:
            return VERDICTS_JSON.validate_json((self.path / VERDICTS).read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise UserError(
                f"{self.path / VERDICTS}: damaged",
                f"linerate study verdict {quote(self.path)} makes it again",
            ) from error


def _way_to_study(path: Path) -> str:
    """What to give instead of a folder that is no study directory."""
    if (path / "manifest.json").is_file():
        return f"it is a run: linerate report {quote(path)}"
    if inside := sorted(str(one.parent) for one in path.glob(f"*/{STUDY}")):
        return f"the studies are inside of it: {', '.join(inside)}"
    return "give a directory that `linerate study run` wrote"


def _check_names(path: Path, study: Study, entries: tuple[Entry, ...]) -> None:
    """Raises UserError for an entry that speaks of what the study does not have: they are not of one study."""
    known = {
        "san": {san.name for san in study.sans},
        "case": {case.name for case in study.cases},
        "workload": {workload.name for workload in study.workloads},
    }
    for number, entry in enumerate(entries, start=1):
        for kind, names in known.items():
            name = getattr(entry, kind, None)
            if name is not None and name not in names:
                raise UserError(
                    f"{path}:{number}: {kind} {name!r} is not in {STUDY}",
                    "the two files are not of one study: take the study directory from a backup",
                )
