"""Published findings beside what was measured here.

A claim is what a publication reports, as data (`studies/claims.toml`), with what it would look like here:

    [[claim]]
    id = "nic.autotuning.off"
    ...
    expect = [{ workloads = ["seqread"], change = "lower", low = -45.0, high = -15.0 }]

`workloads` names those it speaks of: all words of one entry are in the workload's name (none: every workload). `metric`
is a figure's name (none: the workload's own). `change` is higher, lower or none, and `low`, `high` bound its size in
percent, or in points. Direction and size are judged apart. The size agrees if the estimate is between the bounds and
its interval is no wider than they are apart; it differs if the whole interval is outside. With `change` none, the whole
interval has to be between the bounds, which take the place of the study's margin. Or `value_low`, `value_high` bound
the case's own figure. `curve = "linear"` is about the rate as the load grows from `load_low` to `load_high`; only a
study with [scale] tests it (`linerate.study.scaling`). Every expectation has to come true for a claim to agree.
`published_percent` is the published change itself, to be shown beside the measured one. `network_mib_s` is what the
publication's own network was seen to carry (`network` says where), for findings about disks: a change that was
measured without that network is reported with its rest behind one.

`needs = "hardware"` is not a verdict: on real hosts such a claim is judged like any other. On a virtual SAN it is not,
even if the setting could be written there: what was published is not in it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import ConfigDict, PositiveFloat, PositiveInt, ValidationError, model_validator

from linerate.analysis.limits.attribution import Attribution
from linerate.analysis.verdict.case_values import CaseValue, bounds_words, metric_name, value_lines
from linerate.analysis.verdict.explanation import disks_apart, hidden_by_network
from linerate.analysis.verdict.model import (
    ClaimOutcome,
    ClaimVerdict,
    Deviance,
    Effect,
    Judgement,
)
from linerate.errors import UserError
from linerate.model import Model
from linerate.studies import STUDIES

_EXPLAINED_MAX = 2
"""Workloads whose difference is explained in full: those that differ most. What explains one mostly explains all."""
_OF_DISKS = ("disks", "array service")
# Words of a workload's name that put it outside what a finding says in general.
_SPECIAL = frozenset({"congested"})


class _Data(Model):
    model_config = ConfigDict(extra="forbid")


class Expectation(_Data):
    """What a finding would look like in a study: a change of a metric, or a value of it."""

    workloads: tuple[str, ...] = ()
    metric: str | None = None
    change: Literal["higher", "lower", "none"] | None = None
    low: float | None = None
    high: float | None = None
    value_low: float | None = None
    value_high: float | None = None
    published_percent: float | None = None
    curve: Literal["linear"] | None = None
    load_low: PositiveInt | None = None
    load_high: PositiveInt | None = None

    @model_validator(mode="after")
    def _curve_has_ends(self) -> Expectation:
        if self.curve and (self.load_low is None or self.load_high is None):
            raise ValueError("a curve needs load_low and load_high")
        return self

    def covers(self, workload: str) -> bool:
        """Whether it speaks of this workload. Of one on a congested SAN only where it says so: a line that is full
        every setting says nothing about settings in general.
        """
        words = set(workload.lower().replace("_", "-").split("-"))
        wanted = [set(each.split("-")) for each in self.workloads] or [set[str]()]
        return any(each <= words and (words - each).isdisjoint(_SPECIAL) for each in wanted)


class PublishedClaim(_Data):
    """One published finding. `because` says what hardware it needs and why nothing here can replace it."""

    id: str
    seed: str
    subject: str
    change: str
    workload: str
    metric: str
    published: str
    needs: Literal["lab", "model", "hardware"]
    because: str = ""
    network_mib_s: PositiveFloat | None = None
    network: str = ""
    expect: tuple[Expectation, ...] = ()


class _ClaimsFile(_Data):
    claim: tuple[PublishedClaim, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one comparison says about an expectation: yes, no, or (None) nothing yet; and its figures.

    `value` is a case's own figure, where the expectation bounds one; then `figures` is empty. `objection` is what keeps
    it from agreeing, and `because` why, in figures; `size` is how large a change it is about; `more` how many more
    blocks would likely decide what is undecided.
    """

    agrees: bool | None
    figures: str
    objection: str = ""
    because: str = ""
    size: float = 0.0
    more: int | None = None
    value: CaseValue | None = None


