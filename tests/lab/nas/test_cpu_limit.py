"""The limit of CPU time by cgroup v2, on a tree of files that looks like the kernel's."""

from __future__ import annotations

import os
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
    with pytest.raises(HostError, match="there is no cgroup v2"):
        CpuLimit(20, [], tmp_path)
    tree, membership = _tree(tmp_path, "memory\n")
    (tree / "cgroup.subtree_control").write_text("memory\n")
    with pytest.raises(HostError, match="has the CPU controller for its members"):
        CpuLimit(20, [], tree, membership)
    assert not list(tree.rglob("linerate-*"))


def test_processes_are_found_by_their_network_namespace() -> None:
    assert os.getppid() in processes_in(["/proc/self/ns/net"])
    assert os.getpid() not in processes_in(["/proc/self/ns/net"])
