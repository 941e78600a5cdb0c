"""The verdicts of a study for a terminal, a pipe and a program.

On a terminal cases stand below each other and workloads side by side, as the page does it; in a pipe every line is
one case under one workload with all its figures; as JSON everything on the page.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from linerate.analysis.verdict import Effect
from linerate.report import figures
from linerate.report.panels.paths import failback, seconds
from linerate.report.study import words
from linerate.report.study.model import CasePart, StudyPage
from linerate.report.study.paths import FaultPart
from linerate.report.study.short import headline, short_rows
from linerate.report.tables import aligned

COLUMNS = (
    "workload",
    "case",
    "metric",
    "baseline",
    "value",
    "change",
    "95 % interval",
    "p",
    "blocks",
    "verdict",
)
_STYLES = {
    "better": "green",
    "slightly better": "green",
    "no difference": "dim",
    "slightly worse": "red",
    "worse": "red",
    "undecided": "yellow",
}
_MARKS = {
    "better": "+",
    "slightly better": "(+)",
    "no difference": "=",
    "slightly worse": "(-)",
    "worse": "-",
    "undecided": "?",
}
_TITLE_MAX = 36
_FORMS = ("full", "plain", "short")
_CLAIMS = {
    "agrees": "agree",
    "agrees in part": "agree in part",
    "differs": "differ",
    "needs hardware": "need hardware",
    "not tested": "not tested",
}
"""The verdict on one finding, and on several."""
_ANSWERED_LATER = ("how sure", "change", "next")
"""Of the short answer, what the lines after the table say in full."""
_FAULT_COLUMNS = (
    "workload",
    "failover s",
    "worst s",
    "longest wait ms",
    "over 1 s",
    "errors",
    "paths back s",
    "failback",
)
_MARK_NOTE = "+ better, - worse, in brackets: below the margin, = no difference that matters, ? undecided"


def verdict_table(page: StudyPage, width: int | None = None) -> Table:
    """Cases by workloads. Of what does not fit `width` the intervals go first, then the words; never a figure."""
    form = next((form for form in _FORMS if width is None or _width(page, form) <= width), _FORMS[-1])
    note = f"change against the baseline of the same block, margin {page.margin_percent:g} %"
    table = Table(
        caption=note + (f"; {_MARK_NOTE}" if form == "short" else ""),
        caption_justify="left",
        header_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("case")
    for part in page.workloads:
        heading = part.name if form != "short" else part.name.replace("-", "-\n")
        table.add_column(heading, no_wrap=True)
    for case in page.cases:
        if case.not_applicable:
            table.add_row(Text(case.title, style="dim"), Text("not applicable", style="dim"))
            continue
        table.add_row(
            Text(case.title, style="dim" if case.name == page.judgement.baseline else ""),
            *(_cell(page, case, part.name, form) for part in page.workloads),
        )
    return table


def verdict_lines(page: StudyPage) -> list[str]:
    """One line per workload and case, without colour or frames; cases that could not run follow with the reason."""
    rows: list[list[str]] = [list(COLUMNS)]
    for part in page.workloads:
        for case, effect in page.effects(part.name):
            rows.append(
                [
                    part.name,
                    case.name,
                    part.metric.name,
                    words.value(effect.baseline, part.metric),
                    words.value(effect.value, part.metric),
                    words.change(effect),
                    words.bounds(effect),
                    words.probability(effect.p_adjusted),
                    figures.count(effect.blocks),
                    effect.verdict,
                ]
            )
        nothing = figures.NOTHING
        rows += [
            [part.name, case.name, part.metric.name, *[nothing] * (len(COLUMNS) - 4), "all runs void"]
            for case in page.cases
            if (case.name, part.name) in page.void
        ]
    lines = aligned(rows, last_left=True)
    return [*lines, *(f"not applicable  {case.name}: {case.not_applicable}" for case in page.not_applicable)]


def opening_lines(page: StudyPage) -> list[str]:
    """What comes before the tables: the result in one sentence and the short answer."""
    rows = [row for row in short_rows(page) if row[0] not in _ANSWERED_LATER]
    width = max((len(label) for label, _ in rows), default=0)
    lines = [headline(page)]
    for label, answers in rows:
        lines += [f"  {label if number == 0 else '':<{width}}  {line}" for number, line in enumerate(answers)]
    return [*lines, ""]


def closing_lines(page: StudyPage) -> list[str]:
    """What follows the table: recommended settings, claims, noise floor, and the stamp with its reasons."""
    lines = ["recommended:"] if page.recommendations else []
    for item in page.recommendations:
        depends = "; depends on the load" if item.mixed else ""
        depends += "; a small gain, below the margin" if item.slight else ""
        lines.append(f"  {item.setting}: {item.recommended} instead of {item.instead_of}{depends}")
        lines += [f"    brought  {line}" for line in item.evidence]
        lines += [f"    cost     {line}" for line in item.cost]
    if page.claims:
        counts = {word: sum(claim.verdict == word for claim in page.claims) for word in _CLAIMS}
        counted = ", ".join(
            f"{count} {word if count == 1 else _CLAIMS[word]}" for word, count in counts.items() if count
        )
        lines.append(f"published findings: {counted}")
        for claim in page.claims:
            if claim.verdict in ("differs", "agrees in part"):
                compared = f" ({page.compared(claim)})" if page.compared(claim) else ""
                lines.append(
                    f"  {claim.claim}: published {claim.published} for {claim.change}; "
                    f"measured{compared} {claim.measured}"
                )
    lines += _path_lines(page)
    lines += _deviance_lines(page)
    floors = [
        f"{part.name} {words.percent(floor.change)}"
        for part in page.workloads
        if (floor := page.judgement.floor(part.name, part.metric.name)) and floor.scale == "ratio"
    ]
    if floors:
        lines.append(f"baseline against itself: {', '.join(floors)}")
    lines.append(f"result: {page.validity.words}")
    for group in figures.grouped_findings(page.validity.findings):
        if group.finding.severity != "note":
            where = words.where(group, page.runs)
            lines.append(
                f"  {group.finding.severity:<7}  {group.finding.reason}" + (f" [{where}]" if where else "")
            )
            if group.finding.effect:
                lines.append(f"           effect on a run: {group.finding.effect}")
    if page.certainty:
        lines.append(f"note: {page.certainty}")
    return lines


def _path_lines(page: StudyPage) -> list[str]:
    lines = [f"  {part.case}, {part.workload}: {part.said}" for part in page.layouts if part.said]
    return ["paths:", *lines] if lines else []


def fault_lines(page: StudyPage) -> list[str]:
    """One line per fault: how long until I/O went another way, the longest wait, errors, what coming back cost."""
    rows = [
        ["faults", *_FAULT_COLUMNS],
        *([f"  {fault.case}", *_fault_cells(fault)] for fault in page.faults),
    ]
    return aligned(rows, last_left=True) if page.faults else []


def fault_table(page: StudyPage) -> Table:
    """The lines of `fault_lines` for a terminal: the case's name goes on below where the terminal is narrow."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("faults", vertical="bottom")
    one_workload = len({fault.workload for fault in page.faults}) == 1
    for heading in _FAULT_COLUMNS[one_workload:]:
        first, _, rest = heading.partition(" ")
        table.add_column(f"{first}\n{rest}", justify="right", no_wrap=True)
    for fault in page.faults:
        table.add_row(Text(fault.case), *_fault_cells(fault)[one_workload:])
    return table


