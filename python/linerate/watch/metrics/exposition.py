"""The metrics of a run, a study, an array or a lab, as text."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from linerate.array.figures.metrics import array_metrics
from linerate.array.figures.openmetrics import exposition_of
from linerate.watch.array import ArraySource
from linerate.watch.metrics.run import run_metrics
from linerate.watch.metrics.study import study_metrics
from linerate.watch.run import RunSource
from linerate.watch.source import DirectorySource, Source
from linerate.watch.study import StudySource


def exposition(source: Source) -> bytes:
    """The metrics of a source as it was polled last."""
    return exposition_of(_families(source))


def _families(source: Source) -> Iterator[Metric]:
    found = source.found if isinstance(source, DirectorySource) else source
    if isinstance(found, ArraySource):
        yield from array_metrics(found.report)
    if isinstance(found, StudySource):
        yield from study_metrics(found)
    run = found.run if isinstance(found, StudySource) else found
    if isinstance(run, RunSource) and run.manifest is not None:
        yield from run_metrics(run, run.manifest)
