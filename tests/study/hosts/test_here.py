"""A study of a host that exists: its settings change with the cases, and always come back.

Each test has a network namespace to itself, in which the loopback device is the adapter.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import need

pytestmark = pytest.mark.long

STUDY = """\
title = "Frames of the loopback device"

[[san]]
name = "here"

[[san.host]]
name = "me"
devices = ["lo"]
volumes = ["null:67108864"]

[[workload]]
name = "read"
file = "load.toml"
metric = "mib_s"
elapsed = "0.4s"
warm_up = "0s"

[baseline]
settings = { mtu = 1500 }

[[case]]
name = "jumbo"
settings = { mtu = 9000 }

[[case]]
name = "engine"
settings = { toe = "on" }

[repeat]
blocks_min = BLOCKS
blocks_max = BLOCKS
settle = "0s"
"""

WORKLOAD = """\
[[volume]]
name = "v1"
target = "null:67108864"

[[stream]]
name = "read"
size = "1m"
"""

SCRIPT = """\
import fcntl, signal, socket, struct, subprocess, sys
from pathlib import Path

def mtu():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return struct.unpack("16xi", fcntl.ioctl(probe, 0x8921, struct.pack("16sxxxx", b"lo"))[:20])[0]

def linerate(*words, check=True):
    return subprocess.run([sys.executable, "-m", "linerate.cli", *words], check=check, stdout=subprocess.DEVNULL)
"""


def inside(folder: Path, body: str) -> list[int]:
    """Runs a script in a network namespace of its own; what it prints as JSON."""
    done = subprocess.run(
        [*need.unshare("--net", "--mount"), sys.executable, "-c", SCRIPT + body],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "load.toml").write_text(WORKLOAD)
    (tmp_path / "frames.toml").write_text(STUDY.replace("BLOCKS", "2"))
    (tmp_path / "long.toml").write_text(STUDY.replace("BLOCKS", "50"))
    return tmp_path


def test_settings_follow_the_cases_and_come_back(folder: Path) -> None:
    before, after = inside(
        folder, "before = mtu(); linerate('run', 'frames.toml', '--output', 'out'); print([before, mtu()])"
    )
    assert before == after
    asked = {}
    for path in (folder / "out/runs").iterdir():
        san = json.loads((path / "manifest.json").read_bytes())["steps"][0]["san"]
        asked[san["case"]] = san["settings"]["mtu"]
    assert asked == {"baseline": 1500, "jumbo": 9000}
    journal = (folder / "out/journal.jsonl").read_text()
    assert "Linux has no TCP offload engine" in journal


def test_a_killed_study_leaves_a_journal_that_restores_its_host(folder: Path) -> None:
    body = """
before = mtu()
command = [sys.executable, "-m", "linerate.cli", "run", "long.toml", "--output", "out"]
study = subprocess.Popen(command, stdout=subprocess.DEVNULL)
while study.poll() is None and mtu() == before:
    signal.sigtimedwait([], 0.01)
study.kill()
study.wait()
killed = mtu()
linerate("host", "restore", "out/settings.jsonl")
print([before, killed, mtu()])
"""
    before, killed, restored = inside(folder, body)
    assert killed in (1500, 9000)
    assert restored == before


def test_a_full_disk_ends_the_study_with_its_name_and_more_room_lets_it_go_on(folder: Path) -> None:
    body = """
def mount(size, *options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "none", "small"], check=True)

before = mtu()
Path("small").mkdir()
mount("160k")
full = subprocess.run(
    [sys.executable, "-m", "linerate.cli", "run", "frames.toml", "--output", "small/out"],
    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
)
assert "no space left" in full.stderr and "linerate study resume small/out" in full.stderr, full.stderr
left = mtu()
mount("64m", "remount")
more = subprocess.run([sys.executable, "-m", "linerate.cli", "study", "resume", "small/out"], stdout=subprocess.DEVNULL)
print([before, left, full.returncode, more.returncode])
"""
    before, left, full, more = inside(folder, body)
    assert left == before
    assert (full, more) == (1, 0)
