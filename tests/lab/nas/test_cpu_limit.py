"""The limit of CPU time by control groups: on trees of files that look like the kernel's, and on this machine's."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from linerate.errors import HostError
from linerate.lab.cpu.limit import CpuLimit, processes_in


def _tree(folder: Path, above: str) -> tuple[Path, Path]:
    """A tree with this process in /user/session, and its file of membership. `above`: what /user passes on."""
    tree = folder / "tree"
    (tree / "user" / "session").mkdir(parents=True)
    (tree / "cgroup.controllers").write_text("cpu memory\n")
    (tree / "cgroup.subtree_control").write_text("cpu memory\n")
    (tree / "user" / "cgroup.subtree_control").write_text(above)
    membership = folder / "membership"
    membership.write_text("0::/user/session\n")
    return tree, membership


@pytest.mark.parametrize(("above", "place"), [("cpu memory\n", "user"), ("memory\n", "")])
def test_processes_are_limited_in_the_nearest_group_that_can_and_put_back(
    tmp_path: Path, above: str, place: str
) -> None:
    tree, membership = _tree(tmp_path, above)
    limit = CpuLimit(20, [11, 12], tree, membership)
    group = tree / place / f"linerate-{os.getpid()}"
    assert (group / "cpu.max").read_text() == "20000 100000"
    assert (group / "cgroup.procs").read_text().split() == ["11", "12"]
    limit.close()
    assert (tree / "user" / "session" / "cgroup.procs").read_text().split() == ["11", "12"]
    limit.close()


def test_a_machine_without_such_groups_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="has no control groups with the CPU controller"):
        CpuLimit(20, [], tmp_path, tmp_path / "membership")
    tree, membership = _tree(tmp_path, "memory\n")
    (tree / "cgroup.subtree_control").write_text("memory\n")
    with pytest.raises(HostError, match="has the CPU controller for its members"):
        CpuLimit(20, [], tree, membership)
    assert not list(tree.rglob("linerate-*"))


@pytest.mark.parametrize(("line", "home"), [("/", ""), ("/user", "user"), ("/of/the/machine/outside", "")])
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct"])
def test_the_hierarchy_of_version_1_is_used_where_the_controller_is_there(
    tmp_path: Path, controllers: str, line: str, home: str
) -> None:
    tree = tmp_path / "tree"
    (tree / controllers / "user").mkdir(parents=True)
    membership = tmp_path / "membership"
    membership.write_text(f"9:name=systemd:/\n3:cpuset:/\n1:{controllers}:{line}\n0::/\n")
    limit = CpuLimit(20, [11, 12], tree, membership)
    group = tree / controllers / home / f"linerate-{os.getpid()}"
    assert (group / "cpu.cfs_period_us").read_text() == "100000"
    assert (group / "cpu.cfs_quota_us").read_text() == "20000"
    assert (group / "cgroup.procs").read_text().split() == ["11", "12"]
    limit.close()
    assert (tree / controllers / home / "cgroup.procs").read_text().split() == ["11", "12"]


@pytest.mark.alone
@pytest.mark.long
def test_a_process_gets_the_share_that_it_was_given() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            limit = CpuLimit(20, [ended.pid, busy.pid])  # one that is gone is left out
        except HostError as error:
            busy.kill()
            pytest.skip(str(error))
        try:
            before_s = _cpu_s(busy.pid)
            time.sleep(2.0)
            used_s = _cpu_s(busy.pid) - before_s
        finally:
            limit.close()
            busy.kill()
    assert 0.2 < used_s < 0.6


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_processes_are_found_by_their_network_namespace() -> None:
    assert os.getppid() in processes_in(["/proc/self/ns/net"])
    assert os.getpid() not in processes_in(["/proc/self/ns/net"])
