"""A simulated laboratory: a response with known effects, an interaction, drift and disturbed runs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from linerate.analysis.verdict import Effect, Observation, judge
from linerate.tune import Point, Procedure, Space, TuneRun, TuneStage

NOISE = 0.015  # standard deviation of a run, relative
OUTLIERS = 0.03  # share of runs that something else disturbs
BLOCK = 0.02  # standard deviation of a block
TREND = 0.02  # of a block from its first run to its last, at most


@dataclass
class SimulatedSan:
    """`effects` are those of the last levels, as logarithms; `pairs` are interactions without any main effect."""

    space: Space
    effects: Mapping[int, float]
    pairs: Mapping[tuple[int, int], float] = field(default_factory=dict)
    seed: int = 1
    runs: int = 0

    def true_value(self, point: Point) -> float:
        mains = sum(effect for factor, effect in self.effects.items() if point[factor])
        changed = [1 if level else -1 for level in point]
        return mains + sum(
            effect / 2 * changed[one] * changed[two] for (one, two), effect in self.pairs.items()
        )

    def true_change(self, point: Point) -> float:
        """Against the baseline."""
        return self.true_value(point) - self.true_value(self.space.baseline)

    def measure(self, stage: TuneStage) -> list[TuneRun]:
        dice = random.Random(f"{self.seed}/{stage.name}")
        found = []
        for block in range(1, stage.blocks + 1):
            points = [*stage.points, *stage.points[:1] * (stage.baselines - 1)]
            dice.shuffle(points)
            level, slope = dice.gauss(0, BLOCK), dice.uniform(-TREND, TREND)
            for position, point in enumerate(points):
                value = self.true_value(point) + level + slope * position / len(points) + dice.gauss(0, NOISE)
                if dice.random() < OUTLIERS:
                    value -= dice.uniform(0.1, 0.4)
                found.append(TuneRun(stage.name, block, position, point, value))
        self.runs += len(found)
        return found


def searched(procedure: Procedure, san: SimulatedSan) -> dict[str, list[TuneRun]]:
    """All stages measured to the end."""
    measured: dict[str, list[TuneRun]] = {}
    while (stage := procedure.next(measured)) is not None:
        measured[stage.name] = san.measure(stage)
    return measured


def confirmed(runs: list[TuneRun], baseline: Point) -> Effect:
    """The verdict of a study on the runs of a confirmation."""
    observations = [
        Observation(
            case="baseline" if run.point == baseline else "tuned",
            workload="load",
            block=run.block,
            position=run.position,
            values={"iops": 1000 * math.exp(run.value)},
        )
        for run in runs
    ]
    (effect,) = judge(observations, "baseline", {"load": "iops"}).primary()
    return effect
