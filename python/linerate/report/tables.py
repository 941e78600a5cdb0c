"""Result tables for terminals: rich tables for people, plain lines for pipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from linerate.analysis import OpSummary, Quantile, RunComparison, StepSummary
from linerate.analysis.compare import MetricComparison
from linerate.report import figures
from linerate.results import Validity

COLUMNS = (
    "run",
    "i/o rate",
    "MB/sec",
    "read%",
    "resp",
    "p50",
    "p95",
    "p99",
    "p99.9",
    "resp max",
    "with wait",
    "p99 with wait",
    "queue depth",
    "cpu% sys+u",
)
"""All columns of the result table, in order; those of `WAIT_COLUMNS` only where a run had a rate to keep."""
WAIT_COLUMNS = ("with wait", "p99 with wait")
_DISPENSABLE = ("p95", "read%", "p50", "queue depth", "p99.9", "cpu% sys+u", "resp max")
FOOTNOTE = "times in ms, MB = 2^20 bytes"
WAIT_FOOTNOTE = (
    "resp: service time, from submit to completion; with wait: response time, from the intended start"
)
GREY_FOOTNOTE = "(in parentheses: fewer than 100 I/Os were slower)"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the result table; `grey` figures rest on too few I/Os to be quoted."""

    text: str
    grey: bool = False


