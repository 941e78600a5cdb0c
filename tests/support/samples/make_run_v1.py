"""Makes the sample of run format 1: `python -m tests.support.samples.make_run_v1 DIRECTORY`.

The sample is checked in and never made again for format 1; this file says what is in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from linerate.analysis import check_run
from linerate.results import RunDirectory

from tests.support.samples.synthetic import Load, make_run

LOADS = [
    Load(name="rd1", intervals=12, warmup=2, volumes=4, points=60),
    Load(
        name="rd2",
        intervals=12,
        warmup=2,
        volumes=4,
        points=60,
        size_bytes=262144,
        iops=4000,
        read_percent=100,
    ),
    Load(
        name="rd3",
        intervals=12,
        warmup=2,
        volumes=4,
        points=60,
        size_bytes=262144,
        iops=3500,
        read_percent=0,
        errors=2,
    ),
]


def make(path: Path) -> RunDirectory:
    return make_run(path, LOADS, name="three workloads", seed=41, judge=check_run)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
