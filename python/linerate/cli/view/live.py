"""The live table: the step's banner, how far it is, the latest intervals and the i/o rate as a small curve.

The table renews itself four times a second so that time moves between intervals. A finished step leaves its table's
average line behind and the next one starts below it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from linerate.cli.view.columns import (
    PATH_HEADINGS,
    PATH_NARROW,
    Column,
    columns_of,
    loaded_text,
    path_cells,
    place,
    started_line,
    volume_lines,
)
from linerate.cli.view.events import (
    AnyEvent,
    Figures,
    Happened,
    IntervalMeasured,
    PathFigures,
    RunNotice,
    RunStarted,
    StepEnded,
    StepStarted,
    VolumesFound,
)
from linerate.cli.view.resizable import LiveOnTerminal, ResizableLive
from linerate.quantity import duration_text

INTERVALS_SHOWN = 12
WIDE_TERMINAL = 125
LOADED_FROM_WIDTH = 100
"""From this width on, the volumes and the driver fit beside the progress."""
CURVE_WIDTH = 60
BAR_WIDTH, NARROW_BAR_WIDTH = 30, 15
_RELIEFS = ("session_back", "channel_back", "path_restored", "paths_back", "healed")
_CARRYING = ("active_optimized", "active_non_optimized", "standby", "mixed")
"""States of a path with which nothing is wrong."""
_RISING = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


class LiveView(LiveOnTerminal):
    """A table that renews itself on a terminal."""

    machine_readable = False

    def __init__(self, out: Console) -> None:
        self._out = out
        self._step: StepStarted | None = None
        self._step_began_s = 0.0
        self._paced = False
        self._intervals: deque[IntervalMeasured] = deque(maxlen=INTERVALS_SHOWN)
        self._rates: deque[float] = deque(maxlen=CURVE_WIDTH)
        self._left_s = 0.0
        """Of the whole run, from the end of this step on."""
        self._live = ResizableLive(self._render, out, refresh_per_second=4)

    def show(self, event: AnyEvent) -> None:
        """Renews the table, or prints above it what shall stay."""
        match event:
            case RunStarted():
                self._left_s = event.planned_s
                self._live.keep(Text(started_line(event)))
            case VolumesFound():
                for line in () if event.asked else volume_lines(event):
                    self._live.keep(Text(line))
            case RunNotice():
                self._live.keep(Text(f"note: {event.message}", style="yellow"))
            case StepStarted():
                self._begin(event)
            case IntervalMeasured():
                self._intervals.append(event)
                self._rates.append(event.figures.total.iops)
                self._live.refresh()
            case Happened():
                style = "green" if event.kind in _RELIEFS else "red"
                self._live.keep(Text(f"{event.at_s:8.3f} s  {place(event)}: {event.message}", style=style))
            case StepEnded():
                self._end(event)
            case _:
                pass  # the caller reports the end of a run, as table or message

    def _begin(self, event: StepStarted) -> None:
        self._step = event
        self._paced = event.paced
        self._step_began_s = self._out.get_time()
        self._left_s = max(self._left_s - event.warmup_s - event.elapsed_s, 0.0)
        self._intervals.clear()
        self._rates.clear()

    def _end(self, event: StepEnded) -> None:
        step, self._step = self._step, None
        if step is None:
            return
        self._live.refresh()  # takes the moving part away, which printing would leave where it is
        table = self._table([("average", event.figures, "bold")] if event.figures else [])
        style = {"complete": "green", "failed": "red", "interrupted": "yellow"}[event.state]
        self._live.keep(Text.assemble((event.state, style), f"  {step.banner.removeprefix('Starting ')}"))
        if event.figures:
            self._live.keep(table)
        if event.paths:
            self._live.keep(_path_table(event.paths, wide=self._is_wide))

    def _render(self) -> RenderableType:
        if self._step is None:
            return Text("")
        rows = [
            (
                f"{item.index + 1}{' warm-up' if item.warmup else ''}",
                item.figures,
                "dim" if item.warmup else "",
            )
            for item in self._intervals
        ]
        curve = self._curve()
        parts: list[RenderableType] = [Text(self._step.banner, style="bold"), self._progress(self._step)]
        parts.append(self._table(rows) if rows else Text("waiting for the first interval", style="dim"))
        if self._intervals and self._intervals[-1].paths:
            parts.append(_path_table(self._intervals[-1].paths, wide=self._is_wide))
        return Group(*parts, *([curve] if curve else []))

    def _progress(self, step: StepStarted) -> RenderableType:
        total_s = step.warmup_s + step.elapsed_s
        gone_s = min(self._out.get_time() - self._step_began_s, total_s)
        phase = "warm-up" if gone_s < step.warmup_s else "measuring"
        line = Table.grid(padding=(0, 1))
        step_s = max(total_s - gone_s, 0.0)
        left = f"{phase}, {duration_text(step_s)} left"
        if step.number < step.of:
            left += f"; run {duration_text(step_s + self._left_s)} left"
        bar_width = BAR_WIDTH if self._is_wide else NARROW_BAR_WIDTH
        cells: list[RenderableType] = [
            Text(f"step {step.number} of {step.of}"),
            ProgressBar(total=total_s, completed=gone_s, width=bar_width),
            Text(left, style="cyan"),
        ]
        if self._out.width >= LOADED_FROM_WIDTH:
            cells.append(Text(loaded_text(step), style="dim"))
        line.add_row(*cells)
        return line

    def _columns(self) -> Sequence[Column]:
        return columns_of(paced=self._paced, wide=self._is_wide)

    @property
    def _is_wide(self) -> bool:
        return self._out.width >= WIDE_TERMINAL

    def _table(self, rows: Sequence[tuple[str, Figures, str]]) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="cyan")
        table.add_column("interval\n", justify="right", min_width=10)
        for column in self._columns():
            table.add_column(f"{column.top}\n{column.bottom}", justify="right", min_width=column.width - 1)
        for label, figures, style in rows:
            table.add_row(label, *(column.cell(figures) for column in self._columns()), style=style)
        return table

    def _curve(self) -> Text | None:
        """The i/o rate of the latest intervals, from zero to the highest one."""
        if len(self._rates) < 2 or not self._out.encoding.startswith("utf"):
            return None
        top = max(self._rates) or 1.0
        steps = len(_RISING) - 1
        marks = "".join(_RISING[round(rate / top * steps)] for rate in self._rates)
        return Text.assemble(("  i/o rate ", "dim"), (marks, "green"), (f" max {top:.0f}", "dim"))


def _path_table(paths: Sequence[PathFigures], *, wide: bool) -> Table:
    shown = range(len(PATH_HEADINGS)) if wide else PATH_NARROW
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), header_style="cyan")
    for number in shown:
        heading = PATH_HEADINGS[number]
        table.add_column(
            heading if wide else heading.replace(" ", "\n").replace("requeued", "re-\nqueued"),
            justify="left" if number < 2 else "right",
            no_wrap=number > 0,
            vertical="bottom",
        )
    for path, cells in zip((*paths, None), path_cells(paths), strict=False):
        dead = path is not None and path.state not in _CARRYING
        words = cells if wide else tuple(cell.removeprefix("active_") for cell in cells)
        table.add_row(*(words[number] for number in shown), style="red" if dead else "")
    return table
