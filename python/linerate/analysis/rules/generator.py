"""Rules about the load generator: the device that must never be the bottleneck unnoticed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from linerate.analysis.rules.base import Doubt, StepRule, StepView

HOST_CPU_PERCENT_MAX = 80.0  # where vdbench warns
WORKER_BUSY_MAX = 0.95
LATE_PERCENT_MAX = 1.0
RATE_PERCENT_MIN = 98.0
DEPTH_PERCENT_MIN = 90.0
SKEW_POINTS_MAX = 1.0  # where vdbench warns


def _host_saturated(step: StepView) -> Iterator[Doubt]:
    busy = step.summary.usage.cpu_busy_percent
    if busy is not None and busy >= HOST_CPU_PERCENT_MAX:
        yield Doubt(
            "suspect",
            f"the load host's CPUs were {busy:.0f} % busy: the host may be what limits, not the SAN",
            "use a faster or a second load host, fewer volumes, or larger I/Os",
        )


def _workers_saturated(step: StepView) -> Iterator[Doubt]:
    workers = int(step.record.facts.get("workers") or 0)
    cores = step.summary.usage.load_cores
    if workers and step.spec.get("wait") != "spin" and cores >= WORKER_BUSY_MAX * workers:
        yield Doubt(
            "suspect",
            f"the load kept {cores:.2f} CPUs busy with {workers} workers: the generator is the limit",
            "set workers to a larger number, if the host has CPUs to spare",
        )


def _arrivals_late(step: StepView) -> Iterator[Doubt]:
    usage, total = step.summary.usage, step.summary.total
    if step.closed_loop or not total.ios:
        return
    late = 100 * usage.late_arrivals / total.ios
    if late > LATE_PERCENT_MAX:
        yield Doubt(
            "suspect",
            f"{late:.1f} % of the I/Os started later than intended; at most {usage.backlog_max} were waiting",
            "compare response time with service time; lower the rate, or allow more outstanding I/Os",
        )
    asked = step.spec.get("arrival", {}).get("rate_iops")
    if asked and total.iops < asked * RATE_PERCENT_MIN / 100:
        yield Doubt(
            "suspect",
            f"the i/o rate was {total.iops:.0f} instead of the {asked:.0f} asked for",
            "the SAN or the generator cannot follow: lower the rate",
        )


def _depth_missed(step: StepView) -> Iterator[Doubt]:
    asked = step.summary.queue_depth_asked
    if not asked or not step.summary.total.ios:
        return
    achieved = step.summary.queue_depth
    if achieved < asked * DEPTH_PERCENT_MIN / 100:
        yield Doubt(
            "suspect",
            f"the queue depth was {achieved:.1f} on average, of {asked} asked for",
            "the generator is busy elsewhere: give it more workers or CPUs",
        )


def _skew_missed(step: StepView) -> Iterator[Doubt]:
    asked = {s["name"]: s["share_percent"] for s in step.streams if s.get("share_percent") is not None}
    total = step.summary.total.ios
    if not asked or not total:
        return
    done = dict(step.rows.group_by("stream").agg(pl.col("ios").sum()).iter_rows())
    for name, share in asked.items():
        observed = 100 * done.get(name, 0) / total
        if abs(observed - share) > SKEW_POINTS_MAX:
            yield Doubt(
                "suspect",
                f"stream {name} did {observed:.1f} % of the I/Os instead of {share:g} %",
                'use shares = "controlled", or run longer',
            )


def _closed_loop(step: StepView) -> Iterator[Doubt]:
    if step.closed_loop:
        yield Doubt(
            "note",
            "percentiles hold for this queue depth only: a slow SAN was asked less often",
            "use an open loop (a fixed rate) to see what an application at that rate would wait",
        )


def _spinning(step: StepView) -> Iterator[Doubt]:
    if step.spec.get("wait") == "spin":
        yield Doubt(
            "note",
            "the workers polled without sleeping: CPU figures say nothing about the cost of an I/O",
            'use wait = "block" to measure CPU',
        )


RULES = (
    StepRule("load-host-saturated", _host_saturated),
    StepRule("generator-limited", _workers_saturated),
    StepRule("late-arrivals", _arrivals_late),
    StepRule("depth-missed", _depth_missed),
    StepRule("skew-missed", _skew_missed),
    StepRule("closed-loop", _closed_loop),
    StepRule("polling", _spinning),
)
