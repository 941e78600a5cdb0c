"""The metrics of a study: how far it is. Its comparisons are for `linerate study verdict`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from linerate.array.figures.openmetrics import filled
from linerate.study.conduct import spent_s
from linerate.watch.study import StudySource


def study_metrics(source: StudySource) -> Iterator[Metric]:
    """All metrics of a study. The label `study` is the name of its directory."""
    directory, key = source.directory, source.path.name
    info = {"study": key, "name": directory.study.name, "state": source.state}
    yield InfoMetricFamily("linerate_study", "The study that is shown.", value=info)
    states = sorted(Counter(step.state for step in directory.steps).items())
    yield filled(
        CounterMetricFamily("linerate_study_runs", "Runs that are over, by how.", labels=["study", "state"]),
        (([key, state], count) for state, count in states),
    )
    yield filled(
        CounterMetricFamily(
            "linerate_study_seconds",
            "Time that it has run, over all sessions.",
            labels=["study"],
            unit="seconds",
        ),
        [([key], spent_s(directory.entries))],
    )
    blocks = list(directory.plan.blocks())
    for name, text, value in (
        ("linerate_study_runs_counted", "Runs whose figures count.", len(directory.measured)),
        ("linerate_study_runs_planned", "Runs of all blocks, at most.", sum(map(len, blocks))),
        ("linerate_study_blocks_planned", "Blocks, at most.", len(blocks)),
    ):
        yield filled(GaugeMetricFamily(name, text, labels=["study"]), [([key], value)])
