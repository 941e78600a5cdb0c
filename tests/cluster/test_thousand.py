"""The coordinator of many hosts, on paper: what it gets wrong with many would be wrong with few, and harder to see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.thousand import simulate

MEMORY_BYTES_MAX = 4e6
CPU_S_MAX = 0.02


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [60, pytest.param(300, marks=pytest.mark.long)])
def test_many_hosts_start_together_and_the_loss_of_one_costs_that_one(tmp_path: Path, count: int) -> None:
    found = simulate(count, tmp_path)
    assert found["within_bounds"], "every host starts within the uncertainty of its clock"
    assert found["skew_us"] <= 2 * found["bound_us"]
    assert found["events"] == ["host_lost"]
    assert found["hosts_in_last"] == found["hosts_in_total"] == count - 1
    # Far above what was measured (docs/cluster.md), and far below what a mistake of order would cost.
    assert found["interval_cpu_s"] < CPU_S_MAX * count
    assert found["memory_bytes"] < 100e6 + MEMORY_BYTES_MAX * count
