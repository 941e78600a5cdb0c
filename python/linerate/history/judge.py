"""Makes the lines of a history: which workloads are one, what changed, and when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from linerate.analysis.compare import METRICS as RUN_METRICS
from linerate.analysis.difference import fact_label
from linerate.analysis.metric import METRICS, Metric
from linerate.errors import UserError
from linerate.history.change_points import change_points
from linerate.history.model import (
    ChangeKind,
    EnvironmentChange,
    History,
    HistoryLine,
    HistoryPoint,
    Recorded,
    WorkloadResult,
)

DEFAULT_METRICS = ("iops", "mib_s", "service_ms", "response_ms", "p99_ms")
_OF_RUNS = {metric.name: metric for metric, _ in RUN_METRICS}
# What both have has the label of the run tables.
_METRICS: Mapping[str, Metric] = _OF_RUNS | {
    name: metric for name, metric in METRICS.items() if name not in _OF_RUNS
}
METRIC_NAMES = tuple(_METRICS)
_KINDS: Mapping[str, ChangeKind] = {"host": "host", "cpu": "host", "memory": "host", "version": "version"}
_NOT_RECORDED = "not recorded"
_UNSET = {_NOT_RECORDED, "not set"}
"""A key that another version does not have, and that is not set, is no change."""
_DIGITS = 4

Series = Sequence[tuple[Recorded, WorkloadResult]]


def judge_history(
    folder: str,
    entries: Iterable[Recorded],
    metrics: Sequence[str] = DEFAULT_METRICS,
    confidence: float = 0.99,
) -> History:
    """The history of what was gathered, with the named metrics. Raises UserError for a metric that there is not."""
    for name in metrics:
        if name not in _METRICS:
            raise UserError(f"there is no metric called {name}", f"use one of {', '.join(METRIC_NAMES)}")
    counted = list(entries)
    series: dict[str, list[tuple[Recorded, WorkloadResult]]] = {}
    for entry in counted:
        for result in entry.results:
            series.setdefault(result.identity, []).append((entry, result))
    for points in series.values():
        points.sort(key=lambda point: (point[1].at, point[0].path))
    names = _names(series)
    lines = []
    for identity in sorted(series, key=lambda identity: _in_order(names[identity])):
        for metric in dict.fromkeys(metrics):
            line = _line(identity, names[identity], _METRICS[metric], series[identity], confidence)
            if line is not None:
                lines.append(line)
    return History(
        folder=folder,
        confidence_percent=100 * confidence,
        lines=tuple(lines),
        environment=_environment({names[identity]: points for identity, points in series.items()}),
        left_out=tuple((entry.path, entry.left_out) for entry in counted if entry.left_out),
    )


def _names(series: Mapping[str, Series]) -> dict[str, str]:
    """A name for each workload: its title, with the file's name or a digest where titles are the same."""
    latest = {identity: points[-1][1] for identity, points in series.items()}
    titles = Counter(result.title for result in latest.values())
    longer = {
        identity: result.title if titles[result.title] == 1 else f"{result.title} ({result.source})"
        for identity, result in latest.items()
    }
    counts = Counter(longer.values())
    return {
        identity: name if counts[name] == 1 else f"{name} #{identity[:_DIGITS]}"
        for identity, name in longer.items()
    }


def _in_order(name: str) -> list[tuple[int, str]]:
    """The key of a name for sorting: numbers by value, so that 2 threads come before 16."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part) if number % 2 else 0, part) for number, part in enumerate(parts)]


def _line(
    identity: str, workload: str, metric: Metric, series: Series, confidence: float
) -> HistoryLine | None:
    points = tuple(
        HistoryPoint(result.at, result.values[metric.name], entry.path)
        for entry, result in series
        if metric.name in result.values
    )
    if not points:
        return None
    return HistoryLine(
        identity=identity,
        workload=workload,
        metric=metric.name,
        label=metric.label,
        unit=metric.unit,
        better=metric.better,
        points=points,
        level_changes=change_points([point.value for point in points], confidence),
    )


def _environment(workloads: Mapping[str, Series]) -> tuple[EnvironmentChange, ...]:
    """Every change from a result to the next one of the same workload; workloads that show the same are together."""
    found: dict[tuple[str, str, str, str], tuple[WorkloadResult, str, list[str]]] = {}
    for name, series in workloads.items():
        for (earlier, old), (later, new) in pairwise(series):
            if old.facts == new.facts:
                continue
            for key in dict.fromkeys([*old.facts, *new.facts]):
                before, after = (result.facts.get(key, _NOT_RECORDED) for result in (old, new))
                if before != after and {before, after} != _UNSET:
                    place = found.setdefault((later.path, key, before, after), (new, earlier.path, []))
                    place[2].append(name)
    changes = [
        EnvironmentChange(
            at=result.at,
            path=path,
            path_before=path_before,
            kind=_kind(key),
            key=key,
            label=fact_label(key),
            before=before,
            after=after,
            workloads=tuple(sorted(names, key=_in_order)),
        )
        for (path, key, before, after), (result, path_before, names) in found.items()
    ]
    return tuple(sorted(changes, key=lambda change: (change.at, change.path)))


def _kind(key: str) -> ChangeKind:
    return "kernel" if key == "host.kernel" else _KINDS.get(key.partition(".")[0], "settings")
