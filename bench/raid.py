"""RAID sets: in memory against plain memory, parity against copying, files against their like and against tgt."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

from . import processes
from .cases import VOLUME_BYTES, Result, Setting, interleaved, our_iops, skipped
from .processes import CLIENT_CPU, Shape

FILE_DISKS = 5
"""With chunks of 64 KiB a stripe holds 256 KiB of data."""
FILE_DISK_BYTES = 128 << 20

MEMORY_SHAPES = (
    Shape("8K random read, depth 32", 8192, 32),
    Shape("8K random write, depth 32", 8192, 32, read_percent=0),
    Shape("256K sequential read, depth 8", 262_144, 8, random_percent=0),
    Shape("256K sequential write, depth 8", 262_144, 8, read_percent=0, random_percent=0),
)
FILE_SHAPES = (
    Shape("256K sequential write, depth 8", 262_144, 8, read_percent=0, random_percent=0),
    Shape("1M sequential write, depth 8", 1 << 20, 8, read_percent=0, random_percent=0),
)
JOURNAL_SHAPES = (FILE_SHAPES[0], Shape("8K random write, depth 8", 8192, 8, read_percent=0))


def raid(setting: Setting) -> Iterator[Result]:
    """Measure everything about RAID sets."""
    yield from striped_memory(setting)
    yield from parity(setting)
    yield from parity_files(setting)
    yield from journal(setting)
    yield from files_against_tgt(setting)


def against(setting: Setting, shape: Shape, a: processes.Server, b: processes.Server) -> tuple[float, ...]:
    """IOPS of one array against another's, round by round."""
    return interleaved(setting, partial(our_iops, setting, shape, a), partial(our_iops, setting, shape, b))


def striped_memory(setting: Setting) -> Iterator[Result]:
    """RAID 0 of four disks in memory against a plain memory volume, both over iSCSI."""
    disks = {"name": "d", "count": 4, "size_bytes": VOLUME_BYTES // 4}
    with (
        processes.raid(setting.directory, "raid0", disks) as striped,
        processes.array(setting.directory, MEMORY_SHAPES[0], VOLUME_BYTES) as plain,
    ):
        for shape in MEMORY_SHAPES:
            ratios = against(setting, shape, striped, plain)
            yield Result(f"{shape.name}: memory RAID 0 / plain memory", 0.90, ratios)


def parity(setting: Setting) -> Iterator[Result]:
    """Bytes read and written per second to make parity of stripes of 8 x 64 KiB, against copying."""
    binary = str(processes.RELEASE / "bench-parity")
    arguments = [binary, str(setting.seconds / 5), str(setting.rounds)]
    process = processes.pinned(CLIENT_CPU, arguments, stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=60 + setting.seconds * setting.rounds)
    rounds: list[dict[str, float]] = json.loads(output)
    for name, key in (("P", "p_bytes_s"), ("P and Q", "pq_bytes_s")):
        ratios = tuple(one[key] / one["copy_bytes_s"] for one in rounds)
        yield Result(f"parity {name} of 8 blocks / memcpy, bytes read and written", 0.60, ratios)


def parity_files(setting: Setting) -> Iterator[Result]:
    """RAID 5 on files, whole stripes at a time, against RAID 0 on files alike, of which as many hold data."""
    data_share = (FILE_DISKS - 1) / FILE_DISKS
    with (
        processes.raid(setting.directory, "raid5", files(setting, "five")) as five,
        processes.raid(setting.directory, "raid0", files(setting, "zero")) as zero,
    ):
        for shape in FILE_SHAPES:
            all_data = against(setting, shape, five, zero)
            ratios = tuple(ratio / data_share for ratio in all_data)
            yield Result(f"{shape.name}: file RAID 5 / file RAID 0 x 4/5", 0.70, ratios)


def journal(setting: Setting) -> Iterator[Result]:
    """What it costs to write everything to the redo journal first."""
    with (
        processes.raid(setting.directory, "raid5", files(setting, "always"), journal="always") as always,
        processes.raid(setting.directory, "raid5", files(setting, "five")) as five,
    ):
        for shape in JOURNAL_SHAPES:
            ratios = against(setting, shape, always, five)
            yield Result(f"{shape.name}: file RAID 5, journal always / while degraded", None, ratios)


def files_against_tgt(setting: Setting) -> Iterator[Result]:
    """RAID 5 on files against a tgt volume on one file beside them: both promise that what they answer is on disk."""
    volume_bytes = FILE_DISK_BYTES * (FILE_DISKS - 1)
    for flags, says, bar in (("sync", "O_SYNC", 1.0), ("", "page cache", None)):
        with processes.tgt(volume_bytes, setting.directory, flags) as peer:
            if peer is None:
                yield skipped("file RAID 5 / tgt", "tgtd is not installed (Debian package tgt)")
                return
            with processes.raid(setting.directory, "raid5", files(setting, "five")) as ours:
                for shape in FILE_SHAPES:
                    ratios = against(setting, shape, ours, peer)
                    yield Result(f"{shape.name}: file RAID 5 / tgt on one file, {says}", bar, ratios)


def files(setting: Setting, name: str) -> dict[str, Any]:
    """Describe the disks of a set on files."""
    path = str(setting.directory / name)
    return {"name": name, "kind": "file", "path": path, "count": FILE_DISKS, "size_bytes": FILE_DISK_BYTES}
