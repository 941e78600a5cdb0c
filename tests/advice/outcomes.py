"""What tests of rules ask for: the outcomes of one rule, on a sheet that was read and answered."""

from __future__ import annotations

from collections.abc import Iterable

from linerate.advice import AuditResult, RuleOutcome, SanFactSheet, judge, rules
from linerate.advice.answers import parse_answers
from linerate.advice.audit import completed
from linerate.advice.mend import mend_lines


def judged(*sheets: SanFactSheet, answers: Iterable[str] = ()) -> AuditResult:
    """The sheets as `linerate advise` judges them."""
    sheet = completed(sheets, parse_answers(list(answers)))
    return AuditResult(sheet, judge(sheet, rules()))


def of_rule(result: AuditResult, number: int) -> list[RuleOutcome]:
    return [one for one in result.outcomes if one.rule.number == number]


def broken(result: AuditResult, number: int) -> list[str]:
    """What the rule found: `subject: text`."""
    return [
        f"{one.subject.name}: {one.text}"
        for one in of_rule(result, number)
        if one.subject and one.state == "broken"
    ]


def mends(result: AuditResult, number: int) -> str:
    """All ways to mend what the rule found, with commands."""
    lines: list[str] = []
    for one in of_rule(result, number):
        if one.state == "broken" and one.subject:
            lines += [one.check.mend, *mend_lines(one.check, one.subject)]
    return "\n".join(lines)


def all_broken(result: AuditResult) -> list[str]:
    return [
        f"{one.rule.number} {one.rule.id}: {one.text}" for one in result.outcomes if one.state == "broken"
    ]