def result_table(steps: Sequence[StepSummary], width: int | None = None) -> Table:
    """The end-of-run table: vdbench's words, then percentiles. Reads and writes follow below a mixed step.

    Of the columns that do not fit `width` the less telling ones are left out; no figure is ever cut.
    """
    rows = result_rows(steps)
    columns = result_columns(steps)
    shown = _columns_that_fit(columns, rows, width)
    table = Table(
        caption=footnote(steps), caption_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for number in shown:
        heading = columns[number].replace(" ", "\n")
        table.add_column(heading, justify="right" if number else "left", no_wrap=number > 0, overflow="fold")
    for row in rows:
        part = row[0].text.startswith(" ")
        table.add_row(*(Text(row[n].text, style="dim" if row[n].grey or part else "") for n in shown))
    return table


def result_columns(steps: Sequence[StepSummary]) -> tuple[str, ...]:
    """The columns of the result table of these steps."""
    paced = any(step.paced for step in steps)
    return tuple(name for name in COLUMNS if paced or name not in WAIT_COLUMNS)


def footnote(steps: Sequence[StepSummary]) -> str:
    """What the words of the table mean."""
    return f"{FOOTNOTE}; {WAIT_FOOTNOTE}" if any(step.paced for step in steps) else FOOTNOTE


def _columns_that_fit(columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int | None) -> list[int]:
    shown = list(range(len(columns)))
    widths = [
        max(*(len(word) for word in name.split()), *(len(row[n].text) for row in rows), 0) + 2
        for n, name in enumerate(columns)
    ]
    for name in _DISPENSABLE:
        if width is None or sum(widths[n] for n in shown) <= width:
            break
        shown.remove(columns.index(name))
    return shown


def result_lines(steps: Sequence[StepSummary]) -> list[str]:
    """The same table as plain lines, without colour or frames."""
    rows = result_rows(steps)
    lines = aligned([result_columns(steps), *([_plain(cell) for cell in row] for row in rows)])
    notes = footnote(steps)
    if any(cell.grey for row in rows for cell in row):
        notes += f" {GREY_FOOTNOTE}"
    return [*lines, notes]


def result_rows(steps: Sequence[StepSummary]) -> list[list[Cell]]:
    """The rows of the result table.

    One per step, and one for reads and writes each where a step does both.
    """
    columns = result_columns(steps)
    rows = []
    for step in steps:
        cpu = figures.percent(step.usage.cpu_busy_percent)
        read_percent = figures.percent(step.read_percent)
        rows.append(_row(columns, step.step, step.total, step, {"read%": read_percent, "cpu% sys+u": cpu}))
        if step.read and step.write and step.read.ios and step.write.ios:
            rows.append(_row(columns, "  read", step.read, step))
            rows.append(_row(columns, "  write", step.write, step))
    return rows


def _row(
    columns: Sequence[str],
    name: str,
    total: OpSummary,
    step: StepSummary,
    more: Mapping[str, str] | None = None,
) -> list[Cell]:
    wait = figures.ms(total.response_mean_ms) if step.paced else figures.NOTHING
    tail = total.response_quantile(0.99) if step.paced else None
    cells = {
        "run": Cell(name),
        "i/o rate": Cell(figures.rate(total.iops)),
        "MB/sec": Cell(figures.mib_s(total.mib_s)),
        "resp": Cell(figures.ms(total.mean_ms)),
        "p50": _quantile_cell(total.quantile(0.5)),
        "p95": _quantile_cell(total.quantile(0.95)),
        "p99": _quantile_cell(total.quantile(0.99)),
        "p99.9": _quantile_cell(total.quantile(0.999)),
        "resp max": Cell(figures.ms(total.max_ms)),
        "with wait": Cell(wait),
        "p99 with wait": _quantile_cell(tail),
        "queue depth": Cell(figures.decimal(total.queue_depth)),
        **{column: Cell(text) for column, text in (more or {}).items()},
    }
    return [cells.get(column, Cell("")) for column in columns]


def _quantile_cell(quantile: Quantile | None) -> Cell:
    return Cell(figures.quantile_ms(quantile), grey=quantile is not None and not quantile.reliable)


def _plain(cell: Cell) -> str:
    return f"({cell.text})" if cell.grey else cell.text


def aligned(rows: Sequence[Sequence[str]], *, last_left: bool = False) -> list[str]:
    """Rows as lines: the first column (and the last, if asked) to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {0, len(widths) - 1} if last_left else {0}
    return [
        "  ".join(
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def validity_lines(validity: Validity, *, steps: int = 0, brief: bool = False) -> list[str]:
    """The stamp, and each doubt with the steps it holds for (of `steps` in all), its reason, effect and advice.

    `brief` leaves the advice of notes out.
    """
    lines = [f"result: {validity.words}"]
    for group in figures.grouped_findings(validity.findings, steps):
        finding = group.finding
        short = brief and finding.severity == "note"
        where = f" [{group.where()}]" if group.steps else ""
        line = f"  {finding.severity:<7}  {finding.rule}: {finding.reason}"
        lines.append(line + where)
        if finding.effect:
            lines.append(f"           effect: {finding.effect}")
        if finding.advice and not short:
            lines.append(f"           -> {finding.advice}")
    return lines


def comparison_lines(comparison: RunComparison, width: int | None = None) -> list[str]:
    """Two sides, ratios and their bounds, then what differed besides the figures.

    A table that is wider than `width` columns is written as a paragraph for each metric.
    """
    lines = [f"A: {', '.join(comparison.a)}", f"B: {', '.join(comparison.b)}"]
    for step in comparison.steps:
        rows = [[step.step, "A", "B", "B/A", "95 % bounds", ""]]
        for metric in step.metrics:
            bounds = (
                f"{metric.low:.3f} .. {metric.high:.3f}" if metric.low and metric.high else figures.NOTHING
            )
            rows.append(
                [
                    _with_unit(metric),
                    _side(metric.a),
                    _side(metric.b),
                    figures.decimal(metric.ratio, 3),
                    bounds,
                    metric.verdict,
                ]
            )
        table = aligned(rows, last_left=True)
        is_narrow = width is not None and max(map(len, table)) > width
        lines += ["", *(_stacked(rows) if is_narrow else table)]
    for side, steps in (("A", comparison.only_a), ("B", comparison.only_b)):
        if steps:
            lines += ["", f"only in {side}: {', '.join(steps)}"]
    if comparison.differences:
        lines += ["", "differs besides the figures:"]
        lines += [f"  {item.label}: {item.a} -> {item.b}" for item in comparison.differences]
    if comparison.warnings:
        lines += ["", *(f"note: {warning}" for warning in comparison.warnings)]
    return lines


def _stacked(rows: Sequence[Sequence[str]]) -> list[str]:
    """A comparison's table for a narrow terminal: each metric, and below it what its columns say."""
    (step, *heads, _), *metrics = rows
    lines = [step]
    for name, *cells, verdict in metrics:
        named = [[f"  {head}", cell] for head, cell in zip(heads, cells, strict=True)]
        lines += ["", name, *aligned(named, last_left=True), *([f"  {verdict}"] if verdict else [])]
    return lines


def _with_unit(metric: MetricComparison) -> str:
    """The label and the unit, which vdbench's `MB/sec` has already."""
    return metric.label if metric.label == "MB/sec" else f"{metric.label} {metric.unit}".strip()


def _side(values: Sequence[float]) -> str:
    return " ".join(figures.significant(value) for value in values) or figures.NOTHING
