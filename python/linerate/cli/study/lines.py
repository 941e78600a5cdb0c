"""A study's progress as lines: for pipes, logs and terminals that cannot move their cursor."""

from __future__ import annotations

from rich.console import Console

from linerate.analysis.verdict import find_metric
from linerate.cli.study.comparison import counted, decided, progress_line
from linerate.cli.study.show import blocks_text, certainty_text
from linerate.plural import plural
from linerate.quantity import duration_text, span_text
from linerate.scale.reached import load_text as amount
from linerate.scale.words import run_text
from linerate.study import Study, StudyDirectory
from linerate.study.events import BlockBegan, StepBegan, StudyBegan, StudyEvent
from linerate.study.journal import CaseSkipped, LoadMeasured, SanFacts, StepDone, WarmUpFound
from linerate.study.model import Scale
from linerate.study.remaining import study_progress

_NAMES_WIDTH = 44


class StudyLines:
    """A line for each run, and after each block what is decided so far."""

    def __init__(self, directory: StudyDirectory, out: Console) -> None:
        self._directory = directory
        self._study = directory.study
        self._out = out
        self._begun: StepBegan | None = None
        self._block = 0

    def show(self, event: StudyEvent) -> None:
        """One line per event that a person wants to see."""
        match event:
            case StudyBegan():
                for line in began_lines(event, self._directory):
                    self._say(line)
            case BlockBegan():
                self._after_block()
                self._block = event.block
                self._say(
                    f"\nblock {event.block}: {plural(event.steps, 'run')}, {duration_text(event.seconds)}"
                )
            case StepBegan():
                self._begun = event
                if self._study.scale is not None:
                    self._say(f"  search {event.number} of {event.of}: {event.case}, {event.workload}")
            case StepDone():
                self._say(self._step(event))
            case _:
                for line in notice_lines(event):
                    self._say(line)
        self._directory = with_entry(self._directory, event)

    def _after_block(self) -> None:
        if self._block:
            self._say(f"after block {self._block}: {counted(self._directory, decided(self._directory))}")
            self._say(progress_line(study_progress(self._directory)))

    def _step(self, step: StepDone) -> str:
        at = f"{self._begun.number:>4}/{self._begun.of}" if self._begun else ""
        return f"{at}  {step_text(self._study, step)}"

    def _say(self, line: str) -> None:
        self._out.print(line, soft_wrap=True, markup=False)


def began_lines(event: StudyBegan, directory: StudyDirectory) -> list[str]:
    """Where the results go, how much is run and how long that takes."""
    blocks = blocks_text(event.blocks_min, event.blocks_max)
    times = span_text(event.least_s, event.most_s)
    lines = [
        f"study directory {event.directory}",
        f"{event.cases} cases, {plural(event.workloads, 'workload')}, {blocks}: takes {times}",
    ]
    study = directory.study
    return [*lines, f"quick: {certainty_text(study)}"] if study.quick and directory.search is None else lines


def notice_lines(event: StudyEvent) -> list[str]:
    """What is to be said once: a SAN is up, a warm-up was found, a case cannot be had."""
    match event:
        case SanFacts():
            fabric = event.facts.get("fabric")
            is_up = "is computed, in virtual time" if event.facts.get("clock") == "virtual" else "is up"
            lacking = [f"  {event.san} has no {name}: {reason}" for name, reason in event.lacking.items()]
            return [f"  {event.san} {is_up}" + (f", {fabric} fabric" if fabric else ""), *lacking]
        case WarmUpFound():
            how = "steady after" if event.steady else "not steady, and no longer waited for than"
            return [f"  warm-up of {event.workload}: {how} {event.seconds:g} s"]
        case CaseSkipped():
            return [f"  {event.case} on {event.san}: not applicable: {event.reason}"]
        case LoadMeasured():
            return [load_text(event)]
        case _:
            return []  # the caller reports how it ended


def step_text(study: Study, step: StepDone) -> str:
    """A run and its figure, or why it has none."""
    name = f"{step.case}{' (again)' if step.replica > 1 else ''}, {step.workload}"
    if step.state == "failed":
        return f"{name:<{_NAMES_WIDTH}} failed: {step.reason}"
    mark = f"  void: {step.reason}" if step.state == "void" else ""
    return f"{name:<{_NAMES_WIDTH}} {figure(study, step)}{mark}"


def load_text(entry: LoadMeasured) -> str:
    """A run of a search."""
    if entry.state == "void":
        return f"  {entry.reached.load:>8,}  void: {entry.reason}"
    return run_text(entry.reached)


def figure(study: Study, step: StepDone) -> str:
    """The figure that decides, with its unit."""
    if study.scale is not None:
        return _largest_load(study.scale, step)
    metric = find_metric(study.workload(step.workload).metric)
    value = step.values.get(metric.name)
    return f"{value:>12,.1f} {metric.unit}" if value is not None else f"{'-':>12}"


def _largest_load(scale: Scale, step: StepDone) -> str:
    """The ends between which the largest load of a search is: `20 to 22 threads`."""
    kept, missed = step.values.get("load_kept"), step.values.get("load_missed")
    if kept is None:
        return f"below {amount(scale.over, round(missed))}" if missed is not None else "not known"
    if missed is None:
        return f"at least {amount(scale.over, round(kept))}"
    least, most = round(kept), round(missed - 1)
    return f"{f'{least:,} to ' if least < most else ''}{amount(scale.over, most)}"


def with_entry(directory: StudyDirectory, event: StudyEvent) -> StudyDirectory:
    """The study directory with one more entry of its journal, if the event is one."""
    if isinstance(event, StudyBegan | BlockBegan | StepBegan):
        return directory
    return StudyDirectory(directory.path, directory.record, (*directory.entries, event))
