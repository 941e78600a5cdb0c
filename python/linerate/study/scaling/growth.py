"""Published findings about growth: does the rate grow linearly with the load, as far as the threshold allows?

A claim expects `curve = "linear"` from one load to another. Each search of its cases has a curve
(`linerate.scale.curve`), whose loads are judged against the margin of [scale] (`linerate.scale.linear`):

    agrees          linear at every load, and the threshold is kept at the last one, or not surely missed
    agrees in part  linear at first; then the rate bends, or the threshold is missed earlier than published
    differs         no load beyond the smallest is shown to be linear, and the rate bends
    not tested      some load is undecided, and nothing speaks against linear growth

The disks' own counters say why a rate bends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from linerate.analysis.verdict import ALPHA, ClaimVerdict, Expectation, PublishedClaim
from linerate.analysis.verdict.model import ClaimOutcome
from linerate.plural import plural
from linerate.scale import LoadGrowth, growth, runs_of_curve
from linerate.study.directory import StudyDirectory
from linerate.study.scaling.comparison import CaseSearch, searches


@dataclass(frozen=True, slots=True)
class GrowthAnswer:
    """What one search says: the outcome, its figures, what keeps it from agreeing, and why that is."""

    outcome: ClaimOutcome
    figures: str
    objection: str = ""
    because: str = ""


def claim_verdicts(
    directory: StudyDirectory, claims: Mapping[str, PublishedClaim], not_applicable: Mapping[str, str]
) -> Iterator[ClaimVerdict]:
    """The verdict on each claim of a study with [scale], in the study's order.

    `not_applicable` says of a case why it could not be had. The intervals of all curves hold together with 95 %.
    """
    ended = [one for one in searches(directory) if one.ended]
    cases: dict[str, list[str]] = {}
    for test in directory.study.claims:
        cases.setdefault(test.claim, []).append(test.case)
    all_of_them = [one.name for one in directory.study.workloads]
    tested: dict[str, list[tuple[CaseSearch, Expectation]]] = {name: [] for name in cases}
    for test in directory.study.claims:
        tested[test.claim] += [
            (search, expected)
            for search in ended
            if search.case.name == test.case and search.workload.name in (test.workloads or all_of_them)
            for expected in claims[test.claim].expect
            if expected.curve and expected.covers(search.workload.name)
        ]
    alpha = ALPHA / max(sum(map(len, tested.values())), 1)
    for name, pairs in tested.items():
        answers = [answer_of(search, expected, alpha) for search, expected in pairs]
        lacking = [f"Case {case}: {not_applicable[case]}." for case in cases[name] if case in not_applicable]
        yield _verdict(claims[name], cases[name], answers, lacking)


def _verdict(
    claim: PublishedClaim, cases: Sequence[str], answers: Sequence[GrowthAnswer], lacking: Sequence[str]
) -> ClaimVerdict:
    outcome: ClaimOutcome = "not tested"
    outcomes = {answer.outcome for answer in answers}
    if len(outcomes) == 1:
        (outcome,) = outcomes
    elif outcomes and "not tested" not in outcomes:
        outcome = "agrees in part"
    figures = "; ".join(answer.figures for answer in answers)
    said = [text for answer in answers for text in (answer.objection, answer.because) if text]
    reason = " ".join((*said, *lacking)) or figures or "No search of this study has ended."
    return ClaimVerdict(
        claim=claim.id,
        subject=claim.subject,
        change=claim.change,
        workload=claim.workload,
        published=claim.published,
        measured=figures or "not measured",
        verdict=outcome,
        reason=reason,
        cases=tuple(cases),
    )


def answer_of(search: CaseSearch, expected: Expectation, alpha: float) -> GrowthAnswer:
    """The answer of one search to an expectation of linear growth, at an error of `alpha`."""
    low, high = expected.load_low, expected.load_high
    curve = search.scale.parts.curve
    # The study file was checked for them.
    assert low is not None
    assert high is not None
    assert curve is not None
    runs = runs_of_curve(search.procedure.runs, curve)
    rates = {load: [run.iops for run in found] for load, found in runs.items() if low <= load <= high}
    points = growth(rates, search.scale.linear_margin, alpha)
    missed = search.found.missed
    usable = [point for point in points if missed is None or point.load < missed]
    outcome, objection = _outcome(search, points, usable, high)
    because = "" if outcome in ("agrees", "not tested") else _because(search, points)
    return GrowthAnswer(outcome, _figures(search, points), objection, because)


def _outcome(
    search: CaseSearch, points: Sequence[LoadGrowth], usable: Sequence[LoadGrowth], high: int
) -> tuple[ClaimOutcome, str]:
    """The outcome of one curve, and what keeps it from agreeing."""
    missed, where = search.found.missed, f"{_name(search)}:"
    early = f"the {search.scale.until} is missed from {_load(search, missed)} on" if missed else ""
    if len(usable) < 2:
        return "differs", f"{where} {early}, before the rate could grow."
    bent = next((point for point in usable[1:] if point.growth in ("less", "more")), None)
    if bent is not None:
        is_first = _linear_to(usable) == points[0].load
        word = "less" if bent.growth == "less" else "more"
        objection = f"{where} the rate grows {word} than linearly from {_load(search, bent.load)} on"
        objection += f", and {early}." if missed is not None and missed <= high else "."
        return ("differs" if is_first else "agrees in part"), objection
    open_ones = [_load(search, point.load) for point in usable if point.growth == "undecided"]
    if open_ones:
        return "not tested", f"{where} undecided at {', '.join(open_ones)}; more curve_repeats would decide."
    if missed is not None and missed <= high:
        return "agrees in part", f"{where} linear, but {early}; published up to {_load(search, high)}."
    return "agrees", ""


def _linear_to(points: Sequence[LoadGrowth]) -> int:
    """The largest load up to which all are shown to be linear."""
    last = points[0].load
    for point in points:
        if point.growth != "linear":
            break
        last = point.load
    return last


def _figures(search: CaseSearch, points: Sequence[LoadGrowth]) -> str:
    first, last = points[0], points[-1]
    times = last.load / first.load
    margin = f"within {100 * search.scale.linear_margin:g} %"
    linear_to = _linear_to(points)
    linear = f"linear {margin} up to {_load(search, linear_to)}"
    if linear_to == first.load:
        linear = f"linear {margin} at no larger load that was measured"
    kept, missed = search.found.kept, search.found.missed
    keeps = f"kept up to {_load(search, kept)}" if kept is not None else "surely kept at no load"
    misses = f", missed from {_load(search, missed)} on" if missed is not None else ""
    return (
        f"{_name(search)}: {first.iops:,.0f} I/Os per s at {_load(search, first.load)}, {last.iops:,.0f} at "
        f"{_load(search, last.load)}, which is {times * last.share:.2f} times the rate "
        f"({times * last.low:.2f} to {times * last.high:.2f}) for {times:g} times the load; {linear}; "
        f"{search.scale.until} {keeps}{misses}"
    )


def _because(search: CaseSearch, points: Sequence[LoadGrowth]) -> str:
    """What the counters of the disks say; empty without them."""
    first, last = points[0].load, points[-1].load
    busy = [_mean(search, load, "disk_busy_percent") for load in (first, last)]
    work_ms = [_mean(search, load, "disk_service_ms") for load in (first, last)]
    if busy[0] is None or busy[1] is None or work_ms[0] is None or work_ms[1] is None:
        return ""
    needed = busy[0] * last / first
    return (
        f"The disks are busy {busy[0]:.0f} % of the time at {_load(search, first)}. "
        f"{last / first:g} times that rate would keep them busy {needed:.0f} % if each disk I/O took as long. "
        f"At {_load(search, last)} they are busy {busy[1]:.0f} %, with {work_ms[1]:.2f} ms of work per disk I/O "
        f"instead of {work_ms[0]:.2f}."
    )


def _mean(search: CaseSearch, load: int, figure: str) -> float | None:
    """A figure over the runs of a load; None if none has it."""
    values = [
        entry.values[figure]
        for entry in search.entries
        if entry.state == "complete"
        and entry.reached.load == load
        and entry.reached.is_on_curve
        and figure in entry.values
    ]
    return fmean(values) if values else None


def _name(search: CaseSearch) -> str:
    return f"{search.case.title}, {search.workload.title}"


def _load(search: CaseSearch, load: int) -> str:
    """`1 thread`, `10 threads`."""
    return plural(load, search.scale.over.removesuffix("s"))
