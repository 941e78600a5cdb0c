"""The short answer of a study: what was compared, what won, how sure that is, what limits now, what to do next.

It is the beginning of the page and of the terminal's text. A study with faults answers first what the application
noticed of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linerate.analysis.verdict import GAINS, LOSSES, Effect
from linerate.errors import quote
from linerate.plural import plural
from linerate.report import figures
from linerate.report.panels.paths import seconds
from linerate.report.study import words
from linerate.report.study.model import StudyPage, WorkloadPart
from linerate.report.study.paths import FaultPart

Row = tuple[str, tuple[str, ...]]
"""A question in one or two words, and the sentences that answer it."""
_CHANGES_MAX = 4


def headline(page: StudyPage) -> str:
    """The study's result in one sentence."""
    if page.faults:
        return _fault_headline(page.faults)
    if not any(True for _ in page.judgement.primary()):
        return "Nothing could be compared yet"
    if len(page.carries) == 1:
        return page.carries[0]
    best = _largest(page, GAINS)
    if best is not None:
        return f"Best: {_said(page, best)}"
    worst = _largest(page, LOSSES)
    if worst is not None:
        return f"No case is better than the baseline; the largest loss: {_said(page, worst)}"
    if all(effect.is_small for effect in page.judgement.primary()):
        return f"No case differs from the baseline by more than the margin of {page.margin_percent:g} %"
    return "No difference is shown yet between a case and the baseline"


def short_rows(page: StudyPage) -> Iterator[Row]:
    """The answers in the order in which they are asked; those that the study cannot give are left out."""
    found = (
        ("compared", (_compared(page),)),
        *_fault_rows(page),
        ("carries", tuple(f"{sentence}." for sentence in page.carries)),
        ("best", tuple(_best(page))),
        ("largest loss", tuple(_loss(page))),
        ("how sure", tuple(_certainty(page))),
        ("limit now", tuple(_limits(page))),
        ("change", tuple(_changes(page))),
        ("next", tuple(_next(page))),
    )
    yield from ((label, lines) for label, lines in found if lines)


def next_command(place: str, blocks_planned: int, effects: Iterable[Effect]) -> tuple[str, str]:
    """The command that comes after a complete study, and what it is for: more blocks where these would decide."""
    needed = [one.blocks_needed for one in effects if one.primary and one.blocks_needed is not None]
    if needed and max(needed) > blocks_planned:
        return f"linerate study resume {quote(place)} --blocks {max(needed)}", "decides what is undecided"
    return f"linerate study check {quote(place)}", "is the result reliable"


def deciding(page: StudyPage) -> tuple[Effect, ...]:
    """The comparisons for which more blocks are worth their time: none of a study that asks what faults cost."""
    return () if page.faults else page.judgement.effects


def _compared(page: StudyPage) -> str:
    cases = sum(case.name != page.judgement.baseline and not case.not_applicable for case in page.cases)
    baseline = page.title_of(page.judgement.baseline)
    return (
        f'{plural(cases, "case")} against "{baseline}", {plural(len(page.workloads), "workload")}, '
        f"{plural(page.blocks, 'block')}"
    )


def _fault_headline(faults: Iterable[FaultPart]) -> str:
    """Errors first: a fast failover that loses I/O is none."""
    found = list(faults)
    errors = sum(fault.errors for fault in found)
    lost = f"{figures.count(errors)} I/Os failed" if errors else "No I/O failed"
    times = [fault.failover_s for fault in found if fault.failover_s is not None]
    took = f"; failover took {_range(times)}" if times else "; no I/O went over another path"
    longest_s = max(fault.response_max_ms for fault in found) / 1000
    return f"{lost} in {plural(len(found), 'fault')}{took}; the longest wait was {seconds(longest_s)} s"


def _fault_rows(page: StudyPage) -> Iterator[Row]:
    if not page.faults:
        return
    timed = [fault for fault in page.faults if fault.failover_s is not None]
    if timed:
        fastest = min(timed, key=lambda fault: fault.failover_s or 0.0)
        slowest = max(timed, key=lambda fault: fault.failover_s or 0.0)
        named = [fastest, slowest] if fastest is not slowest else [fastest]
        yield (
            "failover",
            tuple(f"{seconds(fault.failover_s)} s: {page.title_of(fault.case)}" for fault in named),
        )
    longest = max(page.faults, key=lambda fault: fault.response_max_ms)
    wait = f"{seconds(longest.response_max_ms / 1000)} s: {page.title_of(longest.case)}"
    yield "longest wait", (wait,)
    failed = [fault for fault in page.faults if fault.errors]
    lines = [f"{figures.count(fault.errors)}: {page.title_of(fault.case)}" for fault in failed]
    yield "errors", tuple(lines) or (f"none in {plural(sum(fault.runs for fault in page.faults), 'run')}",)


