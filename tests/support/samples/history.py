"""Makes a folder of runs of one workload over many days, with planted changes. SAMPLE DATA: nothing was measured."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from linerate.results import RunDirectory, RunWriter, WorkloadSource
from linerate.results.manifest import FactValue, State
from linerate.results.writer import Judge

from tests.support.samples.synthetic import ENVIRONMENT, START, Clock, Load, write_step

LOAD = Load(intervals=3, warmup=1, volumes=1, points=20, jitter=0.001)
VERSIONS = {"linerate": "0.1.0", "python": "3.11.7"}
NOISE = 0.004


def dated_run(
    path: Path,
    day: float,
    *loads: Load,
    seed: int = 1,
    environment: Mapping[str, FactValue] = ENVIRONMENT,
    versions: Mapping[str, str] = VERSIONS,
    state: State = "complete",
    judge: Judge | None = None,
    source: str = "demo.parm",
) -> RunDirectory:
    """A closed run that began so many days after `START`."""
    clock = Clock()
    clock.time = START + timedelta(days=day)
    writer = RunWriter.create(
        path,
        name="demo",
        workload=WorkloadSource(name=source),
        environment=dict(environment),
        versions=versions,
        now=clock,
    )
    for number, load in enumerate(loads or (LOAD,)):
        seeded = replace(load, spec={**load.spec, "seed": seed})
        write_step(writer, seeded, random.Random(f"{seed}/{number}"), clock)
    return writer.close(state, judge=judge)


def make_history(folder: Path, count: int, *, change_at: int | None = None, factor: float = 0.92) -> datetime:
    """A run per day; from run `change_at` on the rate is `factor` of before, and the kernel is another one.

    Returns the time of the changed run, or of the first.
    """
    dice = random.Random("history")
    for number in range(count):
        changed = change_at is not None and number >= change_at
        rate = 40_000 * (factor if changed else 1.0) * dice.lognormvariate(0, NOISE)
        environment = {**ENVIRONMENT, "host.kernel": "6.19.1" if changed else "6.18.2"}
        dated_run(
            folder / f"run-{number:04d}",
            number,
            replace(LOAD, iops=rate),
            seed=number,
            environment=environment,
        )
    return START + timedelta(days=change_at or 0)
