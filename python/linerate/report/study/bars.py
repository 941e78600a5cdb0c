"""Draws one row of a bar chart as a small SVG whose places are percentages of its width.

The rows stand in a table beside their figures: the table is the chart's axis of names, follows the width of the
window without shrinking its text, can be read aloud and copied, and prints. Every row of a chart shares one
`Scale`. Colours are the style sheet's, by class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from linerate.analysis.verdict import Effect
from linerate.report.study import words

_BAR_PX = 10
_CAP_PX = 4
_MARGINS = 2.4
"""A scale is never narrower than this many margins to either side: small changes shall look small."""
_FURTHEST = 100.0
"""And never wider than this many percent."""
_INSET = 8.0
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis of changes, in percent or points; places are percentages of the drawing's width."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, effects: Sequence[Effect], margin: float) -> Scale:
        """An axis with room for every change and its blocks; intervals may be cut when they are far wider."""
        places = [effect.change for effect in effects]
        places += [change for effect in effects for change in by_block(effect)]
        least = _MARGINS * margin
        reach = max([least, *(1.6 * abs(place) for place in places)])
        bounds = [bound for effect in effects for bound in (effect.change_low, effect.change_high)]
        places += [max(-reach, min(bound, reach)) for bound in bounds if bound is not None]
        low = max(min([-least, *places]), -_FURTHEST)
        high = min(max([least, *places]), _FURTHEST)
        step = nice_step((high - low) / _TICKS)
        return cls(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)

    def place(self, change: float) -> float:
        """The position of a change, in percent of the width; outside of the axis: at its end."""
        inside = max(self.low, min(change, self.high))
        return _INSET + (100 - 2 * _INSET) * (inside - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """The labelled changes."""
        count = round((self.high - self.low) / self.step)
        return [round(self.low + number * self.step, 6) for number in range(count + 1)]


def nice_step(width: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50 ... that is at least `width`."""
    power = 10 ** math.floor(math.log10(width))
    return next(float(factor * power) for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))


def axis(scale: Scale, unit: str) -> Markup:
    """The labels above a chart's rows. Every second label may be hidden where the window is narrow."""
    labels = []
    zero = round(-scale.low / scale.step)
    for number, tick in enumerate(scale.ticks()):
        kind = "" if (number - zero) % 2 == 0 else ' class="odd"'
        text = f"{tick:+g} {unit}".rstrip() if tick else "0"
        labels.append(f'<text x="{scale.place(tick):.2f}%" y="13"{kind}>{text}</text>')
    return Markup(f'<svg class="axis" height="18" aria-hidden="true">{"".join(labels)}</svg>')


def row(effect: Effect, scale: Scale, margin: float, floor: float | None = None) -> Markup:
    """A case's bar with its interval, its blocks as dots, and the margin as a band behind them.

    `floor` is the smallest change that these blocks detect: a dashed line to either side.
    """
    left, right = scale.place(-margin), scale.place(margin)
    behind = [
        f'<rect class="band" x="{left:.2f}%" width="{right - left:.2f}%" height="100%"/>',
        *(_rule(scale.place(tick), "zero" if tick == 0 else "tick") for tick in scale.ticks()),
        *(_rule(scale.place(end), "floor") for end in _ends(floor, scale)),
    ]
    # The inner drawing starts in the middle of the row, however tall its case's name makes it.
    front = [_bar(effect, scale), _dots(effect, scale), _interval(effect, scale)]
    return Markup(
        f'<svg class="row" aria-hidden="true"><title>{_tooltip(effect)}</title>{"".join(behind)}'
        f'<svg y="50%">{"".join(front)}</svg></svg>'
    )


def _ends(floor: float | None, scale: Scale) -> list[float]:
    return [] if floor is None else [end for end in (-floor, floor) if scale.low < end < scale.high]


def _tooltip(effect: Effect) -> str:
    """The figures of a row, with those of its blocks."""
    unit = "points" if effect.scale == "difference" else "%"
    blocks = ", ".join(f"{change:+.1f}" for change in by_block(effect))
    interval = f" (95 % interval {words.bounds(effect)})" if effect.change_low is not None else ""
    return f"{words.change(effect)}{interval}; blocks, {unit}: {blocks}"


def by_block(effect: Effect) -> list[float]:
    """The change of each block, in percent or points as the effect's own."""
    if effect.scale == "difference":
        return [difference for _, difference in effect.points]
    return [100 * (ratio - 1) for _, ratio in effect.points]


def share(value: float | None, largest: float) -> Markup:
    """A plain bar of a cost, from 0 to the largest of its column."""
    if value is None or largest <= 0:
        return Markup("")
    width = 100 * value / largest
    return Markup(
        '<svg class="share" height="8" aria-hidden="true">'
        f"<title>{value:,.3g}, {width:.0f} % of the largest in this column ({largest:,.3g})</title>"
        f'<rect width="{width:.1f}%" height="8"/></svg>'
    )


def largest(values: Iterable[float | None]) -> float:
    """The largest of the values that were measured, 0 without any."""
    return max((value for value in values if value is not None), default=0.0)


def _rule(place: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{place:.2f}%" x2="{place:.2f}%" y2="100%"/>'


def _bar(effect: Effect, scale: Scale) -> str:
    start, end = sorted((scale.place(0.0), scale.place(effect.change)))
    return (
        f'<rect class="bar {effect.verdict}" x="{start:.2f}%" y="{-_BAR_PX / 2:g}" width="{end - start:.2f}%" '
        f'height="{_BAR_PX}"/>'
    )


def _interval(effect: Effect, scale: Scale) -> str:
    if effect.change_low is None or effect.change_high is None:
        return ""
    bounds = (effect.change_low, effect.change_high)
    start, end = (scale.place(bound) for bound in bounds)
    line = f'<line class="interval" x1="{start:.2f}%" x2="{end:.2f}%"/>'
    return line + "".join(_end(bound, scale) for bound in bounds)


def _end(bound: float, scale: Scale) -> str:
    """A cap where the interval ends, an arrow head where it runs on beyond the axis."""
    place = f"{scale.place(bound):.2f}%"
    if scale.low <= bound <= scale.high:
        return f'<line class="interval" x1="{place}" x2="{place}" y1="-{_CAP_PX}" y2="{_CAP_PX}"/>'
    head = "&#9656;" if bound > scale.high else "&#9666;"
    return f'<text class="beyond" x="{place}" y="4">{head}</text>'


def _dots(effect: Effect, scale: Scale) -> str:
    return "".join(
        f'<circle class="dot" cx="{scale.place(change):.2f}%" r="2"/>'
        for change in by_block(effect)
        if scale.low <= change <= scale.high
    )
