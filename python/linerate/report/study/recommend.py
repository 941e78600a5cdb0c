"""Which settings earned their place: those whose own change, everything else being equal, was shown to help.

Two cases that differ in one setting (or in a few that no other pair of cases separates) put that setting to the test,
whether one of them is the baseline or not: a baseline of three changed settings is not proof of each. A case is held
against the other with the same judgement as against the baseline. What the default is says the study's own case of that
name, else the catalogue; where there is no such case, the baseline is what a setting has to beat as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linerate.analysis.verdict import GAINS, LOSSES, Effect, Judgement, Observation, judge
from linerate.errors import UserError
from linerate.report import figures
from linerate.report.study import words
from linerate.report.study.model import Recommendation, WorkloadPart
from linerate.settings import catalogue
from linerate.study import Case, SettingValue

_TOGETHER_MAX = 3
_CHOICES = ("array.", "load.array", "load.rate", "load.lan")
"""What an array is made of, and which array it is, is a choice between speed, capacity and what may fail; none
outweighs the others. And how much a load asks, and what goes on beside it, is the question and not the answer."""
_HELPS = ("lan_mib_s", "retransmit_percent", "host_cpu_percent", "p99_ms")
"""Besides a workload's own metric, what is worth a setting: the NIC papers chose by these too."""
Settings = Mapping[str, SettingValue | None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cases and the settings in which the first departs from the second."""

    case: Case
    against: Case
    names: frozenset[str]

    @property
    def change(self) -> tuple[tuple[str, str, str], ...]:
        """Per setting its name, what it is set to and instead of what: the same in every pair that tests it."""
        return tuple(
            (
                name,
                _or_default(name, self.case.settings.get(name)),
                _or_default(name, self.against.settings.get(name)),
            )
            for name in sorted(self.names)
        )

    @property
    def titles(self) -> str:
        """Both cases, as people call them."""
        return f"{self.case.title} against {self.against.title}"


@dataclass(frozen=True, slots=True)
class _Test:
    """What one pair of cases says for a change and against it. `own`: verdicts on the workloads' own metrics.

    `slight`: every gain is below the margin.
    """

    pair: _Pair
    evidence: tuple[str, ...]
    cost: tuple[str, ...]
    own: frozenset[str]
    slight: bool


def recommend(
    cases: Sequence[Case],
    observations: Sequence[Observation],
    judgement: Judgement,
    workloads: Sequence[WorkloadPart],
) -> tuple[Recommendation, ...]:
    """The non-default settings that were shown to help, those that hurt nowhere first.

    `judgement` serves for comparisons with its own baseline; others are judged here by the same rules.
    """
    judgements: dict[str, Judgement | None] = {judgement.baseline: judgement}
    metrics = {part.name: part.metric.name for part in workloads}
    seen = {observation.case for observation in observations}
    measured = [case for case in cases if case.name in seen]
    pairs = list(_pairs(measured, judgement.baseline))
    tests: dict[tuple[tuple[str, str, str], ...], list[_Test]] = {}
    for pair in pairs:
        if any(other.names < pair.names for other in pairs):
            continue
        against = pair.against.name
        if against not in judgements:
            try:
                judgements[against] = judge(
                    observations, against, metrics, judgement.margin, judgement.alpha, judgement.looks
                )
            except UserError:
                judgements[against] = None
        if (theirs := judgements[against]) is not None:
            tests.setdefault(pair.change, []).append(_test(pair, theirs, workloads))
    found = [made for change, of_change in tests.items() if (made := _recommendation(change, of_change))]
    return tuple(sorted(found, key=lambda item: (item.mixed, item.setting)))


def default_of(name: str) -> str:
    """The usual value of a setting; empty for one that the catalogue does not have."""
    setting = catalogue().get(name)
    return setting.default if setting else ""


def written(name: str, value: SettingValue | None) -> str:
    """A setting's value as people write it, with its unit; nothing for a value that is not known."""
    text = _text(name, value)
    setting = catalogue().get(name)
    return f"{text} {setting.unit}".strip() if setting and text.isdecimal() else text


def _text(name: str, value: SettingValue | None) -> str:
    if value is None:
        return ""
    setting = catalogue().get(name)
    if setting is None or isinstance(value, float):
        return ("on" if value else "off") if isinstance(value, bool) else str(value)
    try:
        return setting.text(setting.parse(value))
    except UserError:  # read back from a host: outside of what may be asked for
        return str(value)


def title_of(name: str) -> str:
    """What people call a setting, with its name in the catalogue."""
    setting = catalogue().get(name)
    return f"{setting.title} ({name})" if setting else name


def _pairs(cases: Sequence[Case], baseline: str) -> Iterator[_Pair]:
    """The pairs that put a setting to the test which is not at its default in the first and is in the second."""
    default = next((case for case in cases if case.name == "default"), None)
    defaults = default.settings if default else {}

    def departs(case: Case, against: Case, name: str) -> bool:
        at_default = [_is_default(name, one.settings.get(name), defaults) for one in (case, against)]
        return at_default == [False, True] or (default is None and against.name == baseline)

    for case in cases:
        for against in cases:
            names = frozenset(
                name
                for name in {*case.settings, *against.settings}
                if case.settings.get(name) != against.settings.get(name)
            )
            if any(name.startswith(_CHOICES) for name in names):
                continue
            if 0 < len(names) <= _TOGETHER_MAX and all(departs(case, against, name) for name in names):
                yield _Pair(case, against, names)


def _is_default(name: str, value: SettingValue | None, defaults: Settings) -> bool:
    """A setting that a case does not name is left as the host has it."""
    default = _text(name, defaults[name]) if name in defaults else default_of(name)
    return value is None or _text(name, value) == default


def _or_default(name: str, value: SettingValue | None) -> str:
    return written(name, value) or default_of(name) or figures.NOTHING


def _test(pair: _Pair, judgement: Judgement, workloads: Sequence[WorkloadPart]) -> _Test:
    evidence: list[str] = []
    cost: list[str] = []
    own: list[Effect] = []
    helped: set[str] = set()
    for part in workloads:
        primary = judgement.effect(pair.case.name, part.name)
        others = [
            judgement.effect(pair.case.name, part.name, name) for name in _HELPS if name != part.metric.name
        ]
        effects = [effect for effect in (primary, *others) if effect is not None]
        gains = [effect for effect in effects if effect.verdict in GAINS]
        if primary is not None and primary.verdict in LOSSES:
            # A host that gets less done has less to do.
            gains = [effect for effect in gains if effect.metric != "host_cpu_percent"]
        losses = [effect for effect in effects if effect.verdict in LOSSES]
        helped.update(effect.verdict for effect in gains)
        for lines, shown in ((evidence, gains), (cost, losses)):
            if shown:
                lines.append(_line(part, shown))
        # What storage gains at the cost of the LAN on the same wire is a trade, not a gift.
        own += [effect for effect in effects if effect.primary or effect.metric == "lan_mib_s"]
    verdicts = frozenset(effect.verdict for effect in own)
    return _Test(pair, tuple(evidence), tuple(cost), verdicts, "better" not in helped)


def _recommendation(
    change: tuple[tuple[str, str, str], ...], tests: Sequence[_Test]
) -> Recommendation | None:
    """What all pairs together say for and against a change; None when nothing speaks for it."""
    verdicts = frozenset[str]().union(*(test.own for test in tests))
    better = tests[0].pair.case.settings
    # What does not help its own metric must at least be shown not to hurt it.
    if not any(test.evidence for test in tests) or (not verdicts & GAINS and verdicts != {"no difference"}):
        return None
    return Recommendation(
        setting=" and ".join(title_of(name) for name, _, _ in change),
        instead_of=", ".join(instead for _, _, instead in change),
        recommended=", ".join(value for _, value, _ in change),
        evidence=tuple(_lines(tests, [test.evidence for test in tests])),
        cost=tuple(_lines(tests, [test.cost for test in tests])),
        mixed=bool(verdicts & LOSSES),
        slight=all(test.slight for test in tests),
        compared=tuple(test.pair.titles for test in tests),
        values={name: better[name] for name, _, _ in change if name in better},
    )


def _lines(tests: Sequence[_Test], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of every pair; where there are several, with the two cases that were compared."""
    for test, of_test in zip(tests, lines, strict=True):
        which = f" ({test.pair.titles})" if len(tests) > 1 else ""
        yield from (line + which for line in of_test)


def _line(part: WorkloadPart, effects: Sequence[Effect]) -> str:
    """What was shown under one workload, its own metric first."""
    changes = [
        f"{'' if effect.primary else words.label(effect.metric) + ' '}{words.change(effect)} ({words.bounds(effect)})"
        for effect in effects
    ]
    return f"{part.title}: {', '.join(changes)}; {effects[0].blocks} blocks"
