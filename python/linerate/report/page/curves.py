"""The response curve: the steps of a sweep or of a curve as lines of labelled points."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linerate.analysis import StepSummary
from linerate.analysis.knee import knee
from linerate.analysis.summary import measured
from linerate.report import figures
from linerate.report.panels.series import Point

THRESHOLD_MS = 20.0
"""Up to which the published studies call a SAN usable for transactions."""
POINTS_MIN = 3
"""Fewer points are no curve."""
LABELS_MAX = 12
"""Of a line with more points only its ends and its knee have a label; tooltips have all."""
_CURVE_POINT = re.compile(r"_\((\d+%)\)$")
_THREADS = "threads="


def response_curves(summaries: Sequence[StepSummary]) -> dict[str, list[Point]]:
    """The points of every workload that ran with several loads, by the name of its run.

    `of` is the line: the workload with its other loop values. `label` is the threads or the rate of the point, `iops`
    and `ms` are as measured (of a load with a rate to keep, from the intended start), `knee` marks the knee of the
    line, and `say` is all of it in words.
    """
    lines: dict[tuple[str, str], list[tuple[str, StepSummary]]] = {}
    for step in summaries:
        if step.total.ios and step.answer_mean_ms is not None:
            name, of, label = _split(step)
            lines.setdefault((name, of), []).append((label, step))
    found: dict[str, list[Point]] = {}
    for (name, of), steps in lines.items():
        # The run that finds the largest rate of a curve is no point of it: it had no rate to keep.
        paced = [one for one in steps if one[1].paced]
        points = paced if len(paced) >= POINTS_MIN else steps
        if len(points) >= POINTS_MIN:
            found.setdefault(name, []).extend(_line(of, points))
    return found


def _line(of: str, steps: Sequence[tuple[str, StepSummary]]) -> list[Point]:
    paced = any(step.paced for _, step in steps)
    ordered = sorted(
        steps, key=lambda one: one[1].rate_asked_iops or 0.0 if paced else one[1].queue_depth_asked or 0
    )
    place = knee([(step.total.iops, measured(step.answer_mean_ms)) for _, step in ordered])
    few = len(ordered) <= LABELS_MAX
    return [
        {
            "of": of,
            "label": f"{label} (knee)"
            if number == place
            else label
            if few or number in (0, len(ordered) - 1)
            else "",
            "order": number,
            "iops": round(step.total.iops, 1),
            "ms": round(measured(step.answer_mean_ms), 4),
            "knee": number == place,
            "say": f"{of}, {step.for_loops or label or step.step}{' (knee)' if number == place else ''}\n"
            f"{figures.rate(step.total.iops)} IOPS, {figures.mib_s(step.total.mib_s)} MB/s\n"
            f"{figures.ms(step.answer_mean_ms)} ms on average{_tail(step)}",
        }
        for number, (label, step) in enumerate(ordered)
    ]


def _tail(step: StepSummary) -> str:
    tail = step.answer_quantile(0.99)
    return f", p99 {figures.ms(tail.value_ms)} ms" if tail is not None and tail.reliable else ""


def _split(step: StepSummary) -> tuple[str, str, str]:
    """The name of the run, the line that the step is on, and its label there."""
    name = _CURVE_POINT.sub("", step.name)
    loops = step.for_loops.split()
    others = [loop for loop in loops if not loop.startswith(_THREADS)]
    of = " ".join([name, *others])
    if threads := next((loop.removeprefix(_THREADS) for loop in loops if loop.startswith(_THREADS)), ""):
        return name, of, threads
    if point := _CURVE_POINT.search(step.name):
        return name, of, point.group(1)
    if step.rate_asked_iops is not None:
        return name, of, f"{step.rate_asked_iops:g}"
    return name, name, " ".join(others)