@dataclass(frozen=True, slots=True)
class _Reasons:
    """What a difference may be explained with: the claim, what limited every case, and what cases are held against."""

    claim: PublishedClaim
    limits: Mapping[tuple[str, str], Attribution]
    against: str

    def of(self, effect: Effect) -> str:
        """Why an effect is as it is, as far as counters tell."""
        ours = self.limits.get((effect.case, effect.workload))
        theirs = self.limits.get((self.against, effect.workload))
        sentences = []
        if ours is not None and theirs is not None:
            sentences.append(disks_apart(effect.case, ours.figures, self.against, theirs.figures))
        # What disks did is said once: by the comparison, if there is one.
        is_said = any(sentences) and ours is not None and ours.limit in _OF_DISKS
        if ours is not None and ours.limit != "unknown" and not is_said:
            sentences.insert(0, ours.sentence)
        network = (self.claim.network_mib_s, self.claim.network)
        sentences.append(hidden_by_network(effect, self.against, *network))
        return " ".join(filter(None, sentences))


@cache
def shipped_claims() -> Mapping[str, PublishedClaim]:
    """The claims that come with Linerate, read once."""
    return MappingProxyType(read_claims(STUDIES / "claims.toml"))


def read_claims(path: Path) -> Mapping[str, PublishedClaim]:
    """Every claim of a file by its id.

    Raises:
        UserError: the file cannot be read, or is not one of claims.
    """
    try:
        claims = _ClaimsFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).claim
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: {error}", "give a file of claims in TOML") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place}: {first['msg']}", "see linerate.analysis.verdict.claims") from error
    return {claim.id: claim for claim in claims}


def judge_claims(
    claims: Mapping[str, PublishedClaim],
    tested: Mapping[str, Sequence[str]],
    judgement: Judgement,
    attributions: Iterable[Attribution],
    not_applicable: Mapping[str, str],
    *,
    virtual: bool = True,
) -> tuple[ClaimVerdict, ...]:
    """The verdict on every claim that a study names, in the study's order.

    Args:
        claims: as `read_claims` gives them.
        tested: claim id -> the cases that put it to the test.
        judgement: the study's effects.
        attributions: what limited each case, with the medians of its figures.
        not_applicable: case -> why it could not be had here.
        virtual: whether the study ran on a virtual SAN.

    Raises:
        UserError: the study names a claim that there is not.
    """
    limits = {(item.case, item.workload): item for item in attributions}
    verdicts = []
    for name, cases in tested.items():
        if name not in claims:
            raise UserError(f"there is no claim {name}", "see the ids in studies/claims.toml")
        verdicts.append(_verdict(claims[name], cases, judgement, limits, not_applicable, virtual=virtual))
    return tuple(verdicts)


def _verdict(
    claim: PublishedClaim,
    cases: Sequence[str],
    judgement: Judgement,
    limits: Mapping[tuple[str, str], Attribution],
    not_applicable: Mapping[str, str],
    *,
    virtual: bool,
) -> ClaimVerdict:
    reasons = _Reasons(claim, limits, judgement.baseline)
    answers = [
        answer for expected in claim.expect for answer in _all_answers(expected, cases, judgement, reasons)
    ]
    measured = _figures(answers)
    missing = " ".join(
        f"Case {case}: {not_applicable[case].rstrip('.')}." for case in cases if case in not_applicable
    )
    verdict: ClaimOutcome
    if claim.needs == "hardware" and (virtual or not measured):
        verdict, reason = "needs hardware", f"{claim.because} {missing}".strip()
    elif not measured:
        verdict, reason = "not tested", missing or _not_compared(claim, judgement)
    else:
        verdict, reason = _outcome(answers)
    compares = any(expected.change for expected in claim.expect)
    return ClaimVerdict(
        claim=claim.id,
        subject=claim.subject,
        change=claim.change,
        workload=claim.workload,
        published=claim.published,
        measured=measured or "not measured",
        verdict=verdict,
        reason=reason,
        cases=tuple(cases),
        against=judgement.baseline if compares or not claim.expect else "",
        deviances=tuple(_deviances(claim, cases, judgement)),
    )


def _not_compared(claim: PublishedClaim, judgement: Judgement) -> str:
    """Why no figure of the study speaks of a finding."""
    workloads = list(dict.fromkeys(effect.workload for effect in judgement.effects))
    spoken_of = {name for expected in claim.expect for name in expected.workloads}
    if workloads and spoken_of and not any(one.covers(name) for one in claim.expect for name in workloads):
        wanted, here = ", ".join(sorted(spoken_of)), ", ".join(workloads)
        return f"The finding is about workloads named {wanted}, and this comparison has {here}."
    return "No run of this study could be compared."


