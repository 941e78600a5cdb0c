"""Holds facts against the rules. What is not known is never fine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from linerate.advice.facts import SWITCHES, AuditSubject, Kind, SanFactSheet
from linerate.advice.rule import AdviceRule, FactTest, RuleCheck, Source, shown

RuleState = Literal["broken", "kept", "unknown", "not needed", "not looked at"]
"""not needed: the rule does not apply to this subject. not looked at: no source was given that could tell."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One check of a rule on one subject; `subject` is None where no source could tell."""

    rule: AdviceRule
    check: RuleCheck
    subject: AuditSubject | None
    state: RuleState
    text: str


def judge(sheet: SanFactSheet, rules: Sequence[AdviceRule]) -> list[RuleOutcome]:
    """Every check of every rule on every subject that it is about."""
    return [outcome for rule in rules for check in rule.checks for outcome in _of_check(rule, check, sheet)]


def _of_check(rule: AdviceRule, check: RuleCheck, sheet: SanFactSheet) -> Iterator[RuleOutcome]:
    subjects = [subject for subject in sheet.subjects if check.tells(subject)]
    for subject in subjects:
        state, text = _state(check, subject)
        yield RuleOutcome(rule, check, subject, state, text)
    if not subjects:
        yield RuleOutcome(rule, check, None, "not looked at", _who_tells(check, sheet))


_NOUNS: dict[Kind, str] = {
    "path": "path to a portal",
    "switch_port": "switch port",
    "trunk": "link aggregate",
}
_SOURCES: dict[Source, str] = {
    "linux": "a Linux host",
    "windows": "a Windows host (--facts)",
    "switch": "a switch (--switch)",
    "topology": "a topology",
    "study": "a study directory",
    "image": "a backup image (--image)",
    "iscsi": "an array (iscsi://HOST)",
}


def _who_tells(check: RuleCheck, sheet: SanFactSheet) -> str:
    """What is missing: the subject in the sources that were read, else a source that could tell."""
    read = {"switch" if one.system in SWITCHES else one.system for one in sheet.subjects}
    noun = _NOUNS.get(check.subject, check.subject)
    if any(source in read for source in check.read):
        return f"there is no {noun}"
    return f"it needs {' or '.join(_SOURCES[source] for source in check.read)}"


def _state(check: RuleCheck, subject: AuditSubject) -> tuple[RuleState, str]:
    if check.when is not None:
        if missing := _missing(check.when, subject):
            return "unknown", missing
        if not check.when.holds(subject.facts):
            return "not needed", f"{check.when.fact} is {shown(subject.facts[check.when.fact])}"
    if missing := _missing(check.test, subject):
        return "unknown", missing
    value = shown(subject.facts[check.test.fact])
    found = f"{check.what}: {value}{f' {check.unit}' if check.unit else ''}"
    if check.test.holds(subject.facts):
        return "kept", found
    return "broken", f"{found}; wanted: {check.test.wanted(subject.facts)}"


def _missing(test: FactTest, subject: AuditSubject) -> str:
    """Why a test cannot be made; empty if it can."""
    for fact in test.needs:
        if fact not in subject.facts:
            return subject.unknown.get(fact, f"{fact} was not found")
    return ""
