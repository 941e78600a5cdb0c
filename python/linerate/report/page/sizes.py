"""Rates and CPU cost against I/O size: the steps of a sweep over sizes as lines.

Chelsio's paper "Windows Server 2012 R2 SMB performance" draws its results like this: throughput, IOPS and CPU cycles
per byte over sizes of 1 KB to 1 MB, one line for read, write and mixed each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.analysis import StepSummary
from linerate.analysis.summary import measured
from linerate.report import figures
from linerate.report.panels.series import Point

POINTS_MIN = 3
"""Fewer sizes are no line."""
_SIZE_LOOPS = ("size=", "xfersize=")


@dataclass(frozen=True, slots=True)
class CpuCost:
    """The CPU cost of a byte: its unit, and the cost of each step by its key."""

    unit: str
    of_step: Mapping[str, float]


def size_lines(summaries: Sequence[StepSummary]) -> dict[str, list[StepSummary]]:
    """The steps with I/O of every sweep over sizes, in the order of their sizes, by run and other loop values."""
    found: dict[str, list[StepSummary]] = {}
    for step in summaries:
        loops = step.for_loops.split()
        others = [loop for loop in loops if not loop.startswith(_SIZE_LOOPS)]
        if len(others) == len(loops) - 1 and step.total.ios:
            found.setdefault(" ".join([step.name, *others]), []).append(step)
    return {
        name: sorted(steps, key=_bytes_per_io) for name, steps in found.items() if len(steps) >= POINTS_MIN
    }


def cpu_cost(steps: Sequence[StepSummary]) -> CpuCost:
    """The CPU time of the load per byte: in cycles of the processor, or in ns where a step has no frequency of it."""
    cycles = {step.step: step.usage.cycles_per_byte for step in steps}
    known = {key: value for key, value in cycles.items() if value is not None}
    if len(known) == len(cycles):
        return CpuCost("cycles per byte", known)
    return CpuCost(
        "CPU ns per byte",
        {step.step: 1e9 * measured(step.usage.load_cpu_s) / step.total.bytes for step in steps},
    )


def size_points(lines: Mapping[str, Sequence[StepSummary]]) -> tuple[list[Point], str]:
    """The points of all lines, and the unit of their CPU cost.

    `of` is the line, `size_bytes` the size, `iops`, `mib_s` and `cpu` are as measured, `say` is all of it in words.
    """
    cost = cpu_cost([step for steps in lines.values() for step in steps])
    points: list[Point] = [
        {
            "of": name,
            "size_bytes": _bytes_per_io(step),
            "iops": round(step.total.iops, 1),
            "mib_s": round(step.total.mib_s, 3),
            "cpu": cost.of_step[step.step],
            "say": f"{name}, {figures.size(_bytes_per_io(step))}\n"
            f"{figures.rate(step.total.iops)} IOPS, {figures.mib_s(step.total.mib_s)} MB/s\n"
            f"{figures.significant(cost.of_step[step.step])} {cost.unit}",
        }
        for name, steps in lines.items()
        for step in steps
    ]
    return points, cost.unit


def _bytes_per_io(step: StepSummary) -> int:
    return round(step.total.bytes / step.total.ios)
