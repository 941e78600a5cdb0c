"""Conducts a study: takes the plan step by step to a laboratory and writes down what came of it.

    for each block: for each SAN: bring up -> for each case: apply, settle -> for each workload: measure, journal

Nothing is held in memory that is not in the journal first. To resume is to walk the same plan and leave out what
the journal holds, so that a process that is killed anywhere loses at most the step under way. In every case
settings are restored and the SAN is taken down.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from linerate.errors import HostError, LinerateError, UserError
from linerate.filename import slug
from linerate.interrupt import heard, undisturbed
from linerate.results.manifest import Stamp
from linerate.settings import ARRAY, FAULTS
from linerate.study.directory import JOURNAL, RUNS, StudyDirectory
from linerate.study.events import BlockBegan, StepBegan, StudyBegan, StudyEvent
from linerate.study.journal import (
    CaseSkipped,
    Entry,
    SanFacts,
    SessionBegan,
    SessionEnded,
    StepDone,
    StepState,
    StudyJournal,
    WarmUpFound,
    disk_error,
)
from linerate.study.laboratory import Laboratory, Measured, SetUp
from linerate.study.model import San, Workload
from linerate.study.plan import StudyStep
from linerate.study.repeat import missing, wanted
from linerate.study.scaling import Searching
from linerate.study.warmup import found, trial

TRIES = 2
"""A step that failed, or whose figures are void, is run once more before the study goes on without it."""
FAILURES_IN_A_ROW = 3
"""Then something is wrong that will not pass."""

Tell = Callable[[StudyEvent], None]


def _settle(seconds: float) -> None:
    if seconds:
        signal.sigtimedwait([], seconds)  # a wait that Ctrl-C ends


def conduct(
    path: Path, laboratory: Laboratory, tell: Tell, *, settle: Callable[[float], None] = _settle
) -> StudyDirectory:
    """Runs the study of a study directory to its end, from its present state.

    Raises the LinerateError that ended it, or KeyboardInterrupt; the journal then says so and all is restored. A study
    that is complete already is returned as it is.
    """
    with StudyJournal(path / JOURNAL) as journal:
        directory = StudyDirectory.open(path)
        if directory.is_complete:
            return directory
        conductor = _Conductor(directory, journal, laboratory, tell, settle)
        try:
            with heard():
                conductor.run()
        except KeyboardInterrupt:
            conductor.end(SessionEnded(state="interrupted", reason="stopped by the user"))
            raise
        except LinerateError as error:
            conductor.end(SessionEnded(state="failed", reason=error.message))
            raise
        except OSError as error:
            failed = disk_error(path / JOURNAL, error)
            conductor.end(SessionEnded(state="failed", reason=failed.message))
            raise failed from error
    return StudyDirectory.open(path)


@dataclass(slots=True)
class _Conductor:
    directory: StudyDirectory
    journal: StudyJournal
    laboratory: Laboratory
    tell: Tell
    settle: Callable[[float], None]
    up: str | None = None
    """The SAN that is up."""
    beyond_baseline: Mapping[str, str] = field(default_factory=dict)
    """Settings of the baseline that this SAN lacks: no case can differ in them."""
    failures: int = 0
    """Steps in a row that failed."""
    began: int = 0
    """Entries of the journal that are of earlier sessions."""

    def run(self) -> None:
        directory, study, plan = self.directory, self.directory.study, self.directory.plan
        duration = plan.duration()
        self.tell(
            StudyBegan(
                name=study.name,
                directory=str(directory.path),
                cases=len(study.cases),
                workloads=len(study.workloads),
                blocks_min=study.repeat.blocks_min,
                blocks_max=study.repeat.blocks_max,
                least_s=duration.least_s,
                most_s=duration.most_s,
            )
        )
        self.began = len(directory.entries)
        self._note(SessionBegan(resumed=self.began > 0))
        try:
            # The second time round only what a refusal that passed has kept from its block is left.
            for steps in chain(self._blocks(), self._blocks()):
                self._block(steps)
        finally:
            with undisturbed():
                self.laboratory.close()
        self._note(self._ended())

    def _ended(self) -> SessionEnded:
        if not (lacks := missing(self.directory)):
            return SessionEnded(state="complete")
        key, why = next(iter(lacks.items()))
        more = f", and {len(lacks) - 1} more" if len(lacks) > 1 else ""
        return SessionEnded(state="incomplete", reason=f"no run of {key}: {why}{more}")

    def end(self, entry: SessionEnded) -> None:
        """Writes down why the study was left, if the disk still takes it."""
        try:
            self._note(entry)
        except LinerateError:
            self.tell(entry)

    def _note(self, entry: Entry) -> None:
        self.journal.add(entry)
        self.directory = StudyDirectory(
            self.directory.path, self.directory.record, (*self.directory.entries, entry)
        )
        self.tell(entry)

    def _blocks(self) -> Iterator[Sequence[StudyStep]]:
        """What is left to do of every block that the repeat rule and the budget ask for."""
        for block in self.directory.plan.blocks():
            asked = wanted(self.directory, block)
            left = [step for step in asked if not self._is_over(step)]
            if not left:
                continue
            if len(left) == len(asked) and self._beyond_budget(asked):
                return
            yield left

    def _is_over(self, step: StudyStep) -> bool:
        """Measured, not to be had, or given up. What failed in an earlier session gets a new chance."""
        entries = self.directory.entries
        tries = sum(
            1
            for at, one in enumerate(entries)
            if isinstance(one, StepDone) and one.key == step.key and (one.state == "void" or at >= self.began)
        )
        return step.key in self.directory.measured or tries >= TRIES

    def _beyond_budget(self, steps: Sequence[StudyStep]) -> bool:
        """Whether a block that has not begun would end too late. The first one always fits."""
        budget_s = self.directory.study.repeat.budget_s
        if budget_s is None or steps[0].block == 1:
            return False
        return spent_s(self.directory.entries) + self.directory.plan.seconds(steps) > budget_s

    def _block(self, steps: Sequence[StudyStep]) -> None:
        seconds = self.directory.plan.seconds(steps)
        self.tell(BlockBegan(block=steps[0].block, steps=len(steps), seconds=seconds))
        number = 0
        for _, visit in groupby(steps, lambda step: (step.san, step.case, step.replica)):
            of_case = list(visit)
            set_up = self._prepared(of_case[0])
            for step in of_case:
                number += 1
                if set_up is not None and self._warms_up_by_rule(step.workload):
                    self._find_warmup(step)
                    set_up = self._prepared(step)
                if set_up is not None:
                    self.tell(
                        StepBegan(
                            block=step.block,
                            number=number,
                            of=len(steps),
                            san=step.san,
                            case=step.case,
                            workload=step.workload,
                        )
                    )
                    set_up = self._step(step, set_up)

    def _prepared(self, step: StudyStep) -> SetUp | None:
        """Brings the step's SAN up if another one is, and makes its case's settings hold. None: they cannot be had."""
        study = self.directory.study
        san = study.san(step.san)
        if self.up != san.name:
            self.up = None
            self._bring_up(san)
        set_up = self.laboratory.apply(study.settings(step.san, step.case))
        if reason := self._lacking(step.case, set_up):
            self._note(CaseSkipped(block=step.block, san=step.san, case=step.case, reason=reason))
            return None
        self.settle(study.repeat.settle_s)
        return set_up

    def _bring_up(self, san: San) -> None:
        """Raises UserError for a setting of the SAN's own that it cannot have: it would be another SAN than the file
        says. Raises HostError if the array of the baseline is not there: it would load others."""
        study = self.directory.study
        on_san = {workload.name for workload in study.workloads if workload.san == san.name}
        cases = [study.settings(san.name, one.name) for one in study.cases if on_san & set(one.workloads)]
        facts = self.laboratory.bring_up(san, cases)
        self.beyond_baseline = self.laboratory.apply(study.settings(san.name, study.baseline.name)).refused
        for name, why in self.beyond_baseline.items():
            if name in san.settings:
                raise UserError(f"{san.name} cannot have its {name}: {why}", "see `linerate lab probe`")
            if name == ARRAY:
                what = f"{san.name} cannot have the baseline's {name}: {why}"
                raise HostError(
                    what, "let the baseline load an array that can be had, or add what is missing"
                )
        self.up = san.name
        self._note(SanFacts(san=san.name, facts=dict(facts), lacking=dict(self.beyond_baseline)))

    def _lacking(self, case: str, set_up: SetUp) -> str:
        """Why a case cannot be had: a setting of its own was refused, or it differs from the baseline in nothing that
        the baseline could have here. Empty: it can."""
        changed = self.directory.study.case(case).changed
        common = self.beyond_baseline
        own = {name: why for name, why in set_up.refused.items() if name in changed and name not in common}
        if not own and changed and all(name in common for name in changed):
            own = {name: why for name, why in common.items() if name in changed}
        return "; ".join(f"{name}: {why}" for name, why in own.items())

    def _warms_up_by_rule(self, workload: str) -> bool:
        """Whether its warm-up is still to be found."""
        return (
            self.directory.study.workload(workload).until_steady and workload not in self.directory.warmups_s
        )

    def _find_warmup(self, step: StudyStep) -> None:
        """Runs the baseline until it is steady, and writes down how long that took."""
        study = self.directory.study
        workload = study.workload(step.workload)
        settings = study.settings(step.san, study.baseline.name)
        quiet = {name: value for name, value in settings.items() if name != FAULTS}
        set_up = self.laboratory.apply(quiet)
        self.settle(study.repeat.settle_s)
        place = self._new_place(f"warm-up-{slug(step.workload)}")
        record = {
            "study": study.name,
            "san": step.san,
            "case": study.baseline.name,
            "settings": set_up.readback,
        }
        measured = self.laboratory.measure(trial(workload), self.directory.path / place, record)
        seconds, steady = found(workload, measured)
        self._note(WarmUpFound(workload=step.workload, seconds=seconds, steady=steady, directory=place))

    def _workload(self, name: str) -> Workload:
        """With the warm-up that was found for it."""
        workload = self.directory.study.workload(name)
        warmup_s = self.directory.warmups_s.get(name)
        return workload if warmup_s is None else workload.timed(warmup_s, workload.elapsed_s)

    def _step(self, step: StudyStep, set_up: SetUp) -> SetUp | None:
        """Runs a step, a second time if need be. Gives the settings that hold afterwards; None: the case is lost."""
        while True:
            entry, error = self._tried(step, set_up)
            self._note(entry)
            if entry.state == "complete":
                self.failures = 0
                return set_up
            if error is not None:
                self.failures += 1
                if self.failures >= FAILURES_IN_A_ROW or isinstance(error, UserError):
                    raise error
                again = self._brought_back(step)
                if again is None:
                    return None
                set_up = again
            if self._is_over(step):
                return set_up

    def _brought_back(self, step: StudyStep) -> SetUp | None:
        """The SAN built anew after a failure: its state is unknown."""
        self.laboratory.close()
        self.up = None
        return self._prepared(step)

    def _tried(self, step: StudyStep, set_up: SetUp) -> tuple[StepDone, LinerateError | None]:
        if self.directory.study.scale is not None:
            return self._searched(step, set_up)
        place = self._new_place(step.key)
        error: LinerateError | None = None
        measured: Measured | None = None
        try:
            workload = self._workload(step.workload).seeded(self.directory.plan.io_seed(step))
            measured = self.laboratory.measure(
                workload, self.directory.path / place, self._record(step, set_up)
            )
        except LinerateError as failure:
            error = failure
        state: StepState = (
            "failed" if measured is None else "void" if measured.stamp == "void" else "complete"
        )
        reason = error.message if error else measured.reason if measured else ""
        values = measured.values if measured else {}
        return _done(step, place, state, reason, measured.stamp if measured else None, values), error

    def _searched(self, step: StudyStep, set_up: SetUp) -> tuple[StepDone, LinerateError | None]:
        """Goes on with the search of a step to its end. What is in the journal is not run again."""
        searching = Searching(self.directory.study, step, self.directory.loads.get(step.key, ()))
        place, void = "", 0
        try:
            while (task := searching.next()) is not None:
                place = self._new_place(f"{step.key}-{task.load}{task.name}")
                workload = searching.at(self._workload(step.workload), task)
                record = self._record(step, set_up)
                measured = self.laboratory.measure(workload, self.directory.path / place, record)
                finite = replace(measured, values=_finite(measured.values))
                entry = searching.entry(task, workload, finite, place)
                self._note(entry)
                searching.add(entry)
                void = void + 1 if entry.state == "void" else 0
                if void >= TRIES:
                    return _done(step, place, "void", entry.reason, "void", {}), None
        except LinerateError as failure:
            return _done(step, place, "failed", failure.message, None, {}), failure
        place = searching.place or place
        return _done(step, place, "complete", "", None, searching.values()), None

    def _record(self, step: StudyStep, set_up: SetUp) -> dict[str, Any]:
        """What the manifest says about the network under test."""
        return {
            "study": self.directory.study.name,
            "san": step.san,
            "case": step.case,
            "workload": step.workload,
            "block": step.block,
            "position": step.position,
            "settings_asked": dict(self.directory.study.settings(step.san, step.case)),
            "settings": dict(set_up.readback),
            "settings_refused": dict(set_up.refused),
        }

    def _new_place(self, key: str) -> str:
        """A directory that does not exist yet. A step that was cut off has left one with a number of its own."""
        runs = self.directory.path / RUNS
        first = [path.name.split("-", 1)[0] for path in runs.iterdir()] if runs.is_dir() else []
        numbers = [int(number) for number in first if number.isdecimal()]  # others' files may lie there too
        return f"{RUNS}/{max(numbers, default=0) + 1:03d}-{key}"


def _done(
    step: StudyStep,
    place: str,
    state: StepState,
    reason: str,
    stamp: Stamp | None,
    values: Mapping[str, float],
) -> StepDone:
    return StepDone(
        key=step.key,
        block=step.block,
        position=step.position,
        san=step.san,
        case=step.case,
        workload=step.workload,
        replica=step.replica,
        directory=place,
        state=state,
        reason=reason,
        stamp=stamp,
        values=_finite(values),
    )


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    """JSON has no other numbers, and a journal that cannot be read again is worth nothing."""
    return {name: value for name, value in values.items() if math.isfinite(value)}


def spent_s(entries: Sequence[Entry]) -> float:
    """Time that the study has run, over all its sessions."""
    total = 0.0
    began = last = None
    for entry in entries:
        if isinstance(entry, SessionBegan):
            if began is not None and last is not None:
                total += (last - began).total_seconds()
            began = entry.at
        last = entry.at
    if began is not None and last is not None:
        total += (last - began).total_seconds()
    return total
