"""Result tables for terminals: rich tables for people, plain lines for pipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from linerate.analysis import OpSummary, Quantile, RunComparison, StepSummary
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
    "queue depth",
    "cpu% sys+u",
)
_DISPENSABLE = ("p95", "read%", "p50", "queue depth", "p99.9", "cpu% sys+u")
_QUANTILE_COLUMNS = {0.5: 5, 0.95: 6, 0.99: 7, 0.999: 8}
FOOTNOTE = "times in ms, MB = 2^20 bytes"
GREY_FOOTNOTE = "(in parentheses: fewer than 100 I/Os lie beyond)"


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
    shown = _columns_that_fit(rows, width)
    table = Table(
        caption=FOOTNOTE, caption_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for number in shown:
        heading = COLUMNS[number].replace(" ", "\n")
        table.add_column(heading, justify="right" if number else "left", no_wrap=number > 0, overflow="fold")
    for row in rows:
        part = row[0].text.startswith(" ")
        table.add_row(*(Text(row[n].text, style="dim" if row[n].grey or part else "") for n in shown))
    return table


def _columns_that_fit(rows: Sequence[Sequence[Cell]], width: int | None) -> list[int]:
    shown = list(range(len(COLUMNS)))
    widths = [
        max(*(len(word) for word in name.split()), *(len(row[n].text) for row in rows), 0) + 2
        for n, name in enumerate(COLUMNS)
    ]
    for name in _DISPENSABLE:
        if width is None or sum(widths[n] for n in shown) <= width:
            break
        shown.remove(COLUMNS.index(name))
    return shown


def result_lines(steps: Sequence[StepSummary]) -> list[str]:
    """The same table as plain lines, without colour or frames."""
    rows = result_rows(steps)
    lines = aligned([COLUMNS, *([_plain(cell) for cell in row] for row in rows)])
    notes = FOOTNOTE
    if any(cell.grey for row in rows for cell in row):
        notes += f" {GREY_FOOTNOTE}"
    return [*lines, notes]


def result_rows(steps: Sequence[StepSummary]) -> list[list[Cell]]:
    """The rows of the result table.

    One per step, and one for reads and writes each where a step does both.
    """
    rows = []
    for step in steps:
        rows.append(
            _row(step.step, step.total, figures.percent(step.usage.cpu_busy_percent), step.read_percent)
        )
        if step.read and step.write and step.read.ios and step.write.ios:
            rows.append(_row("  read", step.read))
            rows.append(_row("  write", step.write))
    return rows


def _row(name: str, total: OpSummary, cpu: str = "", read_percent: float | None = None) -> list[Cell]:
    quantiles = [total.quantile(q) for q in _QUANTILE_COLUMNS]
    return [
        Cell(name),
        Cell(figures.rate(total.iops)),
        Cell(figures.mib_s(total.mib_s)),
        Cell("" if read_percent is None else figures.percent(read_percent)),
        Cell(figures.ms(total.mean_ms)),
        *(_quantile_cell(quantile) for quantile in quantiles),
        Cell(figures.ms(total.max_ms)),
        Cell(figures.decimal(total.queue_depth)),
        Cell(cpu),
    ]


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


def validity_lines(
    validity: Validity, *, steps: int = 0, brief: bool = False, width: int | None = None
) -> list[str]:
    """The stamp, and each doubt with the steps it holds for (of `steps` in all), its reason, effect and advice.

    `brief` keeps a note to one line, of at most `width` characters, and leaves its advice out.
    """
    lines = [f"result: {validity.stamp}"]
    for group in figures.grouped_findings(validity.findings, steps):
        finding = group.finding
        short = brief and finding.severity == "note"
        where = f" [{group.where()}]" if group.steps else ""
        line = f"  {finding.severity:<7}  {finding.rule}: {finding.reason}"
        if short and width is not None and len(line + where) > width:
            line = line[: max(width - len(where) - 2, 0)].rpartition(" ")[0].rstrip(" ,;:(") + "..."
        lines.append(line + where)
        if finding.effect:
            lines.append(f"           effect: {finding.effect}")
        if finding.advice and not short:
            lines.append(f"           -> {finding.advice}")
    return lines


def comparison_lines(comparison: RunComparison) -> list[str]:
    """Two sides, ratios and their bounds, then what differed besides the figures."""
    lines = [f"A: {', '.join(comparison.a)}", f"B: {', '.join(comparison.b)}"]
    for step in comparison.steps:
        rows = [[step.step, "A", "B", "B/A", "95 % bounds", ""]]
        for metric in step.metrics:
            bounds = (
                f"{metric.low:.3f} .. {metric.high:.3f}" if metric.low and metric.high else figures.NOTHING
            )
            rows.append(
                [
                    f"{metric.metric} {metric.unit}".strip(),
                    _side(metric.a),
                    _side(metric.b),
                    figures.decimal(metric.ratio, 3),
                    bounds,
                    metric.verdict,
                ]
            )
        lines += ["", *aligned(rows, last_left=True)]
    for side, steps in (("A", comparison.only_a), ("B", comparison.only_b)):
        if steps:
            lines += ["", f"only in {side}: {', '.join(steps)}"]
    if comparison.differences:
        lines += ["", "differs besides the figures:"]
        lines += [f"  {item.label}: {item.a} -> {item.b}" for item in comparison.differences]
    if comparison.warnings:
        lines += ["", *(f"note: {warning}" for warning in comparison.warnings)]
    return lines


def _side(values: Sequence[float]) -> str:
    return " ".join(figures.significant(value) for value in values) or figures.NOTHING
