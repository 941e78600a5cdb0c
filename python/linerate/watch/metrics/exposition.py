"""Renders the metrics of a source with prometheus_client, in a registry that holds nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CollectorRegistry, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from linerate.watch.array import ArraySource
from linerate.watch.metrics.array import array_metrics
from linerate.watch.metrics.run import run_metrics
from linerate.watch.metrics.study import study_metrics
from linerate.watch.run import RunSource
from linerate.watch.source import DirectorySource, Source
from linerate.watch.study import StudySource

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Sources(Collector):
    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        found = self._source.found if isinstance(self._source, DirectorySource) else self._source
        if isinstance(found, ArraySource):
            yield from array_metrics(found)
        if isinstance(found, StudySource):
            yield from study_metrics(found)
        run = found.run if isinstance(found, StudySource) else found
        if isinstance(run, RunSource) and run.manifest is not None:
            yield from run_metrics(run, run.manifest)


def exposition(source: Source) -> bytes:
    """The metrics of a source as it was polled last."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Sources(source))
    text: bytes = generate_latest(registry)
    return text
