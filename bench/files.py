"""File volumes that write through: durable writes that are in flight together share their flush."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import processes
from .cases import VOLUME_BYTES, Result, Setting, interleaved, our_iops, skipped
from .processes import Shape

DEEP = Shape("4K random write, depth 32", 4096, 32, read_percent=0)
SHALLOW = Shape("4K random write, depth 1", 4096, 1, read_percent=0)


def files(setting: Setting) -> Iterator[Result]:
    """A file volume at depth 32 against depth 1, and against tgt that writes through too (`O_SYNC`)."""
    volume = {
        "lun": 0,
        "name": "v0",
        "kind": "file",
        "path": str(setting.directory / "volume"),
        "size_bytes": VOLUME_BYTES,
    }
    with processes.serve(setting.directory, [volume]) as ours:
        processes.fill(setting.directory, ours, VOLUME_BYTES)
        ratios = interleaved(
            setting, partial(our_iops, setting, DEEP, ours), partial(our_iops, setting, SHALLOW, ours)
        )
        yield Result("file volume, write-through: 4K writes, depth 32 / depth 1", 4.0, ratios)
        with processes.tgt(VOLUME_BYTES, setting.directory, "sync") as peer:
            for shape in (DEEP, SHALLOW):
                name = f"file volume, write-through: {shape.name}, array / tgt with O_SYNC"
                if peer is None:
                    yield skipped(name, "tgtd is not installed (Debian package tgt)")
                    continue
                ratios = interleaved(
                    setting, partial(our_iops, setting, shape, ours), partial(our_iops, setting, shape, peer)
                )
                yield Result(name, 1.0, ratios)
