"""Array files of these tests: one RAID set of file disks, and one volume."""

from __future__ import annotations


def array_text(name: str, target: str, disks: str, level: str, volume: str, pools: str = "") -> str:
    """`disks`, `volume` and `pools` are keys and tables as a file has them."""
    return f"""\
name = "{name}"
portals = ["127.0.0.1:0"]
[[storage.disks]]
name = "d"
kind = "file"
{disks}
[[storage.raid_sets]]
name = "r0"
level = "{level}"
disks = ["d"]
initialise = "assume_clean"
{pools}[[targets]]
name = "{target}"
[[targets.volumes]]
lun = 0
name = "v0"
{volume}
"""
