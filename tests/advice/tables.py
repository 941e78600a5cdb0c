"""The tables of rules and questions in docs/advise.md, written from the rules: `make docs`.

A table is between `<!-- advice: NAME -->` and `<!-- end of advice -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from linerate.advice import QUESTIONS, AdviceRule, RuleCheck, rules
from linerate.advice.rule import FactTest

PAGE = Path(__file__).resolve().parents[2] / "docs/advise.md"
_MARKED = re.compile(r"(<!-- advice: (\w+) -->\n).*?(<!-- end of advice -->)", re.DOTALL)


def current(text: str) -> str:
    """The page with every marked table as the rules have it."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{_lines(found[2])}\n\n{found[3]}", text)


def _lines(name: str) -> str:
    tables = {"rules": _rules, "evidence": _evidence, "readings": _readings, "questions": _questions}
    return "\n".join(tables[name]())


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', ', ') or '-' for cell in row)} |"


def _rules() -> Iterator[str]:
    header = ("no.", "rule", "severity", "checks", "setting", "source")
    return _table(header, (_rule(rule) for rule in rules()))


def _rule(rule: AdviceRule) -> Sequence[str]:
    checks = "; ".join(dict.fromkeys(_threshold(check) for check in rule.checks))
    settings = ", ".join(dict.fromkeys(f"`{check.setting}`" for check in rule.checks if check.setting))
    return (
        str(rule.number),
        f"`{rule.id}`: {rule.title}",
        rule.severity,
        checks,
        settings,
        ", ".join(rule.sources),
    )


def _threshold(check: RuleCheck) -> str:
    unit = f" {check.unit}" if check.unit else ""
    return f"{check.what}: {_wanted(check.test)}{unit}"


def _wanted(test: FactTest) -> str:
    if test.same_as:
        return f"the same as `{test.same_as}`"
    if test.at_least_fact:
        return f"at least `{test.at_least_fact}`"
    return test.wanted({})


def _evidence() -> Iterator[str]:
    header = ("no.", "measured with Linerate", "findings that test it", "disputed")
    rows = (
        (str(one.number), one.evidence, ", ".join(f"`{claim}`" for claim in one.claims), one.dispute)
        for one in rules()
    )
    return _table(header, rows)


def _readings() -> Iterator[str]:
    sources = ("linux", "windows", "switch", "topology", "study", "image", "iscsi")
    header = ("no.", "what", *sources)
    rows = (
        (str(rule.number), check.what, *(check.read.get(source, "") for source in sources))  # type: ignore[call-overload]
        for rule in rules()
        for check in rule.checks
    )
    return _table(header, rows)


def _questions() -> Iterator[str]:
    rows = ((f"`{one.name}`", one.text, ", ".join(one.answers) or "0 to 100") for one in QUESTIONS)
    return _table(("name", "question", "answers"), rows)


def main() -> None:
    """Writes the tables into the page."""
    PAGE.write_text(current(PAGE.read_text()))


if __name__ == "__main__":
    main()
