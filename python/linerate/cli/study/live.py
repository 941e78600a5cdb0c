"""A study on a terminal: how far it is, the run under way, and the comparison as it becomes decided."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from linerate.cli.study.comparison import Decided, by_case, cell, counted, decided, verdict_style
from linerate.cli.study.lines import began_lines, figure, load_text, notice_lines, step_text, with_entry
from linerate.cli.view.resizable import LiveOnTerminal, ResizableLive
from linerate.quantity import duration_text, span_text
from linerate.study import StudyDirectory
from linerate.study.events import BlockBegan, StepBegan, StudyBegan, StudyEvent
from linerate.study.journal import LoadMeasured, SessionEnded, StepDone
from linerate.study.remaining import study_progress

_AROUND_TABLE = 6
"""Lines of the moving part beside the rows of cases."""
_BAR_WIDTH = 30


class StudyLive(LiveOnTerminal):
    """A picture that renews itself every second: more often would take CPU time from the load."""

    def __init__(self, directory: StudyDirectory, out: Console) -> None:
        self._directory = directory
        self._study = directory.study
        self._out = out
        self._block: BlockBegan | None = None
        self._begun: StepBegan | None = None
        self._begun_s = 0.0
        self._latest: dict[tuple[str, str], str] = {}
        self._decided: Decided = decided(directory)
        self._progress = study_progress(directory)
        self._live = ResizableLive(self._render, out, refresh_per_second=1)

    def show(self, event: StudyEvent) -> None:
        """Renews the picture, or prints above it what shall stay."""
        self._directory = with_entry(self._directory, event)
        match event:
            case StudyBegan():
                self._say(*began_lines(event, self._directory))
            case BlockBegan():
                self._block = event
                self._decided = decided(self._directory)
            case StepBegan():
                self._begun, self._begun_s = event, self._out.get_time()
            case StepDone():
                self._done(event)
            case LoadMeasured():
                self._latest[event.case, event.workload] = load_text(event).strip()
            case _:
                if isinstance(event, SessionEnded):
                    self._decided = decided(self._directory)
                self._say(*notice_lines(event))
        self._live.refresh()

    def _done(self, step: StepDone) -> None:
        self._begun = None
        self._progress = study_progress(self._directory)
        if step.state == "complete":
            self._latest[step.case, step.workload] = figure(self._study, step).strip()
        else:
            self._say(step_text(self._study, step), style="yellow" if step.state == "void" else "red")

    def _say(self, *lines: str, style: str = "") -> None:
        for line in lines:
            self._live.keep(Text(line, style=style))

    def _render(self) -> RenderableType:
        if self._block is None:
            return Text("")
        so_far = f"so far: {counted(self._directory, self._decided)}"
        return Group(self._head(self._block), self._table(), Text(so_far))

    def _head(self, block: BlockBegan) -> RenderableType:
        run_s = self._out.get_time() - self._begun_s if self._begun else 0.0
        left, share = self._progress.left_s, self._progress.share
        whole_s = self._progress.spent_s + left.most_s
        if whole_s > 0:
            share = min((self._progress.spent_s + run_s) / whole_s, 1.0)
        line = Table.grid(padding=(0, 1))
        repeat = self._study.repeat
        line.add_row(
            Text(f"block {block.block} of {_range(repeat.blocks_min, repeat.blocks_max, block.block)}"),
            ProgressBar(total=1.0, completed=share, width=_BAR_WIDTH),
            Text(f"{share:.0%}"),
            Text(f"{span_text(_left(left.least_s, run_s), _left(left.most_s, run_s))} left", style="cyan"),
        )
        now = "between two runs"
        if self._begun is not None:
            one = self._begun
            now = f"run {one.number} of {one.of}: {one.case}, {one.workload} on {one.san}, {duration_text(run_s)}"
        return Group(line, Text(now, style="dim", no_wrap=True, overflow="ellipsis"))

    def _table(self) -> Table:
        """Cases below each other, workloads side by side; of many cases those that fit."""
        workloads = [one.name for one in self._study.workloads]
        cases = [one.name for one in self._study.cases]
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("case", no_wrap=True)
        for name in workloads:
            table.add_column(name, no_wrap=True)
        rows = by_case(self._decided, cases, workloads)
        room = max(self._out.height - _AROUND_TABLE, 1)
        for case, effects in list(zip(cases, rows, strict=True))[:room]:
            cells = [
                Text(cell(effect), style=verdict_style(effect.verdict))
                if effect is not None
                else Text(self._latest.get((case, workload), "-"), style="dim")
                for workload, effect in zip(workloads, effects, strict=True)
            ]
            table.add_row(Text(case), *cells)
        if len(cases) > room:
            table.add_row(Text(f"and {len(cases) - room} more", style="dim"))
        return table


def _left(seconds: float, run_s: float) -> float:
    return max(seconds - run_s, 0.0)


def _range(least: int, most: int, now: int) -> str:
    return str(most) if least == most or now > least else f"{least} to {most}"
