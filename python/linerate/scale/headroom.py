"""Response times below the largest load: 70, 80 and 90 % of its rate, with Poisson arrivals.

A closed loop waits for the SAN, so its load never comes in bursts. The I/Os of many users do. Poisson arrivals show how
much of the largest rate keeps the threshold then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from linerate.scale.interval import MeanInterval, interval
from linerate.scale.reached import Reached, ScaleTask
from linerate.scale.search import ALPHA, SearchLimits
from linerate.scale.threshold import Standing, standing

SHARES_PERCENT = (70, 80, 90)
_REPEATS_LEAST = 3  # an interval of two values is wider than any difference of interest


@dataclass(frozen=True, slots=True)
class Headroom:
    """A share of the rate at the largest load: what was asked for, what was done, and whether the threshold is kept."""

    share_percent: int
    asked_iops: float
    iops: float
    mean_ms: MeanInterval | None
    """None after a single run."""
    p99_ms: MeanInterval | None
    """None also where a run was too short for it."""
    standing: Standing
    runs: int


def repeats_of(limits: SearchLimits) -> tuple[int, int]:
    """Fewest and most runs of one share."""
    return min(_REPEATS_LEAST, limits.repeats_most), limits.repeats_most


def next_task(runs: Sequence[Reached], limits: SearchLimits, load: int) -> ScaleTask | None:
    """The run of headroom to make next, given all runs and the largest load; None when all shares are decided."""
    least, most = repeats_of(limits)
    rate_iops = fmean(run.iops for run in runs if run.purpose == "up" and run.load == load)
    for share in SHARES_PERCENT:
        values = [run.response_ms for run in _of(runs, share)]
        open_still = _standing(values, limits) == "undecided" and len(values) < most
        if len(values) < least or open_still:
            return ScaleTask("headroom", load, share, rate_iops * share / 100)
    return None


def headroom(runs: Sequence[Reached], limits: SearchLimits) -> Iterator[Headroom]:
    """What the runs say of each share that was measured."""
    for share in SHARES_PERCENT:
        of_share = _of(runs, share)
        if not of_share:
            continue
        tails = [run.p99_ms for run in of_share if run.p99_ms is not None]
        yield Headroom(
            share,
            of_share[0].asked_iops or 0.0,
            fmean(run.iops for run in of_share),
            interval([run.mean_ms for run in of_share]),
            interval(tails) if len(tails) == len(of_share) else None,
            _standing([run.response_ms for run in of_share], limits),
            len(of_share),
        )


def _of(runs: Sequence[Reached], share_percent: int) -> list[Reached]:
    return [run for run in runs if run.purpose == "headroom" and run.share_percent == share_percent]


def _standing(values_ms: Sequence[float], limits: SearchLimits) -> Standing:
    """Looked at after each repeat from the least on: all looks at all shares have one error together."""
    least, most = repeats_of(limits)
    if len(values_ms) < least:
        return "undecided"
    return standing(values_ms, limits.limit_ms, ALPHA / (len(SHARES_PERCENT) * (most - least + 1)))
