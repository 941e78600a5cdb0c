"""Small studies to conduct on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.study import Study, StudyDirectory, parse_study

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
