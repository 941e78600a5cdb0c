"""histogram.html: service times in vdbench's default buckets, for reads and writes together and apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linerate.report.vdbench.layout import banner
from linerate.results import Histogram, RunDirectory
from linerate.results.sample import OPS

_LIMITS_US = (
    *(20, 40, 60, 80, 100, 200, 400, 600, 800),
    *(ms * 1000 for ms in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800)),
    *(1_000_000, 2_000_000),
)
_BAR_WIDTH = 50


def lines(run: RunDirectory) -> Iterable[str]:
    """One section per step and kind of operation that the step did."""
    for record in run.manifest.steps:
        by_op = {op: histogram for op in OPS if (histogram := run.latency(record.key, op=op))}
        total = run.latency(record.key)
        if total is None:
            continue
        yield from ("", banner(record), "")
        if len(by_op) > 1:
            yield from _section("Reads and writes", total)
        for op, histogram in by_op.items():
            yield from _section(
                ("Only " if len(by_op) == 1 else "") + _title(op, only=len(by_op) == 1), histogram
            )


def _title(op: str, *, only: bool) -> str:
    return f"{op}s done" if only else f"{op.capitalize()}s"


def _section(title: str, histogram: Histogram) -> Iterator[str]:
    yield f"{title}:"
    yield f"{'min(ms)':>12} < {'max(ms)':>12} {'count':>14} {'%%':>10} {'cum%%':>10}"
    total = histogram.count
    cumulated = 0
    for low, high, count in counts(histogram):
        cumulated += count
        share = 100 * count / total
        top = "" if high is None else f"{high / 1000:.3f}"
        bar = "*" * round(share * _BAR_WIDTH / 100)
        end = f"{share:>10.4f} {100 * cumulated / total:>10.4f} {bar}".rstrip()
        yield f"{low / 1000:>12.3f} < {top or 'max':>12} {count:>14} {end}"
    yield ""


def counts(histogram: Histogram) -> list[tuple[int, int | None, int]]:
    """(lower limit, upper limit, count) of every bucket, limits in us; the last has no upper limit.

    A bucket of the histogram that spans a limit is counted where its middle lies: it is 0.1 % wide.
    """
    edges = (0, *_LIMITS_US)
    found = [0] * len(edges)
    place = 0
    for lowest, highest, count in histogram.buckets():
        middle_us = (lowest + highest) / 2000
        while place + 1 < len(edges) and middle_us >= edges[place + 1]:
            place += 1
        found[place] += count
    return [(low, high, count) for low, high, count in zip(edges, (*_LIMITS_US, None), found, strict=True)]
