"""Answers of the user to what no device tells: is there a UPS, what is the load, when does replication run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from linerate.advice.facts import FactValue, SanFactSheet
from linerate.advice.vendors import VENDORS, with_vendors
from linerate.errors import UserError

_PREFIX = "answered_"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its possible answers; none: a number from 0 to 100."""

    name: str
    text: str
    answers: tuple[str, ...] = ()


QUESTIONS = (
    Question("ups", "Is the array behind a UPS with an orderly shutdown?", ("yes", "no")),
    Question("load", "What counts more: small random I/O or capacity?", ("random", "capacity")),
    Question("vendor", "Who made the array?", tuple(one.name for one in VENDORS)),
    Question("converged", "Does the SAN share its wires with other traffic?", ("yes", "no")),
    Question("replication", "When does the array replicate?", ("none", "quiet", "busy")),
    Question(
        "iscsi_priority",
        "Which 802.1p priority do iSCSI frames have? Without an answer: 4",
        tuple("01234567"),
    ),
    Question("load_percent", "How busy are busy hours, in percent of the measured maximum?"),
)


def parse_answers(given: Sequence[str]) -> dict[str, str]:
    """Answers of the form NAME=VALUE. Raises UserError that says what can be answered."""
    known = {one.name: one for one in QUESTIONS}
    found: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        question = known.get(name)
        if question is None:
            raise UserError(f"--answer {text}: there is no question {name!r}", f"there is {', '.join(known)}")
        value = value.strip().lower()
        if question.answers and value not in question.answers:
            raise UserError(f"--answer {text}: {question.text}", f"answer {' or '.join(question.answers)}")
        if not question.answers and not (value.isdecimal() and int(value) <= 100):
            raise UserError(f"--answer {text}: {question.text}", "answer a whole number from 0 to 100")
        found[name] = value
    return found


def with_answers(sheet: SanFactSheet, answers: Mapping[str, str]) -> SanFactSheet:
    """The sheet with the answers as facts of each subject, and questions without an answer as unknown."""
    facts: dict[str, FactValue] = {}
    unknown: dict[str, str] = {}
    for one in QUESTIONS:
        key = f"{_PREFIX}{one.name}"
        if (value := answers.get(one.name)) is None:
            unknown[key] = f"{one.text} Say --answer {one.name}={'|'.join(one.answers) or 'N'}"
        else:
            facts[key] = value if one.answers else int(value)
    converged = {"converged": answers["converged"] == "yes"} if "converged" in answers else {}
    reason = {} if converged else {"converged": unknown["answered_converged"]}
    priority = {"iscsi_priority": answers["iscsi_priority"]} if "iscsi_priority" in answers else {}
    subjects = tuple(
        one.having(
            {**facts, **converged, **(priority if one.system != "topology" else {})},
            {**unknown, **({} if "converged" in one.facts else reason)},
        )
        for one in sheet.subjects
    )
    return with_vendors(replace(sheet, subjects=subjects), answers.get("vendor"))
