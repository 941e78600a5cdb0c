"""An array on files that is killed under load again and again: no acknowledged write is lost, no block is wrong.

`LINERATE_KILLS` says how often (default 4).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.support.serving import free_ports, serve

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("LINERATE_KILLS", "4"))
SECONDS_PER_KILL = 6.0
IQN = "iqn.2026-11.lab.linerate:killed"
ARRAY = """\
name = "killed"
portals = ["127.0.0.1:{port}"]
[[storage.disks]]
name = "d"
count = 5
kind = "file"
path = "d.img"
size = "64m"
[[storage.raid_sets]]
name = "r5"
level = "raid5"
disks = ["d"]
[[storage.pools]]
name = "p0"
raid_sets = ["r5"]
page = "256k"
[[targets]]
name = "{iqn}"
[[targets.volumes]]
lun = 0
name = "v1"
kind = "pool"
pool = "p0"
size = "96m"
"""
WORKLOAD = """\
name = "checked"
elapsed = {elapsed_s}
warm_up = 0
verify = true
[[volume]]
name = "v"
target = "iscsi://127.0.0.1:{port}/{iqn}/0"
outstanding = 16
[[stream]]
name = "s"
size = {{ min = "512", max = "64k", align = "512" }}
read = 50
"""


@contextmanager
def _load(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """A checked load that has begun; it is stopped in the end."""
    text = WORKLOAD.format(port=port, iqn=IQN, elapsed_s=SECONDS_PER_KILL * KILLS + 60)
    (folder / "load.toml").write_text(text, "ascii")
    command = [
        *COMMAND,
        "run",
        str(folder / "load.toml"),
        "--output",
        str(folder / "run"),
        "--json",
        "--overwrite",
        "all",
    ]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment()) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if json.loads(line)["type"] == "interval":
                break
        try:
            yield run
        finally:
            run.send_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Its array is found by its verbs only."""


@pytest.mark.timeout(60 + 2 * SECONDS_PER_KILL * KILLS)
def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    file = tmp_path / "array.toml"
    file.write_text(ARRAY.format(port=port, iqn=IQN), "ascii")
    array, _ = serve(file)
    chance = random.Random(1)
    with _load(tmp_path, port) as run:
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 1.5))
            assert run.poll() is None, "the load has ended"
            array.kill()
            array.communicate(timeout=TIMEOUT_S)
            array, _ = serve(file)
        time.sleep(2)
        assert run.poll() is None, "the load has ended"
        run.send_signal(signal.SIGINT)
        told, _ = run.communicate(timeout=TIMEOUT_S)
    events = [json.loads(line) for line in told.splitlines()]
    (step,) = (event for event in events if event["type"] == "step_ended")
    assert step["figures"]["total"]["errors"] == 0
    assert step["figures"]["total"]["ios"] > 100
    scrubbed = linerate("array", "scrub", "r5", "--array", "killed")
    assert scrubbed.returncode == 0, scrubbed.stderr
    array.send_signal(signal.SIGTERM)
    _, said = array.communicate(timeout=TIMEOUT_S)
    assert array.returncode == 0, said
