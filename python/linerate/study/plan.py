"""The plan of a study: which run comes when.

It follows from the study and its seed alone, so that a study which was interrupted goes on as if nothing had happened.

A block holds every case once and the baseline once or twice, in shuffled order; the workloads of a case follow each
other in shuffled order too, because a change of settings costs time and must settle. Blocks are drawn independently:
block 5 is the same whether four blocks or ten come before it.

Every run draws its I/Os from a seed of its own. Runs of one seed would be one run, in modelled time to the bit: however
many blocks, they would prove no more than one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from linerate.filename import slug
from linerate.scale import runs_planned
from linerate.study.model import Case, Study, Workload
from linerate.workload.plan import RUNS_MAX

STEP_COST_S = 1.0
"""Logging in, starting the load, closing the run directory."""
CHANGE_COST_S = 1.0
"""Writing and reading back the settings of a case."""
BRING_UP_COST_S = 3.0
"""Building a SAN."""
MODELLED_SHARE = 0.1
"""Of a run's own time, what it takes to compute it, about."""


_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class StudyStep:
    """One run: a case under a workload in a block.

    `replica` numbers the runs of the baseline in one block: 1 or 2. `position` is the place in the block, from 0.
    """

    block: int
    position: int
    san: str
    case: str
    workload: str
    replica: int = 1

    @property
    def key(self) -> str:
        """Unique in the study; also the end of the run directory's name."""
        again = f"-{self.replica}" if self.replica > 1 else ""
        return f"b{self.block:02d}-{slug(self.workload)}-{slug(self.case)}{again}"


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a study takes, in seconds: with as few blocks as it may need, and with as many."""

    least_s: float
    most_s: float


class StudyPlan:
    """The steps of a study, block by block."""

    def __init__(self, study: Study) -> None:
        self.study = study

    def block(self, number: int) -> tuple[StudyStep, ...]:
        """The steps of block `number` (from 1) in order."""
        study = self.study
        dice = random.Random(f"{study.seed}/{number}")
        steps: list[StudyStep] = []
        for san in _shuffled(study.sans, dice):
            on_san = [workload for workload in study.workloads if workload.san == san.name]
            for case, replica in _shuffled(self._visits(on_san), dice):
                for workload in _shuffled([one for one in on_san if one.name in case.workloads], dice):
                    steps.append(StudyStep(number, len(steps), san.name, case.name, workload.name, replica))
        return tuple(steps)

    def blocks(self) -> Iterator[tuple[StudyStep, ...]]:
        """All blocks that the study may come to."""
        return map(self.block, range(1, self.study.repeat.blocks_max + 1))

    def too_long(self, blocks: int) -> str | None:
        """What is wrong with so many blocks, if they come to more runs than the limit."""
        runs = len(self.block(1))
        if runs * blocks <= RUNS_MAX:
            return None
        return f"{runs * blocks:,} runs ({blocks:,} blocks x {runs:,} runs); at most {RUNS_MAX:,}"

    def io_seed(self, step: StudyStep, number: int | None = None) -> int:
        """Where the I/Os of a run come from: 32 bits, others for every run of the study.

        `number` counts the runs of a search.
        """
        of_search = "" if number is None else f"/{number}"
        return random.Random(f"{self.study.seed}/{step.san}/{step.key}{of_search}").getrandbits(32)

    def duration(self) -> Duration:
        """What the study will take."""
        repeat = self.study.repeat
        block = self.block(1)
        if self.study.scale is not None:
            planned = runs_planned(self.study.search_limits, self.study.scale.parts)
            return Duration(self._seconds(block, planned.least), self._seconds(block, planned.most))
        once_s = self.seconds(block)
        most_s = once_s * repeat.blocks_max
        if repeat.budget_s is not None:
            most_s = max(min(most_s, repeat.budget_s), once_s)
        return Duration(min(once_s * repeat.blocks_min, most_s), most_s)

    def _visits(self, workloads: list[Workload]) -> list[tuple[Case, int]]:
        names = {workload.name for workload in workloads}
        baseline = self.study.baseline
        visits = [(case, 1) for case in self.study.cases if names & set(case.workloads)]
        again = (
            [(baseline, 2)] if self.study.repeat.baselines == 2 and names & set(baseline.workloads) else []
        )
        return visits + again

    def _run_s(self, step: StudyStep) -> float:
        run_s = self.study.workload(step.workload).run_s
        return run_s if self.study.san(step.san).clock == "real" else run_s * MODELLED_SHARE

    def seconds(self, steps: Sequence[StudyStep]) -> float:
        """How long steps of one block take; of a search, with as many runs as are likely at most."""
        scale = self.study.scale
        runs = 1 if scale is None else runs_planned(self.study.search_limits, scale.parts).most
        return self._seconds(steps, runs)

    def _seconds(self, steps: Sequence[StudyStep], runs: int) -> float:
        runs_s = sum(runs * (self._run_s(step) + STEP_COST_S) for step in steps)
        changes = len({(step.san, step.case, step.replica) for step in steps})
        sans = len({step.san for step in steps})
        return runs_s + changes * (CHANGE_COST_S + self.study.repeat.settle_s) + sans * BRING_UP_COST_S


def _shuffled(items: Sequence[_Item], dice: random.Random) -> list[_Item]:
    shuffled = list(items)
    dice.shuffle(shuffled)
    return shuffled
