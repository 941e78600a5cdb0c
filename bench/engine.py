"""Volumes that the storage engine serves from disks in memory, against a plain memory volume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import processes
from .cases import Result, Setting
from .processes import Shape
from .raid import against

VOLUME_BYTES = 384 << 20
POOL_SPARE_BYTES = 128 << 20
"""Space of a pool besides its volume: its own data, and room."""

READ = Shape("4K random read, depth 32", 4096, 32)
WRITE = Shape("4K random write, depth 32", 4096, 32, read_percent=0)
MIX = Shape("8K 67% read, depth 40", 8192, 40, read_percent=67)
LARGE_READ = Shape("256K sequential read, depth 8", 262_144, 8, random_percent=0)
LARGE_WRITE = Shape("256K sequential write, depth 8", 262_144, 8, read_percent=0, random_percent=0)


@dataclass(frozen=True)
class Kind:
    """A volume: its RAID level, and the least share of a plain memory volume's IOPS, by shape."""

    name: str
    level: str
    disks: int
    data_disks: int
    is_thin: bool
    bars: tuple[tuple[Shape, float], ...]

    @property
    def has_parity(self) -> bool:
        """Say whether a small write reads and writes parity."""
        return self.level in ("raid5", "raid6")


KINDS = (
    Kind(
        "thin on RAID 10",
        "raid10",
        disks=4,
        data_disks=2,
        is_thin=True,
        bars=((READ, 0.85), (WRITE, 0.55), (MIX, 0.6), (LARGE_READ, 0.75), (LARGE_WRITE, 0.75)),
    ),
    Kind(
        "thin on RAID 6",
        "raid6",
        disks=6,
        data_disks=4,
        is_thin=True,
        bars=((READ, 0.85), (WRITE, 0.35), (LARGE_WRITE, 0.6)),
    ),
    Kind(
        "RAID 5",
        "raid5",
        disks=5,
        data_disks=4,
        is_thin=False,
        bars=((READ, 0.85), (WRITE, 0.35), (LARGE_WRITE, 0.6)),
    ),
)


def engine(setting: Setting) -> Iterator[Result]:
    """Every kind of volume against plain memory, all of them written once."""
    for kind in KINDS:
        with (
            volume(setting, kind) as ours,
            processes.array(setting.directory, READ, VOLUME_BYTES) as plain,
        ):
            for shape, bar in kind.bars:
                yield Result(
                    f"{shape.name}: {kind.name} in memory / plain memory",
                    bar,
                    against(setting, shape, ours, plain),
                )


@contextmanager
def volume(setting: Setting, kind: Kind) -> Iterator[processes.Server]:
    """Our array with one volume of this kind, written once."""
    with new_volume(setting, kind) as server:
        processes.fill(setting.directory, server, VOLUME_BYTES)
        processes.wait_until_touched(server)
        yield server


@contextmanager
def new_volume(setting: Setting, kind: Kind) -> Iterator[processes.Server]:
    """Our array with one volume of this kind that was never written."""
    disk_bytes = (VOLUME_BYTES + POOL_SPARE_BYTES) // kind.data_disks
    disks = {"name": "d", "count": kind.disks, "size_bytes": disk_bytes}
    storage = processes.raid_storage(kind.level, disks)
    served: dict[str, Any] = {"lun": 0, "name": "v0", "kind": "raid"}
    if kind.is_thin:
        storage["pools"] = [{"name": "p", "raid_sets": ["r"]}]
        served |= {"kind": "pool", "pool": "p", "size_bytes": VOLUME_BYTES}
    with processes.serve(setting.directory, [served], storage) as server:
        yield server
