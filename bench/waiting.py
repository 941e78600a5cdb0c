"""Ways of waiting: polling for a short time before sleeping against sleeping at once, and what it costs when idle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from . import processes
from .cases import LIMIT_BAR, LIMIT_SHAPES, VOLUME_BYTES, Result, Setting, interleaved, our_iops, raw_iops
from .processes import Shape

IDLE_SESSIONS = 256
IDLE_SECONDS = 10.0
SLOW_IOPS = 100.0


def waiting(setting: Setting) -> Iterator[Result]:
    """Speed of `auto` against `block` and of `spin` against a spinning raw TCP pair; CPU of idle ones with `auto`."""
    for shape in LIMIT_SHAPES:
        name = shape.name.removesuffix(", blocking")
        auto, block, spin = (replace(shape, wait=wait) for wait in ("auto", "block", "spin"))
        size = VOLUME_BYTES // shape.volumes
        with (
            processes.array(setting.directory, auto, size) as polls,
            processes.array(setting.directory, block, size) as sleeps,
        ):
            ratios = interleaved(
                setting, partial(our_iops, setting, auto, polls), partial(our_iops, setting, block, sleeps)
            )
        yield Result(f"{name}: auto / block, both sides", 1.0, ratios)
        with processes.array(setting.directory, spin, size) as server:
            ratios = interleaved(
                setting, partial(our_iops, setting, spin, server), partial(raw_iops, setting, spin)
            )
        yield Result(f"{name}: array + initiator / raw TCP, both spin", LIMIT_BAR, ratios)
    yield idle(setting, f"{IDLE_SESSIONS} idle sessions", IDLE_SESSIONS, iops=1.0, bar=0.01)
    yield idle(setting, "one I/O per 10 ms", 1, iops=SLOW_IOPS, bar=0.03)


def idle(setting: Setting, name: str, sessions: int, iops: float, bar: float) -> Result:
    """Cores that the array uses with `auto` while almost nothing happens."""
    shape = Shape("idle", 4096, 1, sessions, wait="auto")
    with processes.array(setting.directory, shape, 1 << 20) as server:
        spec = processes.run_spec(shape, server.urls, IDLE_SECONDS)
        spec["arrival"] = {"kind": "open", "process": "deterministic", "rate_iops": iops}
        before, began = 0.0, 0.0

        def started() -> None:
            nonlocal before, began
            before, began = processes.cpu_seconds(server.pid), time.monotonic()

        processes.load(setting.directory, spec, started)
        cores = (processes.cpu_seconds(server.pid) - before) / (time.monotonic() - began)
    return Result(f"{name}: cores of the array", bar, (cores,), at_most=True)
