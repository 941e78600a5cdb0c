"""A study as it is watched: its directory is read whenever its journal has grown, and the run under way is followed.

The comparisons are judged anew after each block, by the same rules as the report. Earlier blocks are judged as well, so
that the page shows how each interval narrowed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from linerate.analysis.verdict import Effect, Observation, find_metric
from linerate.results.files import MANIFEST
from linerate.study import Study, StudyDirectory, StudyStep
from linerate.study.conduct import spent_s
from linerate.study.directory import JOURNAL, RUNS
from linerate.study.judgement import judgement_of
from linerate.watch.feed import Update, clear
from linerate.watch.growing import ChangedFile
from linerate.watch.run import RUN_KINDS, RunSource

SILENCE_S = 5.0
"""After so long without news it is checked whether the process that runs the study still lives."""
PACE_RANGE = (0.5, 5.0)
"""How much faster or slower than planned the rest of a study is taken to be, at most."""
PACE_STEPS = 3
"""Steps after which the pace so far is believed."""


class StudySource:
    """A study directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = StudyDirectory.open(path)
        self.state = _state(self.directory)
        self.run: RunSource | None = None
        """The run under way, or the last one."""
        self._journal = ChangedFile(path / JOURNAL)
        self._news_at = time.monotonic()
        self._judged: dict[int, Sequence[Effect]] = {}

    @property
    def is_over(self) -> bool:
        """Nothing more is to come, unless the study is resumed."""
        return self.state != "running"

    def poll(self) -> Iterator[Update]:
        """What is new. Raises LinerateError when the directory cannot be read."""
        changed = self._journal.changed()
        run_changed = self._follow_newest()
        if changed:
            self.directory = StudyDirectory.open(self.path)
        if changed or run_changed or self._has_died():
            self.state = _state(self.directory)
            self._news_at = time.monotonic()
            yield Update("study", self._shown(), "study")
        if run_changed:
            yield clear(RUN_KINDS)
        for update in self.run.poll() if self.run is not None else ():
            self._news_at = time.monotonic()
            yield update

    def close(self) -> None:
        """Closes its files."""
        if self.run is not None:
            self.run.close()

    def _has_died(self) -> bool:
        """Whether the process of a study that ran has gone without a word; looked at when nothing is new."""
        if self.is_over or time.monotonic() - self._news_at < SILENCE_S:
            return False
        self._news_at = time.monotonic()
        return _state(self.directory) != self.state

    def _follow_newest(self) -> bool:
        """Goes over to a run that began; True if there is one."""
        folder = self.path / RUNS
        places = [place for place in folder.iterdir() if _number(place) and (place / MANIFEST).exists()]
        newest = max(places, key=_number, default=None)
        if newest is None or (self.run is not None and self.run.path == newest):
            return False
        self.close()
        self.run = RunSource(newest)
        return True

    def _shown(self) -> dict[str, Any]:
        directory, study = self.directory, self.directory.study
        return {
            "name": study.name,
            "title": study.title,
            "description": study.description,
            "state": self.state,
            "reason": directory.reason if self.is_over else "",
            "baseline": study.baseline.title or study.baseline.name,
            "blocks": self._blocks(),
            "blocks_min": study.repeat.blocks_min,
            "blocks_max": study.repeat.blocks_max,
            **self._left(),
            "now": self._now(),
            "is_judged": directory.search is None,
            "comparisons": self._comparisons(),
            "trouble": [
                {"run": step.directory, "state": step.state, "reason": step.reason}
                for step in directory.steps
                if step.state != "complete"
            ],
            "not_applicable": [
                {"case": case, "san": san, "reason": reason}
                for (san, case), reason in directory.not_applicable.items()
            ],
        }

    def _blocks(self) -> list[dict[str, int]]:
        """Of each block: its runs that count, and those that are planned."""
        done = Counter(step.block for step in self.directory.measured.values())
        lost = self.directory.not_applicable
        return [
            {
                "block": block[0].block,
                "done": done[block[0].block],
                "planned": sum((step.san, step.case) not in lost for step in block),
            }
            for block in self.directory.plan.blocks()
        ]

    def _left(self) -> dict[str, float]:
        """Seconds until the end, with as few blocks as the study may need and with as many; at the pace so far."""
        directory, plan = self.directory, self.directory.plan
        spent = spent_s(directory.entries)
        over = {step.key for step in directory.steps}
        lost = directory.not_applicable
        done: list[StudyStep] = []
        least_s = most_s = done_s = 0.0
        for block in plan.blocks():
            left = [one for one in block if one.key not in over and (one.san, one.case) not in lost]
            finished = [one for one in block if one.key in over]
            seconds = plan.seconds(left) if left else 0.0
            done += finished
            done_s += plan.seconds(finished) if finished else 0.0
            most_s += seconds
            if block[0].block <= directory.study.repeat.blocks_min:
                least_s += seconds
        low, high = PACE_RANGE
        pace = min(max(spent / done_s, low), high) if len(done) >= PACE_STEPS and done_s else 1.0
        if directory.is_complete:
            least_s = most_s = 0.0
        return {
            "spent_s": round(spent, 1),
            "left_least_s": round(least_s * pace, 1),
            "left_most_s": round(most_s * pace, 1),
        }

    def _now(self) -> dict[str, Any] | None:
        """The step of the run that is under way, and its place in its block."""
        if self.is_over or self.run is None:
            return None
        name = self.run.path.name.partition("-")[2]
        for block in self.directory.plan.blocks():
            for step in block:
                if step.key == name:
                    study = self.directory.study
                    return {
                        "block": step.block,
                        "number": step.position + 1,
                        "of": len(block),
                        "case": study.case(step.case).title or step.case,
                        "workload": study.workload(step.workload).title or step.workload,
                    }
        return {"block": None, "case": name, "workload": ""}  # a warm-up that is looked for

    def _comparisons(self) -> list[dict[str, Any]]:
        """The effects on each workload's metric, as of the last whole block, with the intervals of earlier blocks."""
        blocks = self._whole_blocks()
        if not blocks or self.directory.search is not None:
            return []
        observations = self.directory.observations()
        history = [(block, self._effects(block, observations)) for block in range(1, blocks + 1)]
        study = self.directory.study
        order = {(w.name, c.name): n for n, (w, c) in enumerate(product(study.workloads, study.cases))}
        effects = sorted(history[-1][1], key=lambda one: order[one.workload, one.case])
        return [_comparison(study, effect, history) for effect in effects]

    def _whole_blocks(self) -> int:
        """Blocks of which every run that counts is there, from the first one on; of a study that is over, all."""
        measured = {step.block for step in self.directory.measured.values()}
        last = max(measured, default=0)
        under_way = [one for one in self._blocks() if one["block"] == last and one["done"] < one["planned"]]
        return last - 1 if under_way and not self.is_over else last

    def _effects(self, blocks: int, observations: Sequence[Observation]) -> Sequence[Effect]:
        """The judgement over the first blocks; kept, because those do not change."""
        count = sum(one.block <= blocks for one in observations)
        key = blocks << 32 | count  # a run that was lacking may be made up for by `resume`
        if key not in self._judged:
            study = self.directory.study
            found = judgement_of(self.directory, study.baseline.name, blocks)
            self._judged[key] = tuple(found.primary())
        return self._judged[key]


