"""Paths fail under load, in namespaces: I/O goes on elsewhere in time, and every block is what it should be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.lab.conftest import unique, with_rights
from tests.support import need
from tests.support.patience import a_busy_machine_may_spoil

pytestmark = pytest.mark.long

FAILOVER_S = 1.5
"""From the fault to the first requeued I/O that completes elsewhere, with default settings."""
SEEDS = (
    (("kernel", range(1, 5)), ("user", range(6, 10)))
    if need.IN_CI
    else (("kernel", (1, 2)), ("user", (6, 7)))
)
"""Schedules of each fabric; `python -m tests.multipath.failover NAME FABRIC SEED ...` plays any."""
PER_LAB = 2
TIMEOUT_S = 400.0


def played(fabric: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Schedules one after the other, in a lab of their own."""
    name = unique(f"failover-{fabric}-{seeds[0]}")
    command = (sys.executable, "-m", "tests.multipath.failover", name, fabric, *map(str, seeds))
    done = subprocess.run(
        with_rights("user", command), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(3 * TIMEOUT_S)
@pytest.mark.paced
@a_busy_machine_may_spoil
def test_paths_fail_and_no_application_notices() -> None:
    """Mostly waits, so several labs play at once."""
    labs = [
        (fabric, seeds[at : at + PER_LAB]) for fabric, seeds in SEEDS for at in range(0, len(seeds), PER_LAB)
    ]
    with ThreadPoolExecutor(len(labs)) as pool:
        schedules = [one for lab in pool.map(lambda lab: played(*lab), labs) for one in lab]
    assert [one["seed"] for one in schedules] == [seed for _, seeds in labs for seed in seeds]
    for one in schedules:
        print(f"seed {one['seed']}: {[fault['fault'] for fault in one['faults']]}")
        assert (one["outcome"], one["error"], one["errors"]) == ("completed", "", 0)
        assert not [
            event for event in one["events"] if event["kind"] in ("io_error", "miscompare", "no_path")
        ]
        assert one["ios"] > 500
        for broken in (fault for fault in one["faults"] if fault["what"] == "fault"):
            assert 0 <= _failover_s(one, broken["at_s"]) <= FAILOVER_S, (one["seed"], broken["fault"])


def _failover_s(one: dict[str, Any], at_s: float) -> float:
    """Seconds until the first I/O that the fault had requeued completed on the other path."""
    later = [event for event in one["events"] if event["kind"] == "failover" and event["at_s"] >= at_s]
    assert later, (one["seed"], one["events"])
    return float(later[0]["at_s"]) - at_s
