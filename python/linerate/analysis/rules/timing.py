"""Rules about time: long enough, enough intervals, steady, warmed up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from linerate.analysis.rules.base import Doubt, StepRule, StepView
from linerate.analysis.steady import RANGE_PERCENT_MAX, ROUNDS, SLOPE_PERCENT_MAX, SteadyState, steady_state
from linerate.analysis.summary import NS_PER_MS

SHORT_S = 10.0
BRIEF_S = 60.0  # the round of the SNIA test
_WINDOW = f"limits: range {RANGE_PERCENT_MAX:g} %, slope {SLOPE_PERCENT_MAX:g} % of the mean"


def _too_short(step: StepView) -> Iterator[Doubt]:
    seconds = step.summary.seconds
    if not step.summary.intervals:
        yield Doubt("void", "no interval was measured", "lengthen elapsed, or look at why the step ended")
    elif seconds < SHORT_S:
        yield Doubt("suspect", f"only {seconds:g} s were measured", "set elapsed to at least 60 s")
    elif seconds < BRIEF_S:
        yield Doubt(
            "note", f"{seconds:g} s were measured", "set elapsed to 60 s or more for a figure to publish"
        )


def _too_few_intervals(step: StepView) -> Iterator[Doubt]:
    if 0 < step.summary.intervals < ROUNDS:
        yield Doubt(
            "suspect",
            f"{step.summary.intervals} intervals: too few to see whether the rate was steady",
            f"shorten interval or lengthen elapsed, so that there are at least {ROUNDS}",
        )


def _holes(step: StepView) -> Iterator[Doubt]:
    indexes = step.usage["interval"].to_list()
    lost = sum(b - a - 1 for a, b in pairwise(indexes))
    if lost:
        yield Doubt("suspect", f"{lost} intervals are missing", "look at the events; run it again")


def _not_steady(step: StepView) -> Iterator[Doubt]:
    steady = steady_state(step.iops)
    if steady is None or steady.steady_from is not None:
        return
    if faults := _faults(step):
        yield Doubt(
            "note",
            f"IOPS were not steady: {_spread(steady)}; faults were made meanwhile: {', '.join(faults)}",
            "read the figures of the faults and not the average rate",
        )
        return
    yield Doubt(
        "suspect",
        f"IOPS were not steady: {_spread(steady)} ({_WINDOW})",
        "run longer, or look for what else uses the array, the network or this host",
    )


def _faults(step: StepView) -> list[str]:
    """What was broken on purpose, each once."""
    events = [event for event in step.run.events if event.kind == "fault" and event.step == step.record.key]
    return list(dict.fromkeys(event.message for event in events))


def _warmup_too_short(step: StepView) -> Iterator[Doubt]:
    steady = steady_state(step.iops)
    warmup_s = float(step.spec.get("warmup_s") or 0.0)
    if steady is not None and steady.steady_from and not _faults(step):
        late_s = float(step.usage["start_s"][steady.steady_from])
        yield Doubt(
            "suspect",
            f"IOPS were steady only from second {late_s:g} on, and warm-up ended at {warmup_s:g} s",
            f"set warmup to at least {late_s:g} s",
        )
    elif warmup_s == 0 and step.summary.intervals:
        yield Doubt(
            "note",
            "there was no warm-up: the first seconds are part of the result",
            "set warmup, for example to 5 s",
        )


def _tail_not_steady(step: StepView) -> Iterator[Doubt]:
    over_time = step.run.latency_over_time(step.record.key)
    tails = [histogram.quantile(0.99) / NS_PER_MS for _, histogram in over_time]
    steady = steady_state(tails)
    if steady is not None and not steady.attained:
        yield Doubt(
            "note",
            f"the 99th percentile was not steady: {_spread(steady)} ({_WINDOW})",
            "read percentiles over time before quoting one number",
        )


def _spread(steady: SteadyState) -> str:
    spread, slope = steady.range_percent, steady.slope_percent
    return f"range {spread:.1f} %, slope {slope:+.1f} % of the mean over {ROUNDS} rounds"


RULES = (
    StepRule("too-short", _too_short),
    StepRule("too-few-intervals", _too_few_intervals),
    StepRule("intervals-missing", _holes),
    StepRule("not-steady", _not_steady),
    StepRule("warmup-too-short", _warmup_too_short),
    StepRule("tail-not-steady", _tail_not_steady),
)
