"""A laboratory that exists on paper: figures known in advance, with noise from a seed, and faults on request.

`python -m tests.support.simulated DIR STATE` conducts the study of a directory in a process that a test can kill. STATE
is the file with its settings, which a real host keeps across such a death.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linerate.errors import LinerateError
from linerate.results import RunWriter, WorkloadSource
from linerate.study.conduct import conduct
from linerate.study.laboratory import Measured, SetUp
from linerate.study.model import San, Settings, Workload

Fault = LinerateError | OSError | KeyboardInterrupt


@dataclass
class SimulatedLaboratory:
    """`lacking` are settings that it does not have; a fault is raised by the n-th run, from 1."""

    effects: Mapping[tuple[str, Any], float] = field(default_factory=dict)
    """(setting, value) -> factor on every figure."""
    noise: float = 0.002
    lacking: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[int, Fault] = field(default_factory=dict)
    void: frozenset[int] = frozenset()
    """Runs that are void."""
    pace_s: float = 0.0
    """How long a run takes."""
    state: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    runs: int = 0
    warmups_s: list[float] = field(default_factory=list)
    """Of every run. A run takes some seconds to reach its rate."""
    seeds: list[int] = field(default_factory=list)
    """Of every run's I/Os."""

    def bring_up(self, san: San, cases: Iterable[Settings]) -> Mapping[str, Any]:
        self.restore()
        self.log.append(f"up {san.name}")
        return {"fabric": "paper"}

    def apply(self, settings: Settings) -> SetUp:
        self._hold({name: value for name, value in settings.items() if name not in self.lacking})
        refused = {name: self.lacking[name] for name in settings if name in self.lacking}
        return SetUp(dict(self.settings), refused)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        self.runs += 1
        with RunWriter.create(directory, name=workload.name, workload=WorkloadSource(name="paper")) as writer:
            if fault := self.faults.get(self.runs):
                raise fault
            if self.pace_s:
                signal.sigtimedwait([], self.pace_s)
            writer.begin_step(workload.name, spec={}, facts={}, san=record)
            writer.end_step()
            writer.close("complete")
        self.log.append(f"run {record['case']} {workload.name}")
        dice = random.Random(f"{record['case']} {record.get('block')} {record.get('position')}")
        factor = dice.gauss(1.0, self.noise)
        for (name, value), effect in self.effects.items():
            factor *= effect if self.settings.get(name) == value else 1.0
        void = self.runs in self.void
        values = {workload.metric: 100.0 * factor}
        series = [min(100.0, 20.0 * (second + 1)) for second in range(round(workload.elapsed_s))]
        self.warmups_s.append(workload.warmup_s)
        self.seeds += [workload.spec.seed] if workload.spec else []
        return Measured(values, "void" if void else "valid", "the fabric fell behind" if void else "", series)

    def restore(self) -> None:
        self._hold({})

    def close(self) -> None:
        self.restore()
        self.log.append("down")

    def _hold(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        if self.state is not None:
            self.state.write_text(json.dumps(self.settings))


if __name__ == "__main__":
    conduct(
        Path(sys.argv[1]),
        SimulatedLaboratory(pace_s=0.005, state=Path(sys.argv[2])),
        lambda event: None,
        settle=lambda seconds: None,
    )
