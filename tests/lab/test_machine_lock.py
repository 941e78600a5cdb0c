"""One study at a time on a machine: the second one is refused or waits, and a killed holder leaves no lock behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linerate.errors import HostError
from linerate.lab import machine_lock as module
from linerate.lab.machine_lock import VARIABLE, lock_file, machine_lock

from tests.cli.conftest import COMMAND, environment
from tests.lab.conftest import TIMEOUT_S, run, unique, with_rights
from tests.support import need

HOLD = """
import sys
from pathlib import Path
from linerate.lab.machine_lock import machine_lock
with machine_lock("study first", Path("there"), alone=sys.argv[1] == "alone"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of this test alone."""
    path = tmp_path / "machine.lock"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@contextmanager
def _held(how: str = "alone") -> Iterator[subprocess.Popen[str]]:
    """Another process holds it."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, how], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.stdin.close()
        holder.wait(TIMEOUT_S)


def _take(*, alone: bool = True) -> None:
    with machine_lock("study second", Path("here"), alone=alone):
        pass


@pytest.mark.parametrize("alone", [True, False])
def test_the_second_one_is_told_who_holds_it(alone: bool) -> None:
    with _held() as holder, pytest.raises(HostError) as refused:
        _take(alone=alone)
    assert f"study first (process {holder.pid}, since " in refused.value.message
    assert f"in {Path.cwd() / 'there'})" in refused.value.message
    assert "--wait" in refused.value.hint
    _take()


def test_a_killed_holder_leaves_no_lock_behind() -> None:
    with _held() as holder:
        holder.kill()
        holder.wait(TIMEOUT_S)
        _take()


def test_labs_made_by_hand_share_the_machine_and_keep_a_study_out() -> None:
    with _held("shared"):
        _take(alone=False)
        with pytest.raises(HostError, match="this machine is busy with"):
            _take()


def test_who_waits_is_told_for_whom_and_goes_on_when_it_ends() -> None:
    told: list[str] = []
    with _held() as holder:
        assert holder.stdin is not None
        ends = threading.Timer(0.3, holder.stdin.close)
        began = time.monotonic()
        ends.start()
        with machine_lock("study second", Path("here"), alone=True, wait=True, tell=told.append):
            assert time.monotonic() - began > 0.2
        ends.join()
    assert len(told) == 1
    assert f"study first (process {holder.pid}, " in told[0]
    assert "waiting" in told[0]


def test_an_earlier_holder_is_not_named(file: Path) -> None:
    with _held() as gone:
        pass
    with file.open() as text:
        assert str(gone.pid) in text.read()
    with _held():
        file.write_text("torn")
        with pytest.raises(HostError, match="busy with another laboratory"):
            _take()


def test_every_user_may_take_a_lock_that_another_one_made(file: Path) -> None:
    before = os.umask(0o077)
    try:
        _take()
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    if os.geteuid():
        need.missing("changing the owner of a file needs root")
    file.parent.chmod(0o1777)  # there the kernel refuses O_CREAT on files of others, to root as well
    os.chown(file, 65534, 65534)
    _take()


def test_a_link_in_a_folder_for_all_is_not_followed(file: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for make in (file.symlink_to, file.hardlink_to):
        make(victim)
        with pytest.raises(HostError):
            _take()
        file.unlink()
    assert victim.read_text() == "precious"


def test_the_place_does_not_depend_on_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    for folder, mode in ((own, 0o755), (shared, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(module, "_FOLDERS", (own, shared))
    assert lock_file().parent == shared


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [("demo",), ("run", "demo", "--quick"), ("study", "run", "nagle"), ("lab", "up", "base-san")]
)
def test_verbs_that_need_the_machine_are_refused_and_make_nothing(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with _held() as holder:
        done = subprocess.run(
            [*COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=tmp_path,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"linerate: this machine is busy with study first (process {holder.pid}, ")
    assert done.stderr.count("\n") == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.long
def test_a_lab_that_is_up_keeps_no_study_out_but_a_run_inside_does(topology_file: Path) -> None:
    name = unique("idle")
    up = with_rights("user", (*COMMAND, "lab", "up", str(topology_file), "--name", name, "--wait"))
    with _held() as holder:
        assert holder.stdin is not None
        with subprocess.Popen(up, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as waits:
            assert waits.stderr is not None
            assert "waiting until it has ended" in waits.stderr.readline()
            holder.stdin.close()
            assert waits.wait(TIMEOUT_S) == 0
    try:
        _take()
        load = ("run", "--preset", "anvil", "--target", "null:1g")
        with _held():
            inside = run("exec", "--lab", name, "h1", "--", *COMMAND, *load, rights="user")
        assert inside.returncode == 1
        assert "this machine is busy with study first" in inside.stderr
    finally:
        run("down", name, rights="user")
