"""The response curve and the answers, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.plural import plural
from linerate.scale.curve import by_load
from linerate.scale.headroom import Headroom, headroom
from linerate.scale.interval import MeanInterval
from linerate.scale.laws import laws_of
from linerate.scale.laws.words import laws_lines
from linerate.scale.procedure import Procedure
from linerate.scale.reached import Axis, Reached, load_text, unit_text
from linerate.scale.search import Capacity, SearchLimits
from linerate.scale.threshold import Standing, Threshold
from linerate.scale.way_down import compared

_FAR = 1.5  # of the threshold
KEPT: dict[Standing, str] = {"below": "kept", "above": "missed", "undecided": "too close to tell"}


def answer_lines(axis: Axis, threshold: Threshold, procedure: Procedure) -> Iterator[str]:
    """All that a search has to say."""
    found, runs, limits = procedure.capacity(), procedure.runs, procedure.limits
    yield from curve_lines(axis, threshold, runs, found)
    yield answer(axis, threshold, limits, found)
    if text := way_down_text(axis, threshold, runs):
        yield text
    yield from laws_lines(axis, laws_of(axis, runs))
    if found.kept is not None:
        yield from headroom_lines(axis, threshold, runs, limits, found.kept)
    yield from doubt_lines(runs)


def doubt_lines(runs: Sequence[Reached]) -> Iterator[str]:
    """What makes single runs less certain; it goes with the answer."""
    for one in runs:
        for doubt in one.doubts:
            yield f"Caution: a run at {one.load:,}: {doubt}."


def run_text(reached: Reached) -> str:
    """A run in a line."""
    marks = {
        "up": "",
        "curve": "  curve",
        "down": "  way down",
        "headroom": f"  {reached.share_percent} % of the rate",
    }
    mark = marks[reached.purpose]
    return f"  {reached.load:>8,}  {reached.response_ms:>10.3g} ms  {reached.iops:>12,.0f} I/Os per s{mark}"


def curve_lines(axis: Axis, threshold: Threshold, runs: Sequence[Reached], found: Capacity) -> Iterator[str]:
    """A line for each load that was measured."""
    title = f"{threshold.metric} ms"
    yield f"{axis:>8}  {'I/Os per s':>12}  {title:>10}  runs"
    for load, reached in by_load(runs).items():
        iops = sum(one.iops for one in reached) / len(reached)
        time_ms = sum(one.response_ms for one in reached) / len(reached)
        mark = "" if load not in found.undecided else f"  {_doubt(time_ms, threshold, len(reached))}"
        yield f"{load:>8,}  {iops:>12,.0f}  {time_ms:>10.3g}  {len(reached):>4}{mark}"


def _doubt(time_ms: float, threshold: Threshold, runs: int) -> str:
    """Why a load is undecided: few runs that differ tell little, however far the threshold is."""
    ratio = time_ms / threshold.limit_ms
    is_far = max(ratio, 1 / ratio) > _FAR if ratio > 0 else True
    return f"not decided by {plural(runs, 'run')}" if is_far else "too close to the threshold"


def answer(axis: Axis, threshold: Threshold, limits: SearchLimits, found: Capacity) -> str:
    """The largest load in a sentence."""
    kept, missed, close = found.kept, found.missed, found.undecided
    what = f"with a {threshold}"
    if missed is None and not close and kept is not None:
        more = " A larger --most finds where it ends." if axis in ("threads", "rate") else ""
        return f"The largest load that was allowed keeps it: at least {load_text(axis, kept)} {what}.{more}"
    if missed == limits.least:
        return f"Even the smallest load, {load_text(axis, missed)}, misses a {threshold}."
    if missed is None:
        if kept is None:
            none = "no rate" if axis == "rate" else f"no number of {axis}"
            return (
                f"The largest load is not known: {none} {what} is sure. No load could be told from the "
                "threshold; more repeats or time help."
            )
        least = f"at least {load_text(axis, kept)} {what}"
        return f"Largest load: {least}; larger ones could not be told from the threshold. More repeats or time help."
    if kept is None:
        return f"Largest load: at most {load_text(axis, missed - 1)} {what} (95 % confidence); none is surely below it."
    if missed == kept + 1:
        return f"Largest load: {load_text(axis, kept)} {what} (95 % confidence)."
    return f"Largest load: between {kept:,} and {load_text(axis, missed - 1)} {what} (95 % confidence)."


def headroom_lines(
    axis: Axis, threshold: Threshold, runs: Sequence[Reached], limits: SearchLimits, load: int
) -> Iterator[str]:
    """A line for each share of the rate at the largest load."""
    rows = list(headroom(runs, limits))
    if not rows:
        return
    yield f"Headroom: shares of the rate at {load_text(axis, load)}, with Poisson arrivals (95 % intervals)"
    yield f"{'share':>8}  {'I/Os per s':>12}  {'mean ms':>22}  {'p99 ms':>22}  runs  {threshold}"
    for row in rows:
        yield (
            f"{row.share_percent:>6} %  {row.iops:>12,.0f}  {span(row.mean_ms):>22}  {span(row.p99_ms):>22}  "
            f"{row.runs:>4}  {kept_text(row)}"
        )


def way_down_text(axis: Axis, threshold: Threshold, runs: Sequence[Reached]) -> str:
    """What the way down shows, in one sentence; empty without one."""
    found = compared(runs)
    if not found:
        return ""
    differing = [one for one in found if one.differs]
    if not differing:
        loads = ", ".join(f"{one.load:,}" for one in found)
        return f"On the way down ({loads} {unit_text(axis)}) nothing differs by more than repeats explain."
    parts = (
        f"at {load_text(axis, one.load)} a {threshold.metric} of {one.down_ms:.3g} ms and {one.down_iops:,.0f} "
        f"I/Os per s, on the way up {one.up_ms:.3g} ms and {one.up_iops:,.0f}"
        for one in differing
    )
    return (
        f"The way down differs by more than repeats explain: {'; '.join(parts)}. "
        "The SAN depends on earlier loads, or it drifts."
    )


def kept_text(row: Headroom) -> str:
    """Whether a share keeps the threshold, and that the rate was not reached, if so."""
    late = "; the rate was not reached" if row.iops < _RATE_REACHED * row.asked_iops else ""
    return KEPT[row.standing] + late


_RATE_REACHED = 0.95


def span(found: MeanInterval | None) -> str:
    """A value with its interval: `12.3 (11.9 to 12.7)`."""
    return f"{found.centre:.3g} ({found.low:.3g} to {found.high:.3g})" if found else "-"
