"""Fills a metric with its values: one for each set of labels."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


def filled(
    family: CounterMetricFamily | GaugeMetricFamily, values: Iterable[tuple[list[str], float]]
) -> Metric:
    """The metric with these (values of its labels, value)."""
    for labels, value in values:
        family.add_metric(labels, value)
    return family
