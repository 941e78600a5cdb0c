"""One worker per namespace of a lab: both hosts load one array at once, control traffic apart from the SAN."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.need import missing
from tests.support.patience import a_busy_machine_may_spoil

PROGRAM = Path(__file__).with_name("two_namespaces.py")
LINE_BYTES_PER_S = 100e6 / 8


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.paced
@a_busy_machine_may_spoil
def test_two_hosts_of_a_lab_share_the_line_to_one_array(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False, timeout=200, cwd=tmp_path
    )
    if done.returncode and "no right to build a lab" in done.stderr:
        missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["of_workers"] == found["of_lab"]
    assert len({found["own"], *found["of_workers"].values()}) == 3
    assert (found["error"], found["lost"], found["intervals"]) == ("", {}, 4)
    together = sum(found["bytes"].values()) / found["seconds"]
    # The array's one port feeds both: more would mean that a load went around the switch.
    assert 0.5 * LINE_BYTES_PER_S < together < LINE_BYTES_PER_S
    assert min(found["bytes"].values()) > 0.2 * sum(found["bytes"].values())
