"""One rule of advice, as `rules/*.toml` has it: what it asks, of what, why, and what mends a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, StringConstraints, model_validator

from linerate.advice.facts import SWITCHES, AuditSubject, FactValue, Kind, System
from linerate.workload.spec import FrozenSpec

Severity = Literal["must", "should", "may"]
"""must: I/O fails, data are at risk or most of the speed is lost. should: speed or safety is lost under some load.
may: a matter of choice that the report names."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
Source = Literal["linux", "windows", "switch", "topology", "study", "image", "iscsi"]
"""Where a fact can come from; `switch` is every kind of switch configuration."""
SeedLines = Annotated[str, StringConstraints(pattern=r"^00[0-4]:\d+(-\d+)?$")]
Given = bool | int | float | str | tuple[bool | int | float | str, ...]

_OPERATORS = ("equals", "differs_from", "at_least", "at_most", "below", "same_as", "at_least_fact", "known")


class FactTest(FrozenSpec):
    """A test of one fact. Exactly one of the operators is given.

    equals: the value, or one of several. differs_from: any other value. same_as, at_least_fact: the name of
    another fact of the same subject. known: any value will do.
    """

    fact: str
    equals: Given | None = None
    differs_from: Given | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None
    same_as: str | None = None
    at_least_fact: str | None = None
    known: Literal[True] | None = None

    @model_validator(mode="after")
    def _has_one_operator(self) -> Self:
        given = [name for name in _OPERATORS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a test of {self.fact} needs one operator, not {given or 'none'}")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """The facts that it compares."""
        other = self.same_as or self.at_least_fact
        return (self.fact, other) if other else (self.fact,)

    def holds(self, facts: Mapping[str, FactValue]) -> bool:
        """Whether facts with all of `needs` pass."""
        value = facts[self.fact]
        if self.equals is not None:
            return value in _values(self.equals)
        if self.differs_from is not None:
            return value not in _values(self.differs_from)
        if self.same_as is not None:
            return value == facts[self.same_as]
        if self.known:
            return True
        return self._in_range(value, facts)

    def _in_range(self, value: FactValue, facts: Mapping[str, FactValue]) -> bool:
        """A text is in no range."""
        least = facts[self.at_least_fact] if self.at_least_fact else self.at_least
        if isinstance(value, str) or isinstance(least, str):
            return False
        if least is not None:
            return value >= least
        if self.below is not None:
            return value < self.below
        assert self.at_most is not None
        return value <= self.at_most

    def wanted(self, facts: Mapping[str, FactValue]) -> str:
        """What passes, as words: `at least 9000`."""
        if self.equals is not None:
            return " or ".join(shown(value) for value in _values(self.equals))
        if self.differs_from is not None:
            return f"not {' or '.join(shown(value) for value in _values(self.differs_from))}"
        if self.same_as is not None:
            return f"{shown(facts[self.same_as])}, as the other end or the system has it"
        least = facts[self.at_least_fact] if self.at_least_fact else self.at_least
        if least is not None:
            return f"at least {shown(least)}"
        if self.below is not None:
            return f"below {shown(self.below)}"
        return f"at most {shown(self.at_most)}" if self.at_most is not None else "known"


class RuleCheck(FrozenSpec):
    """A test of each subject of a kind, how it is read, and what mends a fault."""

    subject: Kind
    what: str
    """The fact in words: `MTU`."""
    unit: str = ""
    test: FactTest
    when: FactTest | None = None
    """The check is needed only where this holds."""
    read: Mapping[Source, str]
    """By source: how the fact is read there. A source that is not named cannot tell."""
    mend: str
    """What to do, in one sentence."""
    setting: str = ""
    """A setting of the catalogue that mends it, if there is one."""
    value: str = ""
    """The value of that setting."""
    commands: Mapping[System, tuple[str, ...]] = {}
    """Lines of configuration, by kind of switch."""

    def tells(self, subject: AuditSubject) -> bool:
        """Whether the subject is of this kind, from a source that can tell the fact."""
        if subject.kind != self.subject:
            return False
        return subject.system in self.read or (subject.system in SWITCHES and "switch" in self.read)


class AdviceRule(FrozenSpec):
    """A rule: its checks, why it is right, what says so, and what it brought when it was measured here."""

    number: Annotated[int, Field(ge=1)]
    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
    title: str
    severity: Severity
    why: str
    sources: tuple[SeedLines, ...]
    """Publication (as in the list of claims) and lines of its text."""
    documents: tuple[str, ...] = ()
    """Documents of vendors from which its lines of configuration are."""
    claims: tuple[str, ...] = ()
    """Published findings whose studies test the rule."""
    measured: str = ""
    """What it brought when Linerate measured it. Empty: it was not measured."""
    dispute: str = ""
    """Where publications contradict one another, today's practice or what was measured."""
    checks: Annotated[tuple[RuleCheck, ...], Field(min_length=1)]

    @property
    def evidence(self) -> str:
        """What was measured, or that nothing was."""
        return self.measured or "not measured with Linerate"


def _values(given: Given) -> Iterator[FactValue]:
    yield from given if isinstance(given, tuple) else (given,)


def shown(value: FactValue) -> str:
    """A value in a report: on and off, numbers without needless digits."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}".replace(",", "") if isinstance(value, float) else str(value)
