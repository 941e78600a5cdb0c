"""The kernel's own initiator (open-iscsi) and its multipath on our array, with I/O running through a pulled cable."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.serving import serving
from tests.vm import network
from tests.vm.stranger import Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1500)]

IQN = "iqn.2026-11.lab.linerate:vm"
SIZE_MIB = 64
ARRAY = f"""\
portals = [
    {{ address = "{network.here(network.SAN_A)}:3260", group = 1 }},
    {{ address = "{network.here(network.SAN_B)}:3260", group = 2 }},
]
[[targets]]
name = "{IQN}"
[[targets.volumes]]
lun = 0
name = "vol"
kind = "file"
path = "vol.img"
size = "{SIZE_MIB}m"
"""
# As the README of open-iscsi asks for with dm-multipath: errors go up soon, and multipath chooses another path.
ISCSID = """\
node.session.timeo.replacement_timeout = 5
node.conn[0].timeo.noop_out_interval = 2
node.conn[0].timeo.noop_out_timeout = 2
"""
MULTIPATH = """\
defaults {
    user_friendly_names yes
    find_multipaths no
    path_grouping_policy multibus
    no_path_retry queue
    polling_interval 1
}
blacklist { devnode "^vd" }
"""
PATHS_TIMEOUT_S = 90.0
DEVICE = "/dev/mapper/mpatha"


@pytest.fixture
def logged_in(stranger: Stranger, tmp_path: Path) -> Iterator[Path]:
    """The guest has logged in through both networks; gives the file of our volume."""
    with serving(tmp_path, ARRAY):
        stranger.write("/etc/multipath.conf", MULTIPATH)
        stranger.write("/tmp/settings", ISCSID)
        stranger.root(
            "cp -n /etc/iscsi/iscsid.conf /tmp/iscsid.conf; cat /tmp/settings >> /etc/iscsi/iscsid.conf"
        )
        stranger.root("systemctl restart multipathd")
        discovered = stranger.root(f"iscsiadm -m discovery -t sendtargets -p {network.here(network.SAN_A)}")
        try:
            assert {line.split(",")[0] for line in discovered.splitlines()} == {
                f"{network.here(net)}:3260" for net in (network.SAN_A, network.SAN_B)
            }
            stranger.root(f"iscsiadm -m node -T {IQN} --login")
            _await_paths(stranger, 2)
            yield tmp_path / "vol.img"
        finally:
            stranger.attempt("multipath -F; multipathd disablequeueing maps; multipath -F")
            stranger.root(f"iscsiadm -m node -T {IQN} --logout; iscsiadm -m node -o delete")
            stranger.root(
                "cp /tmp/iscsid.conf /etc/iscsi/iscsid.conf; rm /etc/multipath.conf /tmp/iscsid.conf"
            )


def _active_paths(stranger: Stranger) -> int:
    return stranger.root("multipathd show paths format '%d %t %T' || true").count("active ready")


def _await_paths(stranger: Stranger, count: int) -> None:
    deadline = time.monotonic() + PATHS_TIMEOUT_S
    while (found := _active_paths(stranger)) != count:
        assert time.monotonic() < deadline, f"{found} paths, not {count}\n{stranger.root('multipath -ll')}"
        time.sleep(1)


def test_writes_go_on_through_a_pulled_cable_and_arrive_whole(stranger: Stranger, logged_in: Path) -> None:
    assert stranger.root(f"blockdev --getsize64 {DEVICE}").strip() == str(SIZE_MIB << 20)
    stranger.root(f"head -c {SIZE_MIB << 20} /dev/urandom > /tmp/data")
    expected = stranger.root("sha256sum < /tmp/data").split()[0]
    # 64 KiB at a time, without the page cache, over and over until the file says stop: the last pass is whole.
    loop = f"while dd if=/tmp/data of={DEVICE} bs=64k oflag=direct 2>&1 && [ ! -e /tmp/stop ]; do echo pass; done"
    with stranger.start(f"rm -f /tmp/stop; {loop}; [ -e /tmp/stop ]") as writing:
        try:
            time.sleep(2)
            stranger.machine.cable(network.SAN_A, plugged=False)
            _await_paths(stranger, 1)
            left = int(stranger.root(f"cat /sys/class/net/{stranger.nic[network.SAN_B]}/statistics/tx_bytes"))
            time.sleep(3)
            grown = int(
                stranger.root(f"cat /sys/class/net/{stranger.nic[network.SAN_B]}/statistics/tx_bytes")
            )
            assert grown > left + (1 << 20), "the other path carries the writes"
        finally:
            stranger.machine.cable(network.SAN_A, plugged=True)
        _await_paths(stranger, 2)
        stranger.root("touch /tmp/stop")
        said, _ = writing.communicate(timeout=120)
        assert writing.returncode == 0, said
        assert "error" not in said
    assert stranger.root(f"dd if={DEVICE} bs=1M iflag=direct 2>&- | sha256sum").split()[0] == expected
    assert hashlib.sha256(logged_in.read_bytes()).hexdigest() == expected, "in the file of the array"