def _state(directory: StudyDirectory) -> str:
    """The state of the study; "waiting" while nothing has happened in it."""
    return directory.state if directory.entries or directory.state == "running" else "waiting"


def _comparison(
    study: Study, effect: Effect, history: Sequence[tuple[int, Sequence[Effect]]]
) -> dict[str, Any]:
    metric = find_metric(effect.metric)
    margin = 100 * study.margin if effect.scale == "ratio" else metric.margin
    earlier = [(block, _same(effect, effects)) for block, effects in history]
    return {
        "workload": study.workload(effect.workload).title or effect.workload,
        "case": study.case(effect.case).title or effect.case,
        "metric": metric.label,
        "unit": metric.unit,
        "better": metric.better,
        "baseline": effect.baseline,
        "value": effect.value,
        "change": effect.change,
        "low": effect.change_low,
        "high": effect.change_high,
        "change_unit": "%" if effect.scale == "ratio" else metric.unit,
        "margin": margin,
        "verdict": effect.verdict,
        "blocks": effect.blocks,
        "history": [
            {"block": block, "change": one.change, "low": one.change_low, "high": one.change_high}
            for block, one in earlier
            if one is not None
        ],
    }


def _same(effect: Effect, effects: Sequence[Effect]) -> Effect | None:
    return next((one for one in effects if (one.case, one.workload) == (effect.case, effect.workload)), None)


def _number(place: Path) -> int:
    """The number that begins the name of a run directory; 0 if there is none."""
    first = place.name.partition("-")[0]
    return int(first) if first.isdecimal() else 0
