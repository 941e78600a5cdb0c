"""Load hosts that make trouble in a search: each ends it with a sentence, and nothing is left behind.

Worker processes are real; an `ssh` of the test starts them on this machine, as on hosts of other names.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, Done, environment, linerate
from tests.scale.test_command import workload
from tests.support import need

OLDER = """\
import runpy, sys
from linerate import _core
_core.__version__ = "0.0.1"
sys.argv = ["worker", "older"]
runpy.run_module("linerate.cluster.worker", run_name="__main__")
"""
# As the real one: the words after the host make one line for the remote user's shell.
SSH = """\
#!/bin/sh
while [ "$1" != "--" ]; do shift; done
host=$2
shift 2
case "$host" in
away) echo "ssh: connect to host away port 22: Connection timed out" >&2; exit 255 ;;
stranger) echo "Host key verification failed." >&2; exit 255 ;;
denied) echo "tester@denied: Permission denied (publickey)." >&2; exit 255 ;;
older) exec PYTHON FOLDER/older.py ;;
cramped) exec unshare --map-root-user --mount sh -c \\
    'mount -t tmpfs -o size=2m none FOLDER/small && exec sh -c "$1"' sh "exec $*" ;;
full*) exec unshare --map-root-user --mount sh -c \\
    'mount -t tmpfs -o size="$1" none "$TMPDIR" && exec sh -c "$2"' sh "${host#full}" "exec $*" ;;
esac
exec sh -c "exec $*"
"""
PLACES = ("--hosts-python", sys.executable, "--hosts-address", "127.0.0.1")
OPTIONS = ("--over", "hosts", "--target", "null:64m", "--no-headroom", "--no-down", "--json")
TIMEOUT_S = 200.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def _ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "older.py").write_text(OLDER, "ascii")
    script = tmp_path / "bin" / "ssh"
    script.write_text(SSH.replace("PYTHON", sys.executable).replace("FOLDER", str(tmp_path)), "ascii")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


def searched(folder: Path, hosts: str, *more: str, elapsed: str = "0.4s") -> Done:
    """`linerate scale --over hosts` on these hosts, into `folder/out`."""
    file = workload(folder, elapsed, "0.2s")
    return linerate(
        "scale", file, *OPTIONS, "--hosts", hosts, *PLACES, "--output", str(folder / "out"), *more
    )


def assert_nothing_left(folder: Path) -> None:
    """No file of a host, and no process that works for this search."""
    until = time.monotonic() + 20
    while left := [*(folder / "tmp").iterdir(), *workers(folder)]:
        assert time.monotonic() < until, left
        time.sleep(0.1)


def workers(folder: Path) -> dict[int, str]:
    """Process id -> command line of the workers that this test has started."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                mine = f"TMPDIR={folder / 'tmp'}".encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended, or is of another user
            if mine and ("linerate.cluster.worker" in words or "older.py" in words):
                found[int(entry.name)] = words
    return found


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("away", "ssh: connect to host away port 22: Connection timed out"),
        ("stranger", "Host key verification failed."),
        ("denied", "Permission denied (publickey)"),
    ],
)
def test_a_host_that_ssh_does_not_reach_ends_the_search_before_the_first_run(
    tmp_path: Path, host: str, message: str
) -> None:
    done = searched(tmp_path, f"load1,{host}")
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stderr.split())
    assert f"host {host}: the worker did not start:" in said
    assert message in said
    assert "`linerate hosts check` says what is missing there" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
    assert_nothing_left(tmp_path)


def test_a_host_with_another_version_is_refused(tmp_path: Path) -> None:
    done = searched(tmp_path, "load1,older")
    assert done.returncode == 2, done.stdout
    said = " ".join(done.stderr.split())
    assert "host older has Linerate 0.0.1, this machine" in said
    assert "linerate hosts install" in said
    assert not (tmp_path / "out").exists()
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("size", ["8k", "48k"])
def test_a_host_whose_disk_is_full_ends_the_search(tmp_path: Path, size: str) -> None:
    """At 8 KiB no run begins there; at 48 KiB the intervals of the first fill it."""
    tried = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        check=False,
    )
    if tried.returncode:
        need.missing("no right to mount a small disk")
    done = searched(tmp_path, f"full{size},load2", elapsed="6s")
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stderr.split())
    assert f"host full{size}: " in said
    assert "no space left on its disk" in said
    assert "another TMPDIR" in said
    for path in (tmp_path / "out").glob("*-hosts-*"):
        assert RunDirectory.open(path).manifest.state == "failed"
    assert_nothing_left(tmp_path)


