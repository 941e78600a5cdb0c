"""An audit as text for people and as one JSON object for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linerate.advice.audit import AuditResult
from linerate.advice.judge import RuleOutcome, RuleState
from linerate.advice.mend import mend_lines
from linerate.advice.rule import SEVERITIES, AdviceRule, Severity
from linerate.plural import plural

SCHEMA = "linerate.advice/1"
_INDENT = " " * 8
_SUBJECTS_SHOWN_MAX = 12


def advice_lines(result: AuditResult) -> list[tuple[str, str]]:
    """The report as (style, line): broken rules first, then what is unknown, then the rest in short."""
    outcomes = result.outcomes
    lines = [("", f"note: {note}") for note in result.sheet.notes]
    lines.append(("bold", summary_line(outcomes)))
    for severity in SEVERITIES:
        for rule, mine in _by_rule(outcomes, "broken"):
            if rule.severity == severity:
                lines += _broken(rule, mine, result.evidence)
    unknown = list(_by_rule(outcomes, "unknown"))
    if unknown:
        lines += [("", ""), ("bold", "UNKNOWN: not checked, and so not known to be right")]
        for rule, mine in unknown:
            lines += _unknown(rule, mine)
    lines += _in_short(outcomes)
    return lines


def advice_object(result: AuditResult) -> dict[str, Any]:
    """The audit for programs."""
    states = rule_states(result.outcomes)
    return {
        "schema": SCHEMA,
        "notes": list(result.sheet.notes),
        "rules": {state.replace(" ", "_"): count for state, count in states.items()},
        "outcomes": [_outcome(one, result.evidence) for one in result.outcomes],
    }


def rule_states(outcomes: Sequence[RuleOutcome]) -> dict[RuleState, int]:
    """How many rules are in each state; a rule has the worst state of its subjects."""
    order: tuple[RuleState, ...] = ("broken", "unknown", "kept", "not needed", "not looked at")
    counts: dict[RuleState, int] = dict.fromkeys(order, 0)
    for number in {one.rule.number for one in outcomes}:
        states = {one.state for one in outcomes if one.rule.number == number}
        counts[next(state for state in order if state in states)] += 1
    return counts


def is_broken(outcomes: Sequence[RuleOutcome], severities: Sequence[Severity]) -> bool:
    """Whether a rule of one of these severities is broken."""
    return any(one.state == "broken" and one.rule.severity in severities for one in outcomes)


def summary_line(outcomes: Sequence[RuleOutcome]) -> str:
    """How many rules are in which state."""
    counts = rule_states(outcomes)
    broken = {rule.number: rule.severity for rule, _ in _by_rule(outcomes, "broken")}
    parts = [f"{sum(of == severity for of in broken.values())} {severity}" for severity in SEVERITIES]
    named = f" ({', '.join(parts)})" if broken else ""
    return (
        f"{plural(counts['broken'], 'rule')} broken{named}, {counts['unknown']} unknown, {counts['kept']} kept, "
        f"{counts['not needed']} not needed here, {counts['not looked at']} not looked at"
    )


def _by_rule(
    outcomes: Sequence[RuleOutcome], state: RuleState
) -> Iterator[tuple[AdviceRule, list[RuleOutcome]]]:
    """The rules with outcomes of that state, in order."""
    for number in sorted({one.rule.number for one in outcomes if one.state == state}):
        mine = [one for one in outcomes if one.rule.number == number and one.state == state]
        yield mine[0].rule, mine


def _broken(
    rule: AdviceRule, outcomes: Sequence[RuleOutcome], evidence: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    style = {"must": "bold red", "should": "yellow", "may": "cyan"}[rule.severity]
    yield "", ""
    yield style, f"{rule.severity:7} {rule.number} {rule.id}: {rule.title}"
    for text, names in _grouped(outcomes):
        yield "", f"{_INDENT}{names}: {text}"
    yield "", f"{_INDENT}why: {rule.why}"
    for sentence in dict.fromkeys(one.check.mend for one in outcomes):
        yield "green", f"{_INDENT}-> {sentence}"
    commands = [line for one in outcomes if one.subject for line in mend_lines(one.check, one.subject)]
    for line in list(dict.fromkeys(commands))[:_SUBJECTS_SHOWN_MAX]:
        yield "green", f"{_INDENT}   {line}"
    yield "dim", f"{_INDENT}measured: {rule.evidence}"
    for claim in rule.claims:
        if claim in evidence:
            yield "", f"{_INDENT}your study: {claim}: {evidence[claim]}"
    if rule.dispute:
        yield "dim", f"{_INDENT}disputed: {rule.dispute}"
    yield "dim", f"{_INDENT}source: {', '.join((*rule.sources, *rule.documents))}"


def _unknown(rule: AdviceRule, outcomes: Sequence[RuleOutcome]) -> Iterator[tuple[str, str]]:
    for text, names in _grouped(outcomes):
        yield "", f"{rule.severity:7} {rule.number} {rule.id}: {names}: {text}"


def _in_short(outcomes: Sequence[RuleOutcome]) -> Iterator[tuple[str, str]]:
    """Kept, not needed, not looked at: the rules by name, and what a source could tell."""
    told = {one.rule.number for one in outcomes if one.state in ("broken", "unknown")}
    titles: tuple[tuple[RuleState, str], ...] = (("kept", "KEPT"), ("not needed", "NOT NEEDED HERE"))
    for state, title in titles:
        names = [
            f"{rule.number} {rule.id}" for rule, _ in _by_rule(outcomes, state) if rule.number not in told
        ]
        told |= {rule.number for rule, _ in _by_rule(outcomes, state)}
        if names:
            yield "", ""
            yield "", f"{title}: {', '.join(names)}"
    left = [(rule, mine) for rule, mine in _by_rule(outcomes, "not looked at") if rule.number not in told]
    ways: dict[str, list[str]] = {}
    for rule, mine in left:
        ways.setdefault(" or ".join(dict.fromkeys(one.text for one in mine)), []).append(
            f"{rule.number} {rule.id}"
        )
    for way, names in ways.items():
        yield "", ""
        yield "", f"NOT LOOKED AT, {way}: {', '.join(names)}"


def _grouped(outcomes: Sequence[RuleOutcome]) -> Iterator[tuple[str, str]]:
    """What was found, and the subjects of which it is true."""
    texts: dict[str, list[str]] = {}
    for one in outcomes:
        assert one.subject is not None
        texts.setdefault(one.text, []).append(one.subject.name)
    for text, found in texts.items():
        names = list(dict.fromkeys(found))
        more = len(names) - _SUBJECTS_SHOWN_MAX
        yield text, ", ".join(names[:_SUBJECTS_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _outcome(one: RuleOutcome, evidence: Mapping[str, str]) -> dict[str, Any]:
    rule, subject = one.rule, one.subject
    mends = one.state == "broken" and subject is not None
    return {
        "rule": rule.number,
        "id": rule.id,
        "title": rule.title,
        "severity": rule.severity,
        "state": one.state,
        "kind": one.check.subject,
        "subject": subject.name if subject else None,
        "system": subject.system if subject else None,
        "text": one.text,
        "mend": one.check.mend if mends else None,
        "commands": mend_lines(one.check, subject) if mends and subject else [],
        "setting": one.check.setting or None,
        "measured": rule.measured or None,
        "study": {claim: evidence[claim] for claim in rule.claims if claim in evidence},
        "dispute": rule.dispute or None,
        "sources": list(rule.sources),
        "documents": list(rule.documents),
        "claims": list(rule.claims),
    }
