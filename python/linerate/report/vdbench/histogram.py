"""histogram.html: service times in buckets, vdbench's or those of histogram=, for all I/Os, reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from linerate.report.vdbench.layout import banner
from linerate.results import LatencyHistogram, RunDirectory
from linerate.results.sample import OPS

LIMITS_US = (
    *(20, 40, 60, 80, 100, 200, 400, 600, 800),
    *(ms * 1000 for ms in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800)),
    *(1_000_000, 2_000_000),
)
_BAR_WIDTH = 50


def lines(run: RunDirectory) -> Iterable[str]:
    """One section per step and kind of operation that the step did."""
    for record in run.manifest.steps:
        limits_us = record.histogram_us or LIMITS_US
        by_op = {op: histogram for op in OPS if (histogram := run.latency(record.key, op=op))}
        total = run.latency(record.key)
        if total is None:
            continue
        yield from ("", banner(record), "")
        if len(by_op) > 1:
            yield from _section("Reads and writes", total, limits_us)
        for op, histogram in by_op.items():
            title = f"Only {op}s done" if len(by_op) == 1 else f"{op.capitalize()}s"
            yield from _section(title, histogram, limits_us)


def _section(title: str, histogram: LatencyHistogram, limits_us: Sequence[int]) -> Iterator[str]:
    yield f"{title}:"
    yield f"{'min(ms)':>12} < {'max(ms)':>12} {'count':>14} {'%%':>10} {'cum%%':>10}"
    total = histogram.count
    cumulated = 0
    for low, high, count in counts(histogram, limits_us):
        cumulated += count
        share = 100 * count / total
        top = "" if high is None else f"{high / 1000:.3f}"
        bar = "*" * round(share * _BAR_WIDTH / 100)
        end = f"{share:>10.4f} {100 * cumulated / total:>10.4f} {bar}".rstrip()
        yield f"{low / 1000:>12.3f} < {top or 'max':>12} {count:>14} {end}"
    yield ""


def counts(histogram: LatencyHistogram, limits_us: Sequence[int]) -> list[tuple[int, int | None, int]]:
    """(lower limit, upper limit, count) of every bucket, limits in us; the last has no upper limit.

    A bucket of the histogram that spans a limit is counted at its middle: it is 0.1 % wide.
    """
    edges = (0, *limits_us)
    found = [0] * len(edges)
    place = 0
    for lowest, highest, count in histogram.buckets():
        middle_us = (lowest + highest) / 2000
        while place + 1 < len(edges) and middle_us >= edges[place + 1]:
            place += 1
        found[place] += count
    return [(low, high, count) for low, high, count in zip(edges, (*limits_us, None), found, strict=True)]