def test_a_volume_on_a_full_file_system_of_a_host_is_named(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    file = tmp_path / "writes.toml"
    volume = f'{{ name = "v1", target = "{tmp_path}/small/new.bin", size = "16m", create = true }}'
    stream = '{ name = "s", size = "4k", read = 90 }'
    file.write_text(f'elapsed = "20s"\nvolume = [{volume}]\nstream = [{stream}]\n', "ascii")
    words = ("--hosts", "cramped", *PLACES, "--overwrite", "all", "--output", str(tmp_path / "out"))
    done = linerate("run", file, *words)
    if "Operation not permitted" in done.stderr or "permission denied" in done.stderr:
        need.missing("no right to mount a small disk")
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stderr.split())
    assert f"host cramped: volume cramped/v1: {tmp_path}/small/new.bin: write of 4096 bytes" in said
    assert "-> make room in the file system" in said
    assert RunDirectory.open(tmp_path / "out").manifest.state == "failed"
    assert_nothing_left(tmp_path)


def dying(folder: Path, wait_s: float) -> tuple[list[dict[str, Any]], int, str]:
    """The runs, the exit code and the errors of a search whose second host dies so long after its first run."""
    file = workload(folder, "3s", "0.2s")
    words = ("scale", file, *OPTIONS, "--hosts", "load1,load2", *PLACES, "--output", str(folder / "out"))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *words], text=True, env=environment(), **pipes) as process:
        assert process.stdout is not None
        made = []
        for line in process.stdout:
            made.append(json.loads(line))
            if made[-1]["load"] == 2:
                break
        time.sleep(wait_s)
        (victim,) = [pid for pid, said in workers(folder).items() if said.split()[-1] == "load2"]
        os.kill(victim, signal.SIGKILL)
        _, told = process.communicate(timeout=TIMEOUT_S)
    return made, process.returncode, " ".join(told.split())


def test_a_host_that_dies_in_a_run_ends_the_search_and_marks_the_run(tmp_path: Path) -> None:
    """The runs before it stay readable, and so does what the lost host has measured."""
    made, code, said = dying(tmp_path, 1.5)
    assert code == 1
    assert "-hosts-2: host load2 was lost (its worker has ended)" in said
    assert "see that the host is up, then search once more" in said
    record = json.loads((tmp_path / "out" / "scale.json").read_text())
    assert [run["load"] for run in record["runs"]] == [one["load"] for one in made]
    last = RunDirectory.open(max((tmp_path / "out").glob("*-hosts-*")))
    assert len(record["runs"]) + 1 == int(last.path.name[:3]), "the lost one counts for nothing"
    assert last.manifest.validity is not None
    assert last.manifest.validity.stamp == "caution"
    assert "host_lost" in {event.kind for event in last.events}
    shown = linerate("report", str(tmp_path / "out"))
    assert shown.returncode == 0, shown.stderr
    assert "load2" not in shown.stdout
    (spool,) = (tmp_path / "tmp").glob("linerate-spool-*/*/*-load2")
    assert (spool / "intervals.spool").exists(), "what it measured is its own"
    assert not workers(tmp_path)


def test_a_host_that_dies_between_two_runs_is_named(tmp_path: Path) -> None:
    """Whether the next run has begun or not."""
    made, code, said = dying(tmp_path, 0.0)
    assert code == 1
    assert re.search(r"host load2( was lost \(|: )its worker has ended", said), said
    assert "see that the host is up" in said
    assert "defect of Linerate" not in said
    record = json.loads((tmp_path / "out" / "scale.json").read_text())
    assert len(record["runs"]) == len(made)
    assert not workers(tmp_path)
