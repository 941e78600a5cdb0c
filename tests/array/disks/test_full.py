"""File systems that are full: what needs no space goes on, what needs some is refused, and nothing else happens."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import ArrayReport, FileSystemReport

from tests.array.disks.arrays import array_text
from tests.array.disks.small import Small, small_file_system
from tests.array.disks.wire import BLOCK, Initiator, logged_in
from tests.cli.conftest import COMMAND, TIMEOUT_S, environment
from tests.support.serving import fine, serve, serving

pytestmark = pytest.mark.long

IQN = "iqn.2026-11.lab.linerate:full"
SPACE_ALLOCATION_FAILED = (7, 0x27, 7)
"""DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT (SPC-4): what a full pool says too."""
CHUNK = 64 << 10
WRITTEN = 4 << 20
SIZE_MIB = 160


def _array(folder: Path, level: str, pool: bool, disks: str = 'size = "40m"\nsparse = true') -> str:
    volume = 'kind = "pool"\npool = "p0"\nsize = "100m"' if pool else 'kind = "raid"\nraid_set = "r0"'
    pools = '[[storage.pools]]\nname = "p0"\nraid_sets = ["r0"]\n' if pool else ""
    placed = f'path = "{folder}/d.img"\n{disks}\ncount = 5'
    return array_text("full", IQN, placed, level, volume, pools)


def _pattern(number: int) -> bytes:
    return bytes((number * 7 + at) % 251 for at in range(256)) * (CHUNK // 256)


def _write_all(session: Initiator, numbers: int) -> None:
    for at in range(0, WRITTEN, CHUNK):
        answer = session.write(0, at // BLOCK, _pattern(numbers + at // CHUNK))
        assert answer.status == 0, answer.code


def _check_all(session: Initiator, numbers: int) -> None:
    for at in range(0, WRITTEN, CHUNK):
        answer = session.read(0, at // BLOCK, CHUNK)
        assert answer.status == 0, answer.code
        assert answer.data == _pattern(numbers + at // CHUNK), f"at {at}"


def _report() -> ArrayReport:
    return ControlClient.at(find(None)).report()


def _is_refused(session: Initiator) -> None:
    """Writes to new places are refused, some time: what is left of allocated space may still take a little."""
    codes = {session.write(0, (WRITTEN + at) // BLOCK, _pattern(1)).code for at in range(0, 16 << 20, CHUNK)}
    assert SPACE_ALLOCATION_FAILED in codes
    assert codes <= {(0, 0, 0), SPACE_ALLOCATION_FAILED}


def _is_sound() -> None:
    storage = _report().storage
    assert {disk.state for disk in storage.disks} == {"online"}
    assert {one.state for one in storage.raid_sets} == {"optimal"}


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "xfs"])
@pytest.mark.parametrize(
    ("level", "pool"), [("raid5", True), ("raid6", False), ("raid0", True), ("raid10", False)]
)
def test_a_full_file_system_refuses_what_needs_space(
    tmp_path: Path, kind: str, level: str, pool: bool
) -> None:
    size_mib = SIZE_MIB * 2 if kind == "xfs" else SIZE_MIB  # xfs has 300 MiB at least
    if level == "raid10":
        text = _array(tmp_path / f"small-{kind}", level, pool).replace("count = 5", "count = 4")
    else:
        text = _array(tmp_path / f"small-{kind}", level, pool)
    with small_file_system(tmp_path, kind, size_mib) as small:
        with serving(tmp_path, text, enter=small.enter) as portal, logged_in(portal, IQN) as session:
            _write_all(session, 0)
            small.fill()
            _is_refused(session)
            _check_all(session, 0)
            _write_all(session, 100)
            _check_all(session, 100)
            _is_sound()
        _serves_on_after_a_restart(tmp_path, text, small)


def _serves_on_after_a_restart(folder: Path, text: str, small: Small) -> None:
    with serving(folder, text, enter=small.enter) as portal, logged_in(portal, IQN) as session:
        _check_all(session, 100)
        _write_all(session, 200)
        _is_refused(session)
        small.free()
        _write_in_time(session)
        _check_all(session, 200)
        _is_sound()
        if "raid0" not in text:
            assert "everything agrees" in fine("array", "scrub", "r0").stdout


def _write_in_time(session: Initiator) -> None:
    """Some file systems free space a little later than they say."""
    ends = time.monotonic() + 30
    for at in range(0, 16 << 20, CHUNK):
        while (answer := session.write(0, (WRITTEN + at) // BLOCK, _pattern(9))).status != 0:
            assert answer.code == SPACE_ALLOCATION_FAILED
            assert time.monotonic() < ends, "there is space, and writes are refused"
            time.sleep(0.1)


def _file_system() -> FileSystemReport:
    """The only one, once the array has looked."""
    for _ in range(100):
        if found := _report().storage.file_systems:
            (one,) = found
            return one
        time.sleep(0.1)
    raise AssertionError("the array does not look at its file system")


def test_sparse_disks_are_warned_of_in_time(tmp_path: Path) -> None:
    with small_file_system(tmp_path, "tmpfs", SIZE_MIB) as small:
        text = _array(small.inside, "raid5", True)
        with serving(tmp_path, text, enter=small.enter):
            one = _file_system()
            assert one.disks == ("d0", "d1", "d2", "d3", "d4")
            assert one.free_bytes < one.unallocated_bytes
            shown = fine("array", "show", "--seconds", "0.1").stdout
            assert f"{small.inside}: " in shown
            assert "sparse disks may still need" in shown


def test_the_log_tells_of_space_that_may_run_out_and_that_has(tmp_path: Path) -> None:
    with small_file_system(tmp_path, "tmpfs", SIZE_MIB) as small:
        file = tmp_path / "lab.toml"
        file.write_text(_array(small.inside, "raid5", True), "ascii")
        process, portal = serve(file, "--log-format", "json", enter=small.enter)
        events = []
        with process:
            assert process.stderr is not None
            try:
                while not any(event["event"] == "space_low" for event in events):
                    events.append(json.loads(process.stderr.readline()))
                with logged_in(portal, IQN) as session:
                    _write_all(session, 0)
                    small.fill()
                    _is_refused(session)
            finally:
                process.send_signal(signal.SIGTERM)
                _, said = process.communicate(timeout=TIMEOUT_S)
        events += [json.loads(line) for line in said.splitlines()]
        low = next(event for event in events if event["event"] == "space_low")
        assert (low["folder"], low["disks"]) == (str(small.inside), "d0, d1, d2, d3, d4")
        told = [event["disk"] for event in events if event["event"] == "disk_no_space"]
        assert told
        assert len(told) == len(set(told)), "once for each disk, not for each write"


def test_disks_that_are_not_sparse_have_their_space_or_are_not_made(tmp_path: Path) -> None:
    with small_file_system(tmp_path, "tmpfs", SIZE_MIB) as small:
        text = _array(small.inside, "raid5", True, 'size = "20m"')
        with serving(tmp_path, text, enter=small.enter) as portal, logged_in(portal, IQN) as session:
            small.fill()
            for at in range(0, 32 << 20, CHUNK):
                answer = session.write(0, at // BLOCK, _pattern(3))
                assert answer.status == 0, (at, answer.code)


def test_an_array_that_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with small_file_system(tmp_path, "tmpfs", 100) as small:
        file = tmp_path / "large.toml"
        file.write_text(_array(small.inside, "raid5", True, 'size = "40m"'), "ascii")
        command = [*small.enter, *COMMAND, "array", "serve", str(file)]
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode != 0
        assert "d0, d1, d2, d3, d4" in done.stderr
        assert "200 MiB needed, and 100 MiB free" in done.stderr
        assert "sparse" in done.stderr
        assert not list(small.outside.iterdir())
