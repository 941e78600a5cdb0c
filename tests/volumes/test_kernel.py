"""Who uses a device or a file: the kernel's tables as text, and trees of devices as folders."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from linerate.volumes.kernel import Machine, Sysfs, uses_of_device, uses_of_file
from linerate.volumes.kernel.tables import Backing, Lock, Mount, locks, loop_backing, mounts, swaps

MOUNTINFO = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 0:26 / /proc rw,nosuid - proc proc rw
41 22 8:17 / /mnt/my\040data rw shared:5 master:2 - xfs /dev/sdb1 rw,attr2
52 22 0:44 /sub /srv rw - btrfs /dev/sdc rw,subvol=/sub
garbage
60 22 x:y / /broken rw - ext4 /dev/sdz rw
"""
SWAPS = """Filename                                Type            Size            Used            Priority
/dev/sda2                               partition       1048572         0               -2
/var/swap\\040file\\040(deleted)          file            524284          0               -3
"""
LOCKS = """1: FLOCK  ADVISORY  WRITE 1234 08:11:131073 0 EOF
2: OFDLCK ADVISORY  READ -1 fd:00:99 100 101
3: POSIX  ADVISORY  WRITE 77 00:1a:5 0 EOF
3: -> POSIX  ADVISORY  WRITE 78 00:1a:5 0 EOF
nonsense
"""


def test_mountinfo() -> None:
    assert list(mounts(MOUNTINFO)) == [
        Mount((8, 1), "/", "ext4", "/dev/sda1"),
        Mount((0, 26), "/proc", "proc", "proc"),
        Mount((8, 17), "/mnt/my data", "xfs", "/dev/sdb1"),
        Mount((0, 44), "/srv", "btrfs", "/dev/sdc"),
    ]


def test_swaps() -> None:
    assert list(swaps(SWAPS)) == ["/dev/sda2", "/var/swap file"]
    assert list(swaps("")) == []


def test_locks() -> None:
    assert list(locks(LOCKS)) == [
        Lock((8, 0x11), 131073, 1234),
        Lock((0xFD, 0), 99, -1),
        Lock((0, 0x1A), 5, 77),
    ]


def test_loop_info() -> None:
    info = struct.pack("=QQQ", 0x801, 4711, 0x811) + bytes(208)
    assert loop_backing(info) == Backing(0x801, 4711, 0x811)
    assert loop_backing(b"short") is None


