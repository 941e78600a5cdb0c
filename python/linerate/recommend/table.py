"""The table of non-default settings as publications print it, with the evidence for each and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linerate.plural import plural
from linerate.recommend.configuration import Configuration
from linerate.recommend.form import NOTHING
from linerate.report.study import Recommendation, StudyPage
from linerate.report.study.words import bounds, change, label

_COLUMNS = ("setting", "value", "instead of")


def table_lines(configuration: Configuration) -> list[str]:
    """The lines: settings that helped and hurt nowhere, those that depend on the load, what is not decided."""
    page = configuration.page
    lines = [f"{configuration.study}: {configuration.title}"]
    if configuration.doubt:
        lines.append(f"doubt: {configuration.doubt}")
    if configuration.is_empty:
        lines.append(NOTHING)
    lines += _group("", [item for item in page.recommendations if not item.mixed])
    lines += _group("depends on the load:", [item for item in page.recommendations if item.mixed])
    if configuration.open:
        lines += [
            "",
            "several values helped:",
            *(f"    {name}: {why}" for name, why in configuration.open.items()),
        ]
    undecided = list(_undecided(page))
    lines += ["", f"not decided: {plural(len(undecided), 'comparison')}", *undecided] if undecided else []
    return lines


def _group(title: str, items: Iterable[Recommendation]) -> list[str]:
    rows = [_COLUMNS, *((one.setting, one.recommended, one.instead_of) for one in items)]
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    texts = [f"{name:{widths[0]}}  {value:{widths[1]}}  {usual}" for name, value, usual in rows]
    lines = ["", *([title] if title else []), texts[0]]
    for text, item in zip(texts[1:], items, strict=True):
        lines += [text, *_evidence(item)]
    return lines


def _evidence(item: Recommendation) -> Iterator[str]:
    small = "; a small gain, below the margin" if item.slight else ""
    yield from (f"    brought   {line}{small}" for line in item.evidence)
    yield from (f"    cost      {line}" for line in item.cost)
    yield from (f"    measured  {pair}" for pair in item.compared)


def _undecided(page: StudyPage) -> Iterator[str]:
    for part in page.workloads:
        for case, effect in page.effects(part.name):
            if effect.verdict == "undecided":
                needed = f"; about {effect.blocks_needed} blocks decide it" if effect.blocks_needed else ""
                figure = f"{label(effect.metric)} {change(effect)} ({bounds(effect)})"
                yield f"    {part.title}: {case.title}, {figure}{needed}"
