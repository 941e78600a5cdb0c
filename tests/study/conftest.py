"""Small studies to conduct on paper."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from linerate.study import Study, StudyDirectory, parse_study

from tests.support import need

TEXT = """\
title = "Jumbo frames and Nagle"
seed = 7

[[san]]
topology = "base-san"

[[san]]
topology = "congested-san"

[[workload]]
name = "seqread"
file = "dell-nic/256k-seq-read.vdb"
metric = "mib_s"
elapsed = "2s"
warm_up = "1s"

[[workload]]
name = "random"
file = "dell-nic/8k-random.vdb"
metric = "iops"
elapsed = "2s"
warm_up = "1s"

[[workload]]
name = "congested"
san = "congested-san"
file = "dell-nic/256k-seq-read.vdb"
metric = "mib_s"
elapsed = "2s"
warm_up = "1s"

[baseline]
settings = { mtu = 9000, nagle = false }

[[case]]
name = "default"
settings = { mtu = 1500 }

[[case]]
name = "nagle on"
settings = { nagle = true }
workloads = ["seqread", "random"]

[[case]]
name = "offload"
settings = { toe = true }

[repeat]
blocks_min = 3
blocks_max = 5
"""


@pytest.fixture
def study() -> Study:
    return parse_study(TEXT)


@pytest.fixture
def place(tmp_path: Path, study: Study) -> Path:
    """A study directory in which nothing has happened yet."""
    return StudyDirectory.create(tmp_path / "study", study, source=TEXT).path


def run_study(folder: Path, text: str) -> Path:
    """The directory of a study that was run as a command of its own: a virtual SAN wants a process with one thread."""
    probe = subprocess.run(
        [sys.executable, "-c", "from linerate.lab import enter; enter()"], capture_output=True, text=True
    )
    if probe.returncode:
        need.missing(f"no virtual SAN here: {probe.stderr.strip().splitlines()[-1]}")
    (folder / "mine.toml").write_text(text)
    command = [sys.executable, "-m", "linerate.cli", "run", "mine.toml", "--output", "out", "--json"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    return folder / "out"
