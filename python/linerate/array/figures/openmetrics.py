"""Metrics in the OpenMetrics format, by prometheus_client, in a registry that holds nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def filled(
    family: CounterMetricFamily | GaugeMetricFamily, values: Iterable[tuple[list[str], float]]
) -> Metric:
    """The metric with these (values of its labels, value)."""
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def exposition_of(families: Iterable[Metric]) -> bytes:
    """The metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    text: bytes = generate_latest(registry)
    return text
