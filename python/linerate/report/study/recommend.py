"""Which settings earned their place: those whose own change, everything else being equal, was shown to help.

Two cases that differ in one setting (or in a few that no other pair of cases separates) put that setting to the test,
whether one of them is the baseline or not: a baseline of three changed settings is not proof of each. A case is held
against the other with the same judgement as against the baseline. What the default is says the study's own case of that
name, else the catalogue; where there is no such case, the baseline is what a setting has to beat as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linerate.analysis.verdict import Effect, Judgement, Observation, judge
from linerate.errors import UserError
from linerate.host import catalogue
from linerate.report import figures
from linerate.report.study import words
from linerate.report.study.model import Recommendation, WorkloadPart
from linerate.study import Case, SettingValue

_TOGETHER_MAX = 3
_HELPS = ("lan_mib_s", "retransmit_percent", "host_cpu_percent", "p99_ms")
"""Besides a workload's own metric, what is worth a setting: the NIC papers chose by these too."""
Settings = Mapping[str, SettingValue | None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cases and the settings in which the first departs from the second."""

    case: Case
    against: Case
    names: frozenset[str]


def recommend(
    cases: Sequence[Case],
    observations: Sequence[Observation],
    judgement: Judgement,
    workloads: Sequence[WorkloadPart],
) -> tuple[Recommendation, ...]:
    """The non-default settings that were shown to help, those that hurt nowhere first.

    `judgement` serves for comparisons with its own baseline; others are judged here by the same rules.
    """
    judgements = {judgement.baseline: judgement}
    seen = {observation.case for observation in observations}
    found: dict[frozenset[str], Recommendation] = {}
    measured = [case for case in cases if case.name in seen]
    pairs = list(_pairs(measured, judgement.baseline))
    for pair in pairs:
        if any(other.names < pair.names for other in pairs):
            continue
        against = pair.against.name
        if against not in judgements:
            try:
                judgements[against] = judge(
                    observations,
                    against,
                    {part.name: part.metric.name for part in workloads},
                    judgement.margin,
                    judgement.alpha,
                )
            except UserError:
                continue
        made = _recommendation(pair, judgements[against], workloads)
        if made is not None and (pair.names not in found or len(made.cost) < len(found[pair.names].cost)):
            found[pair.names] = made
    return tuple(sorted(found.values(), key=lambda item: (item.mixed, item.setting)))


def default_of(name: str) -> str:
    """What a setting usually stands at, empty for one that the catalogue does not know."""
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
            if 0 < len(names) <= _TOGETHER_MAX and all(departs(case, against, name) for name in names):
                yield _Pair(case, against, names)


def _is_default(name: str, value: SettingValue | None, defaults: Settings) -> bool:
    """A setting that a case does not name is left as the host has it."""
    default = _text(name, defaults[name]) if name in defaults else default_of(name)
    return value is None or _text(name, value) == default


def _recommendation(
    pair: _Pair, judgement: Judgement, workloads: Sequence[WorkloadPart]
) -> Recommendation | None:
    """What the judgement says for and against the pair's settings; None when nothing speaks for them."""
    evidence: list[str] = []
    cost: list[str] = []
    own: list[Effect] = []
    for part in workloads:
        primary = judgement.effect(pair.case.name, part.name)
        others = [
            judgement.effect(pair.case.name, part.name, name) for name in _HELPS if name != part.metric.name
        ]
        effects = [effect for effect in (primary, *others) if effect is not None]
        for verdict, lines in (("better", evidence), ("worse", cost)):
            if shown := [effect for effect in effects if effect.verdict == verdict]:
                lines.append(_line(part, shown))
        # What storage gains at the cost of the LAN on the same wire is a trade, not a gift.
        own += [effect for effect in effects if effect.primary or effect.metric == "lan_mib_s"]
    verdicts = {effect.verdict for effect in own}
    # What does not help its own metric must at least be shown not to hurt it.
    if not evidence or ("better" not in verdicts and verdicts != {"equivalent"}):
        return None
    names = sorted(pair.names)
    return Recommendation(
        setting=" and ".join(title_of(name) for name in names),
        instead_of=", ".join(
            written(name, pair.against.settings.get(name)) or default_of(name) or figures.NOTHING
            for name in names
        ),
        recommended=", ".join(
            written(name, pair.case.settings.get(name)) or default_of(name) or figures.NOTHING
            for name in names
        ),
        evidence=tuple(evidence),
        cost=tuple(cost),
        mixed="worse" in verdicts,
    )


def _line(part: WorkloadPart, effects: Sequence[Effect]) -> str:
    """What was shown under one workload, its own metric first."""
    changes = [
        f"{'' if effect.primary else words.label(effect.metric) + ' '}{words.change(effect)} ({words.bounds(effect)})"
        for effect in effects
    ]
    return f"{part.title}: {', '.join(changes)}; {effects[0].blocks} blocks"
