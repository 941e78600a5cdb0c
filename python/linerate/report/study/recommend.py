"""Which settings earned their place: those whose own change, everything else being equal, was shown to help.

Two cases that differ in one setting (or in a few that no other pair of cases separates) put that setting to the test,
whether one of them is the baseline or not: a baseline of three changed settings is not proof of each. A case is held
against the other with the same judgement as against the baseline. What the default is says the study's own case of that
name, else the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from linerate.analysis.verdict import Effect, Judgement, Observation, judge
from linerate.errors import UserError
from linerate.host import catalogue
from linerate.report.study import words
from linerate.report.study.model import Recommendation, WorkloadPart
from linerate.study import Case, SettingValue

_TOGETHER_MAX = 3
_HELPS = ("retransmit_percent", "host_cpu_percent", "p99_ms")
"""Besides a workload's own metric, what is worth a setting: the NIC papers chose by these too."""
Settings = Mapping[str, SettingValue | None]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two cases and the settings that the first changes from their default."""

    case: str
    against: str
    names: frozenset[str]
    defaults: Settings
    values: Settings


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
    pairs = [pair for pair in _pairs(cases) if {pair.case, pair.against} <= seen]
    for pair in pairs:
        if any(other.names < pair.names for other in pairs):
            continue
        if pair.against not in judgements:
            try:
                judgements[pair.against] = judge(
                    observations,
                    pair.against,
                    {part.name: part.metric.name for part in workloads},
                    judgement.margin,
                    judgement.alpha,
                )
            except UserError:
                continue
        made = _recommendation(pair, judgements[pair.against], workloads)
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


def _pairs(cases: Sequence[Case]) -> Iterator[_Pair]:
    defaults = next((case.settings for case in cases if case.name == "default"), {})
    for case in cases:
        for against in cases:
            names = frozenset(
                name
                for name in {*case.settings, *against.settings}
                if case.settings.get(name) != against.settings.get(name)
            )
            if 0 < len(names) <= _TOGETHER_MAX and all(
                _is_default(name, against.settings.get(name), defaults)
                and not _is_default(name, case.settings.get(name), defaults)
                for name in names
            ):
                yield _Pair(
                    case.name,
                    against.name,
                    names,
                    {name: against.settings.get(name) for name in names},
                    {name: case.settings.get(name) for name in names},
                )


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
    hurts = False
    for part in workloads:
        primary = judgement.effect(pair.case, part.name)
        others = [judgement.effect(pair.case, part.name, name) for name in _HELPS if name != part.metric.name]
        for effect in (primary, *others):
            if effect is not None and effect.verdict in ("better", "worse"):
                (evidence if effect.verdict == "better" else cost).append(_line(part, effect))
        hurts = hurts or (primary is not None and primary.verdict == "worse")
    if not evidence:
        return None
    names = sorted(pair.names)
    return Recommendation(
        setting=" and ".join(title_of(name) for name in names),
        default=", ".join(written(name, pair.defaults[name]) or default_of(name) or "-" for name in names),
        recommended=", ".join(written(name, pair.values[name]) for name in names),
        evidence=tuple(evidence),
        cost=tuple(cost),
        mixed=hurts,
    )


def _line(part: WorkloadPart, effect: Effect) -> str:
    what = "" if effect.primary else f" {words.label(effect.metric)}"
    bounds = words.bounds(effect)
    return f"{part.title}:{what} {words.change(effect)} ({bounds}), {effect.blocks} blocks"
