"""How far a study is: runs that count, time that it took, and time that is left."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.study.conduct import spent_s
from linerate.study.directory import StudyDirectory
from linerate.study.plan import Duration
from linerate.study.repeat import wanted

_PACE_LEAST, _PACE_MOST = 0.5, 4.0
_RUNS_LEAST = 3
"""From so many runs on the study's own pace counts, and not the plan's."""


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """How far a study is."""

    measured: int
    """Runs whose figures count."""
    left_least: int
    """Runs that are still to come, with as few blocks as the study may need."""
    left_most: int
    """With as many."""
    spent_s: float
    left_s: Duration
    """Time that is left, at the pace of the runs so far."""

    @property
    def share(self) -> float:
        """Done, 0 to 1, of as many blocks as the study may come to."""
        whole_s = self.spent_s + self.left_s.most_s
        return self.spent_s / whole_s if whole_s > 0 and self.left_most else 1.0


def study_progress(directory: StudyDirectory) -> StudyProgress:
    """How far a study is by its journal. Later blocks count as its repeat rule asks for them now."""
    study, plan = directory.study, directory.plan
    runs = {"least": 0, "most": 0}
    seconds = {"least": 0.0, "most": 0.0}
    for block in plan.blocks() if not directory.is_complete else ():
        left = [step for step in wanted(directory, block) if step.key not in directory.measured]
        if not left:
            continue
        for bound in ("least", "most") if block[0].block <= study.repeat.blocks_min else ("most",):
            runs[bound] += len(left)
            seconds[bound] += plan.seconds(left)
    spent = spent_s(directory.entries)
    pace = _pace(directory, spent)
    least_s, most_s = seconds["least"] * pace, seconds["most"] * pace
    if study.repeat.budget_s is not None:
        most_s = max(min(most_s, study.repeat.budget_s - spent), least_s)
    return StudyProgress(
        len(directory.measured), runs["least"], runs["most"], spent, Duration(least_s, most_s)
    )


def _pace(directory: StudyDirectory, spent: float) -> float:
    """Time that runs have taken, compared with the plan's."""
    ended = {step.key for step in directory.steps}
    if len(ended) < _RUNS_LEAST:
        return 1.0
    blocks = directory.plan.blocks()
    planned_s = sum(
        directory.plan.seconds(steps)
        for block in blocks
        if (steps := [step for step in block if step.key in ended])
    )
    return min(max(spent / planned_s, _PACE_LEAST), _PACE_MOST) if planned_s > 0 else 1.0
