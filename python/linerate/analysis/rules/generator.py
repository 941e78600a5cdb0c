"""Rules about the load generator: the device that must never be the bottleneck unnoticed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note, short_ms
from linerate.analysis.summary import measured

HOST_CPU_PERCENT_MAX = 80.0  # where vdbench warns
WORKER_BUSY_MAX = 0.95
POLLING_CORES_MIN = 0.2  # below, other programs hardly notice
LATE_PERCENT_MAX = 1.0
WAIT_PERCENT_MIN = 1.0  # of the response time; below, waiting for a turn changes nothing that a run resolves
DEPTH_PERCENT_MIN = 90.0
SKEW_POINTS_MAX = 1.0  # where vdbench warns
CHANCE_SIGMAS = 3.0  # a share of few I/Os is off by chance


def _host_saturated(step: StepView) -> Iterator[Doubt]:
    usage, total = step.summary.usage, step.summary.total
    busy = usage.cpu_busy_percent
    if busy is None or busy < HOST_CPU_PERCENT_MAX or step.in_laboratory:
        return
    if step.rate_kept:
        rest_ms = max(measured(total.response_mean_ms) - measured(usage.rtt_us_mean) / 1000, 0.0)
        effect = f"the rate was kept; up to {short_ms(rest_ms)} of the response time may be waits for a CPU"
    else:
        more = 100 * (100 / max(busy, 1.0) - 1)
        effect = (
            f"the storage may do more than {total.iops:,.0f} IOPS; this host has CPUs for {more:.0f} % more"
        )
    yield caution(
        f"the load host's CPUs were {busy:.0f} % busy: the host may be what limits, not the SAN",
        effect,
        "use a faster or a second load host, fewer volumes, or larger I/Os",
    )


def _workers_saturated(step: StepView) -> Iterator[Doubt]:
    workers = int(step.record.facts.get("workers") or 0)
    usage = step.summary.usage
    cores = measured(usage.load_cores)
    if not workers or cores < WORKER_BUSY_MAX * workers:
        return
    cpus = step.run.manifest.environment.get("cpu.count")
    effect = f"the storage may do more than {step.summary.total.iops:,.0f} IOPS"
    if isinstance(cpus, int) and usage.cpu_busy_percent is not None:
        idle = cpus * (1 - usage.cpu_busy_percent / 100)
        effect += f"; a worker on each idle CPU would add at most {100 * idle / cores:.0f} %"
    yield caution(
        f"the load kept {cores:.2f} CPUs busy with {workers} workers: the generator is the limit",
        effect,
        "set workers to a larger number, if the host has CPUs to spare",
    )


def _arrivals_late(step: StepView) -> Iterator[Doubt]:
    usage, total = step.summary.usage, step.summary.total
    if step.closed_loop or not total.ios:
        return
    late = 100 * measured(usage.late_arrivals) / total.ios
    if late > LATE_PERCENT_MAX:
        response_ms = measured(total.response_mean_ms)
        waited_ms = max(response_ms - measured(total.mean_ms), 0.0)
        reason = (
            f"{late:.1f} % of the I/Os started later than intended; at most {usage.backlog_max} were waiting"
        )
        if waited_ms < response_ms * WAIT_PERCENT_MIN / 100:
            yield note(
                f"{reason}; that is {short_ms(waited_ms)} of the mean response time", "nothing has to be done"
            )
        else:
            yield caution(
                reason,
                f"service times hide {short_ms(waited_ms)} of the response time, {short_ms(response_ms)}",
                "use the response time, which counts from the intended start; lower the rate (of a trace: a larger "
                "--time-scale), or allow more outstanding I/Os",
            )
    asked = step.spec.get("arrival", {}).get("rate_iops")
    if asked and not step.rate_kept:
        yield caution(
            f"the i/o rate was {total.iops:.0f} instead of the {asked:.0f} asked for",
            f"the rate is {100 * (1 - total.iops / asked):.2g} % too low, and response times grow as long as it runs",
            "the SAN or the generator cannot follow: lower the rate",
        )


def _trace_cut(step: StepView) -> Iterator[Doubt]:
    """A replay that ended before its trace. The warm-up is not counted, so that a step with one is not judged."""
    planned = sum(stream["trace"]["ios"] for stream in step.streams if stream.get("trace"))
    done = step.summary.total.ios
    if planned > done and not step.spec.get("warmup_s"):
        yield caution(
            f"{planned - done:,} of the {planned:,} I/Os of the trace were not replayed",
            "the result is of a part of the trace",
            "the storage or the generator could not follow: give a larger --time-scale or --elapsed, or allow more "
            "outstanding I/Os",
        )


def _depth_missed(step: StepView) -> Iterator[Doubt]:
    asked = step.summary.queue_depth_asked
    if not asked or not step.summary.total.ios:
        return
    achieved = measured(step.summary.queue_depth)
    if achieved < asked * DEPTH_PERCENT_MIN / 100:
        yield caution(
            f"the queue depth was {achieved:.1f} on average, of {asked} asked for",
            f"with the whole depth the rate may be up to {100 * (asked / max(achieved, 1e-9) - 1):.0f} % higher",
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
        chance = CHANCE_SIGMAS * math.sqrt(share * (100 - share) / total)
        if abs(observed - share) > max(SKEW_POINTS_MAX, chance):
            yield caution(
                f"stream {name} did {observed:.1f} % of the I/Os instead of {share:g} %",
                f"rate and times are of another mix: {abs(observed - share):.1f} of 100 I/Os are of other streams",
                'use shares = "controlled", or run longer',
            )


def _closed_loop(step: StepView) -> Iterator[Doubt]:
    if step.closed_loop:
        yield note(
            "percentiles are for this queue depth: in a closed loop a slow SAN receives fewer I/Os",
            "use an open loop (a fixed rate) to see what an application at that rate would wait",
        )


def _polling(step: StepView) -> Iterator[Doubt]:
    cores = measured(step.summary.usage.polling_cores)
    if cores >= POLLING_CORES_MIN:
        yield note(
            f"the workers polled on {cores:.2f} CPUs while they waited. The CPU figures here do not include it, but "
            "`top` does",
            'use wait = "block" if other programs need the CPU',
        )


RULES = (
    StepRule("load-host-saturated", _host_saturated),
    StepRule("generator-limited", _workers_saturated),
    StepRule("late-arrivals", _arrivals_late),
    StepRule("depth-missed", _depth_missed),
    StepRule("skew-missed", _skew_missed),
    StepRule("closed-loop", _closed_loop),
    StepRule("trace-cut", _trace_cut),
    StepRule("polling", _polling),
)
