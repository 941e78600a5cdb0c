"""The laws of scaling in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from linerate.plural import plural
from linerate.scale.laws.choice import WORDS, Laws, Prediction
from linerate.scale.laws.jackknife import Law, Model
from linerate.scale.laws.network import ClosedNetwork
from linerate.scale.laws.universal import Parameters, peak
from linerate.scale.reached import Axis, load_text


def laws_lines(axis: Axis, laws: Laws) -> Iterator[str]:
    """A line for each law, and one for the law that is chosen."""
    if laws.universal is not None:
        yield universal_text(laws.universal)
    if laws.network is not None:
        yield network_text(laws.network)
    if (chosen := laws.chosen) is not None and (expected := laws.furthest()) is not None:
        nearer = " misses by less: it" if len(laws.all) > 1 else ""
        yield f"{WORDS[chosen]}{nearer} expects {expected_text(axis, expected)}."


def universal_text(law: Law[Parameters]) -> str:
    """Its parameters, and how far it misses a load that it has not seen."""
    highest = peak(law)
    if highest is None:
        end = "the loads do not show that the rate falls again"
    else:
        end = f"the rate is highest at about {highest:,.0f}"
    return (
        f"{WORDS['universal']}: contention {law.model.a:.3g}, coherency {law.model.b:.2g}; "
        f"{error_text(law)}; {end}."
    )


def network_text(law: Law[ClosedNetwork]) -> str:
    """Its stations and their work, and how far it misses a load that it has not seen."""
    model = law.model
    kinds = Counter(name.split(" ", 1)[0] for name in model.stations)
    stations = ", ".join(plural(count, kind) for kind, count in kinds.items())
    busiest, demand_s = model.busiest
    return (
        f"{WORDS['network']} of {stations}: {1000 * model.work_s:.3g} ms of work and {1000 * model.delay_s:.3g} ms of "
        f"delay per I/O; {error_text(law)}; {busiest} can carry {1 / demand_s:,.0f} I/Os per s."
    )


def error_text(law: Law[Model]) -> str:
    """How far a law misses a load that it has not seen."""
    return (
        f"it misses a load that it has not seen by {100 * law.typical_error:.1f} % "
        f"(up to {100 * law.largest_error:.1f} %)"
    )


def expected_text(axis: Axis, expected: Prediction) -> str:
    """A prediction with its interval."""
    return (
        f"{expected.iops:,.0f} I/Os per s at {load_text(axis, expected.load)} "
        f"({expected.low:,.0f} to {expected.high:,.0f}, {100 * expected.probability:.0f} % interval)"
    )
