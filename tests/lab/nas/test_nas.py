"""A NAS in a lab: smbd in the array's namespace, built without root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from linerate.errors import HostError
from linerate.lab import Lab
from linerate.lab.supervisor import smbd

from tests.lab.conftest import COMMAND, run, unique, with_rights
from tests.support import need

HOST, FILE = "h1", "n1.v1"
END_S = 30.0
TOPOLOGY = """
[link]
rate = "1gbit"
[[switch]]
name = "sw1"
[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1" }]
[[array]]
name = "n1"
kind = "nas"
KEYS
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v{n}", count = 2, size = "4m" }]
"""
WORKLOAD = """\
sd=sd1,lun=URL,threads=8
wd=wd1,sd=sd1,xfersize=64k,rdpct=50
rd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1
"""


def _up(folder: Path, name: str, keys: str = "") -> Lab:
    for tool in ("smbd", "pdbedit", "unshare"):
        need.tool(tool)
    file = folder / "nas.toml"
    file.write_text(TOPOLOGY.replace("KEYS", keys))
    up = run("up", str(file), "--name", name, rights="user")
    assert up.returncode == 0, up.stderr
    return Lab.look(name)


@pytest.fixture(scope="module")
def nas_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with a NAS in memory."""
    with _up(tmp_path_factory.mktemp("nas"), unique("nas")) as lab:
        yield lab
        lab.down()


def test_a_run_in_the_lab_opens_a_file_and_its_cpu_is_that_of_the_array(nas_lab: Lab, tmp_path: Path) -> None:
    url = nas_lab.volume_urls(HOST)[0].url
    assert url == "smb://10.231.1.101:445/share/v1.img"
    before = nas_lab.counters()
    workload = tmp_path / "writes.vdb"
    workload.write_text(WORKLOAD.replace("URL", url))
    load = (sys.executable, "-m", "linerate.cli", "run", str(workload), "--output", str(tmp_path / "out"))
    done = run("exec", "--lab", nas_lab.name, HOST, "--", *load, rights="user")
    assert done.returncode == 0, done.stdout + done.stderr
    used_s = nas_lab.counters()["array.n1.cpu_s"] - before["array.n1.cpu_s"]
    assert 0.02 < used_s < 60
    secret = nas_lab.smb_login()["secret"].get_secret_value()
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    assert secret not in done.stdout + done.stderr


@pytest.mark.long
def test_a_worker_that_ends_in_a_run_is_counted_though_smbd_waits_for_it_later(
    nas_lab: Lab, tmp_path: Path
) -> None:
    before_s = nas_lab.counters()["array.n1.cpu_s"]
    workload = tmp_path / "writes.vdb"
    text = WORKLOAD.replace("URL", nas_lab.volume_urls(HOST)[0].url)
    workload.write_text(text.replace("elapsed=2", "elapsed=4"))
    load = (sys.executable, "-m", "linerate.cli", "run", str(workload), "--output", str(tmp_path / "out"))
    command = (*COMMAND, "exec", "--lab", nas_lab.name, HOST, "--", *load)
    there = set(_processes_in(os.stat(nas_lab.namespace("n1").path).st_ino))
    with subprocess.Popen(with_rights("user", command), stdout=subprocess.DEVNULL) as running:
        worker = _soon("a worker of smbd", lambda: _newest(nas_lab, there))
        server = int(_stat(worker)[1])
        os.kill(server, signal.SIGSTOP)
        try:
            assert running.wait(END_S) == 0
            _soon("its end", lambda: _stat(worker)[0] == "Z")
            worker_s = _used_s(worker)
            ended_s = nas_lab.counters()["array.n1.cpu_s"] - before_s
        finally:
            os.kill(server, signal.SIGCONT)
        _soon("that smbd waits for it", lambda: not Path(f"/proc/{worker}").exists())
    waited_for_s = nas_lab.counters()["array.n1.cpu_s"] - before_s
    assert ended_s > worker_s
    assert waited_for_s == pytest.approx(ended_s, abs=worker_s / 2), "counted once"


def _soon(what: str, look: Callable[[], int]) -> int:
    """What `look` gives as soon as it gives anything."""
    end_s = time.monotonic() + END_S
    while time.monotonic() < end_s:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come within {END_S:.0f} s")


def _newest(lab: Lab, there: set[int]) -> int:
    """A process of the NAS that was not there and has worked; 0 before."""
    new = set(_processes_in(os.stat(lab.namespace("n1").path).st_ino)) - there
    return next((pid for pid in new if _used_s(pid) >= 0.08), 0)


def _used_s(pid: int) -> float:
    """0 for a process that has gone."""
    try:
        return sum(map(int, _stat(pid)[11:13])) / os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        return 0.0


def _stat(pid: int) -> list[str]:
    """State, parent and what follows in proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def test_nothing_of_it_is_left_and_its_files_in_memory_are_of_the_lab_only(tmp_path: Path) -> None:
    with _up(tmp_path, unique("ends")) as lab:
        assert not Path("/dev/shm/n1").exists()
        inode = os.stat(lab.namespace("n1").path).st_ino
        assert _processes_in(inode)
        lab.down()
    assert not _processes_in(inode)


def _processes_in(inode: int) -> list[int]:
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{entry}/ns/net").st_ino == inode:
                found.append(int(entry))
        except OSError:
            continue
    return found


def test_a_folder_keeps_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    folder.chmod(0o777)
    with _up(tmp_path, unique("folder"), f'folder = "{folder}"') as lab:
        lab.down()
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == {
        "v1.img": 4 << 20,
        "v2.img": 4 << 20,
    }


def test_a_file_of_the_user_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    need.tool("smbd")
    folder = tmp_path / "images"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "v2.img").write_bytes(b"mine")
    file = tmp_path / "nas.toml"
    file.write_text(TOPOLOGY.replace("KEYS", f'folder = "{folder}"'))
    up = run("up", str(file), "--name", unique("mine"), rights="user")
    assert up.returncode != 0
    assert "v2.img exists, and loads would write over it" in up.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"v2.img": b"mine"}


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    need.tool("smbd")
    file = tmp_path / "nas.toml"
    file.write_text(TOPOLOGY.replace("KEYS", f'folder = "{tmp_path}/none"'))
    up = run("up", str(file), "--name", unique("none"), rights="user")
    assert up.returncode != 0
    assert "the NAS n1 cannot make v1.img" in up.stderr


def test_without_samba_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smbd.shutil, "which", lambda *_, **__: None)
    with pytest.raises(HostError) as caught:
        smbd.programs("n1")
    assert "n1 is a NAS, and this machine has no smbd" in caught.value.message
    assert caught.value.hint == "install it: sudo apt install samba"
