"""Rules about time: long enough, enough intervals, steady, warmed up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note, void
from linerate.analysis.steady import RANGE_PERCENT_MAX, ROUNDS, SLOPE_PERCENT_MAX, SteadyState, steady_state
from linerate.analysis.summary import NS_PER_MS
from linerate.plural import plural
from linerate.workload.plan import UNTIL_DONE_S

BRIEF_S = 60.0  # the round of the SNIA test
ENDED_EARLY = 0.9  # of the time that was asked for
WARMUP_PERCENT_MIN = 1.0  # below, the slow start changes the mean less than runs differ from each other
COUNTING_SIGMAS = 4.0
"""Range of five counts of random arrivals that chance alone exceeds in one of 25 runs, in standard deviations."""
_WINDOW = f"limits: range {RANGE_PERCENT_MAX:g} %, slope {SLOPE_PERCENT_MAX:g} % of the mean"


def _too_short(step: StepView) -> Iterator[Doubt]:
    """A short run was asked for: that is told once, and is no doubt. One that ended before its time is one."""
    seconds = step.summary.seconds
    asked_s = float(step.spec.get("elapsed_s") or 0.0)
    ends_when_done = asked_s >= UNTIL_DONE_S or _has_done_its_work(step)
    if not step.summary.intervals:
        yield void("no interval was measured", "lengthen elapsed, or look at why the step ended")
    elif seconds < ENDED_EARLY * asked_s and not ends_when_done:
        yield caution(
            f"the step ended after {seconds:.3g} s of {asked_s:g} s",
            f"the averages leave out the last {100 * (1 - seconds / asked_s):.0f} % of the time",
            "look at the events for the reason, and run it again",
        )
    elif seconds < BRIEF_S:
        differ = (
            f"; its intervals differ by up to {spread:.0f} %" if (spread := _spread_of(step.iops)) else ""
        )
        yield note(
            f"short: {seconds:.3g} s were measured{differ}",
            f"give it work for {BRIEF_S:g} s or more for a figure to publish"
            if ends_when_done
            else f"set elapsed to {BRIEF_S:g} s or more for a figure to publish",
        )


def _has_done_its_work(step: StepView) -> bool:
    """It has moved the bytes after which it was to end, or come to the end of its volumes."""
    limits, summary = step.spec.get("limits") or {}, step.summary
    moved = {"bytes": summary.total, "read_bytes": summary.read, "written_bytes": summary.write}
    if any((most := limits.get(key)) and by is not None and by.bytes >= most for key, by in moved.items()):
        return True
    streams = step.spec.get("streams") or []
    return bool(streams) and all(stream.get("stop_at_end") for stream in streams)


def _spread_of(iops: list[float]) -> float:
    """How far the interval that is furthest from the mean is from it, in percent of the mean."""
    mean = sum(iops) / len(iops) if iops else 0.0
    return 100 * max(abs(value - mean) for value in iops) / mean if mean else 0.0


def _too_few_intervals(step: StepView) -> Iterator[Doubt]:
    if 0 < (count := step.summary.intervals) < ROUNDS:
        yield note(
            f"{plural(count, 'interval')}: too few to see whether the rate was steady",
            f"shorten interval or lengthen elapsed, so that there are at least {ROUNDS}",
        )


def _holes(step: StepView) -> Iterator[Doubt]:
    indexes = step.usage["interval"].to_list()
    lost = sum(b - a - 1 for a, b in pairwise(indexes))
    if lost:
        whole = lost + len(indexes)
        yield caution(
            f"{lost} of {whole} intervals are missing",
            f"the averages leave out {100 * lost / whole:.2g} % of the time",
            "look at the events, and run it again",
        )


def _not_steady(step: StepView) -> Iterator[Doubt]:
    steady = steady_state(step.iops)
    if steady is None or steady.steady_from is not None or steady.range_percent <= _counting_noise(step):
        return
    if faults := _faults(step):
        yield note(
            f"IOPS were not steady: {_spread(steady)}; faults were made meanwhile: {', '.join(faults)}",
            "read the figures of the faults and not the average rate",
        )
        return
    yield caution(
        f"IOPS were not steady: {_spread(steady)} ({_WINDOW})",
        f"the rate of a longer run may differ by up to {steady.range_percent:.0f} %",
        "run longer, or look for what else uses the array, the network or this host",
    )


def _counting_noise(step: StepView) -> float:
    """The range that five rounds of so few I/Os have by chance, in percent."""
    per_round = step.summary.total.ios / ROUNDS
    return 100 * COUNTING_SIGMAS / math.sqrt(per_round) if per_round else 0.0


def _faults(step: StepView) -> list[str]:
    """What was broken on purpose, each once."""
    events = [event for event in step.run.events if event.kind == "fault" and event.step == step.record.key]
    return list(dict.fromkeys(event.message for event in events))


def _warmup_too_short(step: StepView) -> Iterator[Doubt]:
    steady = steady_state(step.iops)
    warmup_s = float(step.spec.get("warmup_s") or 0.0)
    beyond_chance = steady is not None and steady.range_percent > _counting_noise(step)
    if steady is not None and steady.steady_from and beyond_chance and not _faults(step):
        late_s = float(step.usage["start_s"][steady.steady_from])
        later = step.iops[steady.steady_from :]
        shift = 100 * (sum(later) / len(later) / (sum(step.iops) / len(step.iops)) - 1)
        reason = f"IOPS were steady only from second {late_s:g} on, and warm-up ended at {warmup_s:g} s"
        advice = f"set warmup to at least {late_s:g} s"
        if abs(shift) < WARMUP_PERCENT_MIN:
            yield note(f"{reason}; that changes the mean by {shift:+.1f} %", advice)
        else:
            yield caution(reason, f"without the unsteady start the rate is {shift:+.1f} %", advice)
    elif warmup_s == 0 and step.summary.intervals:
        yield note(
            "there was no warm-up: the first seconds are part of the result",
            "set warmup, for example to 5 s",
        )


def _tail_not_steady(step: StepView) -> Iterator[Doubt]:
    over_time = step.run.latency_over_time(step.record.key)
    tails = [histogram.quantile(0.99) / NS_PER_MS for _, histogram in over_time]
    steady = steady_state(tails)
    if steady is not None and not steady.attained:
        yield note(
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
