"""Our initiator on the Linux kernel's own target (LIO), in a kernel that is not ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm import network
from tests.vm.stranger import Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1500)]

IQN = "iqn.2003-01.org.linux-iscsi.load1:ram"
SIZE_MIB = 64
MAKE = f"""\
/backstores/ramdisk create name=ram size={SIZE_MIB}M
/iscsi create {IQN}
/iscsi/{IQN}/tpg1/luns create /backstores/ramdisk/ram
/iscsi/{IQN}/tpg1 set attribute authentication=0 generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0
"""
WORKLOAD = """\
warm_up = 0
elapsed = 4
interval = 1
volume = [{ name = "v", outstanding = 4 }]
stream = [{ name = "s", size = "8k", read = 50 }]
"""
COUNTS = "/sys/kernel/config/target/core/*/ram/statistics/scsi_lu"


@pytest.fixture
def their_target(stranger: Stranger) -> Iterator[str]:
    """URL of LUN 0."""
    stranger.root(f"printf %s '{MAKE}' | targetcli")
    try:
        yield f"iscsi://{network.there(network.SAN_A)}/{IQN}/0"
    finally:
        stranger.root("targetcli clearconfig confirm=True")


def _counted(stranger: Stranger) -> int:
    """Commands that their target has taken for the disk."""
    return int(stranger.root(f"cat {COUNTS}/num_cmds"))


def test_our_initiator_writes_and_verifies_on_their_target(
    stranger: Stranger, their_target: str, tmp_path: Path
) -> None:
    file = tmp_path / "load.toml"
    file.write_text(WORKLOAD)
    before = _counted(stranger)
    done = stranger.linerate(
        *("run", file, "--target", their_target, "--verify", "--overwrite", "all"),
        *("--json", "--no-report", "--output", tmp_path / "run"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    intervals = [json.loads(line) for line in done.stdout.splitlines() if '"interval"' in line]
    measured = sum(one["figures"]["total"]["iops"] for one in intervals if "figures" in one)
    assert measured > 0
    counted = _counted(stranger) - before
    assert counted >= 0.9 * measured, "the guest's kernel has taken them"
    assert int(stranger.root(f"cat {COUNTS}/write_mbytes")) > 0