def _deviances(claim: PublishedClaim, cases: Sequence[str], judgement: Judgement) -> Iterator[Deviance]:
    """Each published change beside the one that was measured for it."""
    for expected in claim.expect:
        if expected.published_percent is None:
            continue
        for case, effect in _effects(expected, cases, judgement):
            if effect.scale == "ratio":
                floor = judgement.floor(effect.workload, effect.metric)
                yield Deviance(
                    case=case,
                    workload=effect.workload,
                    metric=effect.metric,
                    published=expected.published_percent,
                    measured=effect.change,
                    low=effect.change_low,
                    high=effect.change_high,
                    verdict=effect.verdict,
                    blocks=effect.blocks,
                    floor=floor.change if floor else None,
                    floor_detectable=floor.detectable if floor else None,
                )


def _effects(
    expected: Expectation, cases: Sequence[str], judgement: Judgement
) -> Iterator[tuple[str, Effect]]:
    """Every effect of the cases that an expectation speaks of."""
    for case in cases:
        for workload in dict.fromkeys(effect.workload for effect in judgement.effects if effect.case == case):
            effect = judgement.effect(case, workload, expected.metric)
            if effect is not None and expected.covers(workload):
                yield case, effect


def _outcome(answers: Sequence[_Answer]) -> tuple[ClaimOutcome, str]:
    """One contradiction outweighs any agreement; an open comparison leaves the claim untested."""
    against = [answer for answer in answers if answer.agrees is False]
    if against:
        return "differs", " ".join((*_objections(against), *_explanations(against)))
    open_ones = [answer for answer in answers if answer.agrees is None]
    if not open_ones:
        return "agrees", _figures(answers)
    undecided = _figures(open_ones)
    blocks = [answer.more for answer in open_ones if answer.more]
    parts = [
        f"Undecided: {undecided}." if undecided else "",
        f"{max(blocks)} more blocks would likely decide." if blocks else "",
        *dict.fromkeys(answer.objection for answer in open_ones),
    ]
    return "not tested", " ".join(filter(None, parts))


def _objections(answers: Sequence[_Answer]) -> Iterator[str]:
    """Each objection once, with the figures of all comparisons that it is about."""
    for objection in dict.fromkeys(answer.objection for answer in answers):
        yield f"{objection}: {_figures([answer for answer in answers if answer.objection == objection])}."


def _figures(answers: Iterable[_Answer]) -> str:
    """The figures of several answers, each once: changes, then the cases' own values by metric."""
    found = list(answers)
    changes = dict.fromkeys(answer.figures for answer in found if answer.figures)
    return "; ".join((*changes, *value_lines(answer.value for answer in found if answer.value)))


def _explanations(answers: Sequence[_Answer]) -> Sequence[str]:
    """Why, of those that differ most; what is the same for several workloads once."""
    largest_first = sorted(answers, key=lambda answer: -answer.size)
    return list(dict.fromkeys(answer.because for answer in largest_first if answer.because))[:_EXPLAINED_MAX]


def _all_answers(
    expected: Expectation, cases: Sequence[str], judgement: Judgement, reasons: _Reasons
) -> list[_Answer]:
    """The answers of all cases; where no run speaks to the expectation, one that says so."""
    answers = [answer for case in cases for answer in _answers(expected, case, judgement, reasons)]
    if answers:
        return answers
    where = f" under {' or '.join(expected.workloads)}" if expected.workloads else ""
    return [_Answer(None, "", f"Not measured: {metric_name(expected.metric or 'the change')}{where}.")]


def _answers(expected: Expectation, case: str, judgement: Judgement, reasons: _Reasons) -> Iterator[_Answer]:
    """One answer per workload that the expectation covers and the case ran under."""
    if expected.change is None:
        for (measured_case, workload), attribution in reasons.limits.items():
            if measured_case == case and expected.covers(workload):
                yield from _value_answer(expected, attribution)
        return
    for _, effect in _effects(expected, [case], judgement):
        yield _change_answer(expected, effect, reasons)


