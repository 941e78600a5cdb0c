"""What a search does and what came of it, in lines for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from linerate.plural import plural
from linerate.setting import Value
from linerate.tune.effects import Effects, Pair
from linerate.tune.factors import Space
from linerate.tune.foldover import candidates
from linerate.tune.power import runs_one_at_a_time, smallest_effect
from linerate.tune.stages import Measured, Procedure

NO_RESULT = "used for the choice, not a result"


def plan_lines(procedure: Procedure) -> Iterator[str]:
    """The settings, the exclusions, and the stages with their runs."""
    space, design = procedure.space, procedure.design
    for factor in space.factors:
        between = ", ".join(map(value_text, factor.levels[1:-1]))
        later = f" (then {between})" if between else ""
        yield f"  {factor.name}: {value_text(factor.levels[0])} against {value_text(factor.levels[-1])}{later}"
    for one in space.exclusions:
        reason = one.reason or "forbidden by the user"
        yield f"  never together: {settings_text(one.values)}: {reason}"
    if design.mixed:
        yield (
            f"  what is excluded costs clearness: a main effect may hold up to {design.mixed:.0%} of an interaction "
            "of two settings"
        )
    for stage in procedure.planned():
        points = plural(len(stage.points), "configuration")
        yield f"  {stage.name}: {points} in {plural(stage.blocks, 'block')}: {plural(stage.runs, 'run')}"
    if most := procedure.later_most():
        yield f"  if interactions or levels between must be told apart: up to {most} runs more"


def power_line(procedure: Procedure, measured: Measured) -> str:
    """The smallest effect that the screening finds, and where the spread is from."""
    spread = procedure.spread(measured)
    points, blocks, factors = (
        len(procedure.design.points),
        procedure.effort.blocks,
        len(procedure.space.factors),
    )
    source = "as measured by the pilot"
    if procedure.effort.spread is not None:
        source = "as given"
    elif "pilot" not in measured:
        source = "assumed; the pilot measures it"
    once = runs_one_at_a_time(points, blocks, factors)
    if not math.isfinite(spread):
        return "too few runs of the pilot count to tell what the screening will find"
    smallest = smallest_effect(spread, points, blocks, factors)
    return (
        f"runs that scatter by {spread:.2%} ({source}): effects from {smallest:.2%} on are found with a probability of "
        f"80 %; one setting at a time needs {once} runs for the same intervals, this screening {points * blocks}"
    )


def effect_lines(space: Space, found: Effects) -> Iterator[str]:
    """The effects of a screening: settings by the size of their effect, then interactions that are shown."""
    yield f"Effects of the screening ({NO_RESULT}; 95 % intervals; {plural(found.runs, 'run')}):"
    names = {one.factor: space.factors[one.factor] for one in found.factors}
    changes = {
        index: f"{value_text(factor.levels[0])} -> {value_text(factor.levels[-1])}"
        for index, factor in names.items()
    }
    width, wide = max(len(factor.name) for factor in names.values()), max(map(len, changes.values()))
    for one in sorted(found.factors, key=lambda effect: -abs(effect.effect)):
        span = _span(one.effect, one.low, one.high)
        yield f"  {names[one.factor].name:<{width}}  {changes[one.factor]:<{wide}}  {span:<30}  {one.standing}"
    likely = {id(one): pairs for one, pairs in candidates(found)}
    for pair in found.pairs:
        if pair.is_active:
            named = _pairs_text(space, likely.get(id(pair)) or pair.aliases)
            yield f"  interaction {named}  {_span(pair.effect, pair.low, pair.high)}"
    if found.left_out:
        yield f"  runs so far from all others that they did not count: {found.left_out}"


def settings_text(settings: dict[str, Value]) -> str:
    """Settings as a person writes them: `mtu=9000 nagle=off`."""
    return " ".join(f"{name}={value_text(value)}" for name, value in settings.items())


def value_text(value: Value) -> str:
    """A value as a person writes it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _pairs_text(space: Space, pairs: Sequence[Pair]) -> str:
    named = [f"{space.factors[one].name} x {space.factors[two].name}" for one, two in pairs]
    return " or ".join(named) + (" (not told apart)" if len(named) > 1 else "")


def _span(effect: float, low: float, high: float) -> str:
    return f"{_percent(effect):>8} ({_percent(low)} to {_percent(high)})"


def _percent(effect: float) -> str:
    return f"{math.expm1(min(effect, 20.0)):+.1%}"