def _fault_cells(fault: FaultPart) -> list[str]:
    return [
        fault.workload,
        seconds(fault.failover_s),
        seconds(fault.failover_worst_s),
        figures.ms(fault.response_max_ms),
        figures.count(fault.slow_ios),
        figures.count(fault.errors),
        seconds(fault.back_s),
        failback(fault),
    ]


def _deviance_lines(page: StudyPage) -> list[str]:
    """Published changes beside the measured ones, with what the control shows against itself."""
    rows = [["control deviance", "workload", "published", "measured", "95 % interval", "A/A", "verdict"]]
    rows += [
        [
            f"  {one.case}",
            one.workload,
            words.percent(one.published),
            words.percent(one.measured),
            words.interval(one),
            words.percent(one.floor),
            one.verdict,
        ]
        for _, one in page.deviances()
    ]
    return aligned(rows, last_left=True) if len(rows) > 1 else []


def verdict_object(page: StudyPage) -> dict[str, Any]:
    """Everything as one JSON-ready object: verdicts, claims, recommendations, what could not run."""
    return {
        "study": page.name,
        "state": page.state,
        "stamp": page.validity.stamp,
        **asdict(page.judgement),
        "attributions": [asdict(item) for item in page.attributions],
        "claims": [asdict(claim) for claim in page.claims],
        "recommended": [asdict(item) for item in page.recommendations],
        "paths": [asdict(part) for part in page.layouts],
        "faults": [asdict(part) for part in page.faults],
        "not_applicable": {case.name: case.not_applicable for case in page.not_applicable},
    }


def _cell(page: StudyPage, case: CasePart, workload: str, form: str) -> Text:
    if case.name == page.judgement.baseline:
        part = next(part for part in page.workloads if part.name == workload)
        return Text(f"{words.value(page.baseline_value(part), part.metric):>8}", style="dim")
    effect = page.judgement.effect(case.name, workload)
    if (case.name, workload) in page.void:
        return Text("all runs void", style="red")
    if effect is None:
        return Text(figures.NOTHING, style="dim")
    return Text(_written(effect, form), style=_STYLES[effect.verdict])


def _written(effect: Effect, form: str) -> str:
    change = f"{words.change(effect):>8}"
    if form == "short":
        return f"{change} {_MARKS[effect.verdict]}"
    if form == "plain" or effect.change_low is None or effect.change_high is None:
        return f"{change} {effect.verdict}"
    bounds = f"({words.bounds(effect)})"
    return f"{change} {bounds:<18} {effect.verdict}"


def _width(page: StudyPage, form: str) -> int:
    """Columns that the table needs in a form; long titles of cases may take a second line."""
    cases = min(max((len(case.title) for case in page.cases), default=0), _TITLE_MAX)
    return cases + sum(
        2
        + max(
            len(part.name),
            *(_cell(page, case, part.name, form).cell_len for case in page.cases if not case.not_applicable),
            0,
        )
        for part in page.workloads
    )