def _value_answer(expected: Expectation, attribution: Attribution) -> Iterator[_Answer]:
    metric = expected.metric or ""
    value = attribution.figures.get(metric)
    if value is None:
        return
    low, high = expected.value_low, expected.value_high
    inside = (low is None or value >= low) and (high is None or value <= high)
    seen = CaseValue(attribution.case, attribution.workload, metric, value)
    objection = f"Expected {bounds_words(metric, low, high)}, measured"
    yield _Answer(inside, "", objection, attribution.sentence, value=seen)


def _change_answer(expected: Expectation, effect: Effect, reasons: _Reasons) -> _Answer:
    figures = f"{effect.workload}: {_shown(effect)}"
    if expected.change == "none" and expected.low is not None and expected.high is not None:
        return _within(effect, expected.low, expected.high, reasons)
    if effect.verdict == "undecided":
        alone = "One block proves nothing." if effect.blocks == 1 else ""
        return _Answer(None, figures, alone, more=effect.blocks_more)
    if expected.change == "none":
        return _no_change(effect, figures, reasons)
    objection = _direction(expected, effect) or _size(expected, effect)
    if objection:
        return _Answer(False, figures, objection, reasons.of(effect), abs(effect.change))
    if (more := _blocks_to_size(expected, effect)) is not None:
        wide = f"The interval is too wide for the published size, {expected.low:g} to {expected.high:g}."
        return _Answer(None, figures, wide, more=more)
    return _Answer(True, figures)


def _no_change(effect: Effect, figures: str, reasons: _Reasons) -> _Answer:
    """Whether a difference that was published as none is shown to be below the margin."""
    if effect.is_small:
        return _Answer(True, figures)
    if effect.verdict.startswith("slightly"):
        return _Answer(None, figures, "A difference is shown; whether it is below the margin is not.")
    return _Answer(False, figures, "A difference was measured", reasons.of(effect), abs(effect.change))


def _direction(expected: Expectation, effect: Effect) -> str:
    """What keeps a decided effect from having the published direction; empty if nothing does."""
    if effect.verdict == "no difference":
        return "No difference that matters"
    if (effect.change > 0) != (expected.change == "higher"):
        return "The opposite was measured"
    return ""


def _size(expected: Expectation, effect: Effect) -> str:
    """What keeps a decided effect of the published direction from having its size; empty if nothing does."""
    low, high = effect.change_low, effect.change_high
    is_lower = expected.change == "lower"
    if low is not None and expected.high is not None and low > expected.high:
        return f"In the published direction, but {'smaller' if is_lower else 'larger'} than published"
    if high is not None and expected.low is not None and high < expected.low:
        return f"In the published direction, but {'larger' if is_lower else 'smaller'} than published"
    if expected.low is None and expected.high is None and effect.verdict.startswith("slightly"):
        return "In the published direction, but below the margin"
    return ""


def _blocks_to_size(expected: Expectation, effect: Effect) -> int | None:
    """How many more blocks the size needs, if these do not show it; None if they do.

    They show it if the estimate is in the published range, and the interval is no wider than the range. So a wide
    interval never agrees more easily than a narrow one.
    """
    low, high = effect.change_low, effect.change_high
    if expected.low is None or expected.high is None or low is None or high is None:
        return None
    width, range_width = high - low, expected.high - expected.low
    if width > range_width > 0:
        return max(math.ceil(effect.blocks * ((width / range_width) ** 2 - 1)), 1)
    return None if expected.low <= effect.change <= expected.high else max(effect.blocks, 1)


def _within(effect: Effect, low: float, high: float, reasons: _Reasons) -> _Answer:
    """Whether a change that was published as small is: its whole interval inside, or outside."""
    figures = f"{effect.workload}: {_shown(effect)}"
    if effect.change_low is None or effect.change_high is None:
        return _Answer(None, figures, "One block proves nothing.")
    if low <= effect.change_low and effect.change_high <= high:
        return _Answer(True, figures)
    if effect.change_low > high or effect.change_high < low:
        because, size = reasons.of(effect), abs(effect.change)
        return _Answer(False, figures, "A larger difference was measured", because, size)
    return _Answer(None, figures, more=effect.blocks_more)


def _shown(effect: Effect) -> str:
    digits, unit = (".1f", " %") if effect.scale == "ratio" else (".3f", " points")
    bounds = ""
    if effect.change_low is not None and effect.change_high is not None:
        bounds = f" ({effect.change_low:+{digits}} to {effect.change_high:+{digits}})"
    return f"{metric_name(effect.metric)} {effect.change:+{digits}}{unit}{bounds}"
