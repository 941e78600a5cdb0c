"""What data digests cost: CRC32C over every byte, on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from . import processes
from .cases import VOLUME_BYTES, Result, Setting, interleaved, our_iops
from .engine import LARGE_READ, LARGE_WRITE


def digests(setting: Setting) -> Iterator[Result]:
    """256K reads and writes with data digests against the same without."""
    with processes.array(setting.directory, LARGE_READ, VOLUME_BYTES) as server:
        for plain in (LARGE_READ, LARGE_WRITE):
            checked = replace(plain, data_digest="crc32c")
            ratios = interleaved(
                setting,
                partial(our_iops, setting, checked, server),
                partial(our_iops, setting, plain, server),
            )
            yield Result(f"{plain.name}: data digests / none", 0.75, ratios)