def _best(page: StudyPage) -> Iterator[str]:
    """The best case of each workload. Of cases with faults none is expected to be better than a SAN without."""
    for part in page.workloads:
        effects = [effect for _, effect in page.effects(part.name)]
        if not effects or page.faults:
            continue
        gains = [effect for effect in effects if effect.verdict in GAINS]
        if gains:
            yield _said(page, max(gains, key=_size))
            continue
        undecided = sum(effect.verdict == "undecided" for effect in effects)
        open_ones = f"; {undecided} of {len(effects)} undecided" if undecided else ""
        yield f"{part.title}: no case is shown to be better{open_ones}"


def _loss(page: StudyPage) -> Iterator[str]:
    worst = _largest(page, LOSSES)
    if worst is not None:
        yield _said(page, worst)


def _certainty(page: StudyPage) -> Iterator[str]:
    effects = list(page.judgement.primary())
    if not effects:
        return
    if page.faults:
        yield f"times of faults: {plural(max(fault.runs for fault in page.faults), 'run')} of each case"
    decided = sum(effect.verdict != "undecided" for effect in effects)
    counted = f"{decided} of {plural(len(effects), 'comparison')} decided"
    yield f"{counted}, at an error rate of {100 * page.judgement.alpha:g} % for the whole study"
    floors = [
        floor.detectable
        for part in page.workloads
        if (floor := page.judgement.floor(part.name, part.metric.name))
        and floor.scale == "ratio"
        and floor.detectable is not None
    ]
    if floors:
        ends = dict.fromkeys(words.detectable(end) for end in (min(floors), max(floors)))
        yield f"smallest detectable change: {' to '.join(ends)}"
    groups = figures.grouped_findings(page.validity.findings)
    doubts = sum(group.finding.severity != "note" for group in groups)
    because = f", {plural(doubts, 'doubt')} (see below)" if doubts else ""
    yield f"result: {page.validity.words}{because}"


def _limits(page: StudyPage) -> Iterator[str]:
    """Of each workload under its best case, else under the baseline; one line for workloads with the same limit."""
    found: dict[str, list[str]] = {}
    for part in page.workloads:
        case = _winner(page, part) or page.judgement.baseline
        if sentence := page.attribution(case, part.name):
            found.setdefault(sentence, []).append(f"{part.title} ({page.title_of(case)})")
    yield from (f"{', '.join(where)}: {sentence}" for sentence, where in found.items())


def _winner(page: StudyPage, part: WorkloadPart) -> str:
    gains = [effect for _, effect in page.effects(part.name) if effect.verdict in GAINS]
    return max(gains, key=_size).case if gains else ""


def _changes(page: StudyPage) -> Iterator[str]:
    for item in page.recommendations[:_CHANGES_MAX]:
        depends = " (depends on the load)" if item.mixed else ""
        yield f"{item.setting}: {item.recommended} instead of {item.instead_of}{depends}"
    more = len(page.recommendations) - _CHANGES_MAX
    if more > 0:
        yield f"{more} more below"
    if not page.recommendations and not page.faults and page.observations:
        yield "nothing: no setting was shown to help"


def _next(page: StudyPage) -> Iterator[str]:
    if not page.place:
        return
    if page.state != "complete":
        yield f"linerate study resume {quote(page.place)} (measures what is missing)"
        return
    command, purpose = next_command(page.place, page.blocks_planned, deciding(page))
    yield f"{command} ({purpose})"


def _largest(page: StudyPage, verdicts: frozenset[str]) -> Effect | None:
    found = [effect for effect in page.judgement.primary() if effect.verdict in verdicts]
    return max(found, key=_size, default=None)


def _size(effect: Effect) -> float:
    return abs(effect.change)


def _said(page: StudyPage, effect: Effect) -> str:
    """`8K random: interrupt moderation off, IOPS +7.2 % (95 % interval +6.5 .. +7.9)`."""
    interval = f" (95 % interval {words.bounds(effect)})" if effect.change_low is not None else ""
    return (
        f"{page.workload_title(effect.workload)}: {page.title_of(effect.case)}, "
        f"{words.label(effect.metric)} {words.change(effect)}{interval}"
    )


def _range(times_s: Iterable[float]) -> str:
    known = list(times_s)
    ends = dict.fromkeys(seconds(end) for end in (min(known), max(known)))
    return f"{' to '.join(ends)} s"