class Tree:
    """A /sys of the test's own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("block", "class/block", "dev/block", "devices"):
            (root / folder).mkdir(parents=True)

    def disk(self, name: str, number: str, **files: str | bytes) -> Path:
        return self._add(self.root / "devices" / name, name, number, files)

    def partition(self, disk: str, name: str, number: str) -> Path:
        return self._add(self.root / "devices" / disk / name, name, number, {"partition": "1\n"})

    def holds(self, holder: str, device: Path) -> None:
        (device / "holders" / holder).mkdir()

    def _add(self, folder: Path, name: str, number: str, files: dict[str, str | bytes]) -> Path:
        (folder / "holders").mkdir(parents=True)
        (folder / "dev").write_text(number + "\n", "ascii")
        for key, content in files.items():
            path = folder / key.replace("__", "/")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (self.root / "class/block" / name).symlink_to(folder)
        (self.root / "dev/block" / number).symlink_to(folder)
        if "partition" not in files:
            (self.root / "block" / name).symlink_to(folder)
        return folder


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """sda with two partitions; an LVM volume on sda2; sdb in an md array; sdc alone."""
    tree = Tree(tmp_path / "sys")
    tree.disk("sda", "8:0")
    tree.partition("sda", "sda1", "8:1")
    sda2 = tree.partition("sda", "sda2", "8:2")
    sdb = tree.disk("sdb", "8:16")
    tree.disk("sdc", "8:32", device__vendor="ACME    \n", device__vpd_pg80=b"\0\x80\0\x04S-7 ")
    tree.disk("dm-0", "253:0", dm__name="vg0-home\n", dm__uuid="LVM-abc\n")
    tree.disk("dm-1", "253:1", dm__name="mpatha\n", dm__uuid="mpath-3600\n")
    tree.disk("md127", "9:127", md__level="raid1\n")
    tree.holds("dm-0", sda2)
    tree.holds("md127", sdb)
    return tree


def _uses(tree: Tree, device: tuple[int, int], *placed: Mount, **more: object) -> list[str]:
    return uses_of_device(device, Machine(sysfs=Sysfs(tree.root), mounts=placed, **more))  # type: ignore[arg-type]


def test_a_mounted_device_and_its_partitions(tree: Tree) -> None:
    root = Mount((8, 1), "/", "ext4", "/dev/sda1")
    assert _uses(tree, (8, 32)) == []
    assert _uses(tree, (8, 32), root) == []
    assert _uses(tree, (8, 1), root) == ["mounted on / (ext4)"]
    assert "/dev/sda1 is mounted on / (ext4)" in _uses(tree, (8, 0), root)
    whole = Mount((8, 32), "/data", "xfs", "/dev/sdc")
    assert _uses(tree, (8, 32), whole) == ["mounted on /data (xfs)"]
    assert _uses(tree, (99, 9), Mount((99, 9), "/x", "ext4", "/dev/y")) == ["mounted on /x (ext4)"]


def test_a_partition_of_a_disk_that_is_used_as_a_whole(tree: Tree) -> None:
    whole = Mount((8, 0), "/data", "xfs", "/dev/sda")
    assert _uses(tree, (8, 1), whole) == ["/dev/sda is mounted on /data (xfs)"]


def test_what_is_built_on_a_device(tree: Tree) -> None:
    home = Mount((253, 0), "/home", "ext4", "/dev/mapper/vg0-home")
    assert _uses(tree, (8, 2)) == ["part of LVM volume vg0-home"]
    assert _uses(tree, (8, 2), home) == ["part of LVM volume vg0-home, mounted on /home (ext4)"]
    assert _uses(tree, (8, 0)) == ["/dev/sda2 is part of LVM volume vg0-home"]
    assert _uses(tree, (8, 16)) == ["part of md RAID md127"]
    tree.holds("dm-1", tree.root / "devices/sdc")
    assert _uses(tree, (8, 32)) == ["part of multipath device mpatha"]


def test_swap_btrfs_and_loops(tree: Tree) -> None:
    assert _uses(tree, (8, 1), swap_devices=frozenset({(8, 1)})) == ["used as swap space"]
    (tree.root / "fs/btrfs/1234/devices/sdc").mkdir(parents=True)
    assert _uses(tree, (8, 32)) == ["part of a Btrfs file system that is mounted"]
    tree.disk("loop3", "7:3", loop__backing_file="/dev/sda1\n")
    loops = (("loop3", Backing(0, 0, os.makedev(8, 1))),)
    assert _uses(tree, (8, 1), loops=loops) == ["attached as /dev/loop3"]


def test_files(tree: Tree) -> None:
    tree.disk("loop3", "7:3", loop__backing_file="/images/a\n")
    tree.partition("loop3", "loop3p1", "259:1")
    machine = Machine(
        sysfs=Sysfs(tree.root),
        mounts=(Mount((259, 1), "/mnt", "ext4", "/dev/loop3p1"),),
        swap_files=frozenset({(os.makedev(8, 1), 10)}),
        loops=(("loop3", Backing(os.makedev(8, 1), 11, 0)),),
        locks=(Lock((8, 1), 12, 4711), Lock((8, 1), 13, -1)),
    )
    found = {inode: uses_of_file(os.makedev(8, 1), inode, machine) for inode in range(9, 14)}
    assert found == {
        9: [],
        10: ["used as swap space"],
        11: ["attached as /dev/loop3, /dev/loop3p1 is mounted on /mnt (ext4)"],
        12: ["locked by process 4711"],
        13: ["locked by a process"],
    }
    assert Sysfs(tree.root).loops() == ["loop3"]


def test_disks_of_a_lun_are_found_by_vendor_and_serial(tree: Tree) -> None:
    sysfs = Sysfs(tree.root)
    assert list(sysfs.disks_of_lun("ACME", "S-7")) == ["sdc"]
    assert list(sysfs.disks_of_lun("ACME", "S-8")) == []
    assert list(sysfs.disks_of_lun("OTHER", "S-7")) == []
    assert list(sysfs.disks_of_lun("ACME", "")) == []
