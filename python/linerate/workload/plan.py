"""A plan: the runs that a workload file asks for, in order.

Most runs are known beforehand. Two kinds are not: a point of a curve, whose rate is a percentage of what the
curve's maximum run achieved, and a rate given as a percentage of the last maximum. So a plan is walked with
results: `next(None)` gives the first run, `next(result)` the one after it, None the end. `steps()` shows all
runs without results, for a dry run and for the time a plan will take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from linerate.workload.hosts import LoadHosts
from linerate.workload.spec import RATE_IOPS_MAX, OpenArrival, RunSpec, StreamSpec

if TYPE_CHECKING:
    from linerate.workload.trace.records import CompiledTrace

RUNS_MAX = 10_000
"""Runs of one plan: a week of runs of a minute. Lists that are multiplied soon come to years."""
UNTIL_DONE_S = 360_000.0
"""Elapsed time of a run that ends when its work is done: longer than any."""
UNCONTROLLED = "Uncontrolled MAX"
CONTROLLED = "Controlled MAX"


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a finished run achieved: all that the rest of a plan may depend on."""

    iops: float
    response_ms_mean: float
    per_stream_iops: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileNotice:
    """Something in a file that was read otherwise than its author may expect."""

    where: str
    """`file:line`."""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of a fio file in a run: its options as the file has them, and the streams that it became."""

    name: str
    options: Mapping[str, str]
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IometerWorker:
    """A worker of an Iometer configuration in a run. lines: of its access specification, as in the file. targets: by
    volume, as the file names them. manager: as a label of a host."""

    stream: str
    specification: str
    lines: tuple[str, ...]
    targets: Mapping[str, str]
    manager: str = ""


@dataclass(frozen=True, slots=True)
class IometerTest:
    """What Iometer's result file says of a run. test_type: the number of `'Test Type`."""

    test_type: int
    description: str
    manager: str
    workers: tuple[IometerWorker, ...]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a plan, with the facts that a banner and a report show beside it."""

    spec: RunSpec
    name: str
    """Run definition, as vdbench prints it: `rd1`, or `rd1_(50%)` for a curve point."""
    label: str
    """Unique in the plan: the name and the loop values, `rd1 threads=8 xfersize=4k`."""
    loops: tuple[tuple[str, str], ...] = ()
    """Loop values of this run in loop order, as (keyword, text)."""
    rate_text: str = UNCONTROLLED
    """Requested rate: `Uncontrolled MAX`, `Controlled MAX`, `Uncontrolled curve`, `Controlled curve` or a
    number."""
    rate_is_pending: bool = False
    """The rate depends on an earlier result, which is not known yet: `spec.arrival` is then a closed
    run."""
    timing_text: str = ""
    """Times as the file asks for them, for the banner: `elapsed=60 warmup=15`; empty: as in `spec`."""
    pause_s: float = 0.0
    """Wait this long before the run starts."""
    start_commands: tuple[str, ...] = ()
    end_commands: tuple[str, ...] = ()
    warnings: tuple[FileNotice, ...] = ()
    """What concerns this run alone; what concerns the file is in `RunPlan.warnings`."""
    error_limit: int | None = None
    """Number of I/O errors that ends the run; None: no limit."""
    histogram_us: tuple[int, ...] = ()
    """Bucket limits for a histogram in vdbench's form."""
    jobs: tuple[PlannedJob, ...] = ()
    """The jobs of a fio file that this run does."""
    iometer: IometerTest | None = None
    """Of a configuration of Iometer."""
    trace: CompiledTrace | None = None
    """The trace that it replays; its file is there as long as this is."""
    ends_when_done: bool = False
    """Its work ends it, at a time that is not known before; `spec.elapsed_s` is then longer than it takes."""
    source: str = ""
    """`file:line` of the run's definition."""

    @property
    def banner(self) -> str:
        """The line that vdbench prints when a run starts."""
        loops = " ".join(f"{keyword}={text}" for keyword, text in self.loops) or "None"
        warmup = f" warmup={self.spec.warmup_s:g}" if self.spec.warmup_s else ""
        timing = self.timing_text or f"elapsed={self.spec.elapsed_s:g}{warmup}"
        return f"Starting RD={self.name}; I/O rate: {self.rate_text}; {timing}; For loops: {loops}"

    @property
    def average_label(self) -> str:
        """The measured intervals as vdbench labels their average: `avg_2-3`, `avg_16-75`."""
        first = round(self.spec.warmup_s / self.spec.interval_s) + 1
        last = round((self.spec.warmup_s + self.spec.elapsed_s) / self.spec.interval_s)
        return f"avg_{first}-{last}"


@dataclass(frozen=True, slots=True)
class Rate:
    """Where a step's rate comes from. `value` is I/Os per second for fixed, percent for percent and
    curve_point."""

    kind: Literal["max", "fixed", "percent", "curve_max", "curve_point"] = "max"
    value: float = 0.0
    process: Literal["deterministic", "poisson", "uniform"] = "poisson"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A run whose rate may still be open."""

    run: PlannedRun
    rate: Rate = Rate()
    stop_response_ms: float | None = None
    """A curve point slower than this ends the plan (vdbench: stopcurve)."""


class RunPlan:
    """The runs of a workload file. Walk it with `next`; `rewind` starts over."""

    def __init__(
        self,
        name: str,
        steps: Sequence[PlanStep],
        warnings: Sequence[FileNotice] = (),
        *,
        start_commands: Sequence[str] = (),
        end_commands: Sequence[str] = (),
        hosts: LoadHosts | None = None,
        managers: LoadHosts | None = None,
    ) -> None:
        self.name = name
        self.warnings: tuple[FileNotice, ...] = tuple(warnings)
        self.start_commands: tuple[str, ...] = tuple(start_commands)
        """Commands before the first run."""
        self.end_commands: tuple[str, ...] = tuple(end_commands)
        """Commands after the last run."""
        self.hosts = hosts
        """The hosts that the file names for its load; None: it names none but this machine."""
        self.managers = managers
        """What each host of the file did, without its address (managers of Iometer): as many hosts of the command line
        may do the same, else this one does all of it."""
        self._steps: tuple[PlanStep, ...] = tuple(steps)
        self.rewind()

    def __len__(self) -> int:
        """Number of steps, before any curve point is dropped."""
        return len(self._steps)

    @property
    def plain_steps(self) -> tuple[PlanStep, ...]:
        """The steps with the rules for their rates, to build another plan from."""
        return self._steps

    def changed(
        self, change: Callable[[PlannedRun], PlannedRun], notices: Sequence[FileNotice] = ()
    ) -> RunPlan:
        """This plan with every run changed, at its first run; `notices` come before its own."""
        steps = [replace(step, run=change(step.run)) for step in self._steps]
        return RunPlan(
            self.name,
            steps,
            (*notices, *self.warnings),
            start_commands=self.start_commands,
            end_commands=self.end_commands,
            hosts=self.hosts,
            managers=self.managers,
        )

    @property
    def seconds(self) -> float:
        """Time that all steps take, with pauses and warm-up; curve points that are dropped take less. Runs that end
        when their work is done count with their pause alone."""
        return sum(
            run.pause_s + (0.0 if run.ends_when_done else run.spec.warmup_s + run.spec.elapsed_s)
            for run in self.steps()
        )

    def rewind(self) -> None:
        """Forgets all results; the next call of `next` gives the first run."""
        self._position = 0
        self._current: PlanStep | None = None
        self._last_max: StepResult | None = None
        self.stopped = ""
        """Why runs were left out, once a slow point of a curve has ended the plan; else empty."""

    def steps(self) -> Iterator[PlannedRun]:
        """All runs without results; those with a rate that needs one are marked `rate_is_pending`."""
        for step in self._steps:
            yield replace(step.run, rate_is_pending=step.rate.kind in ("percent", "curve_point"))

    def next(self, previous: StepResult | None) -> PlannedRun | None:
        """The next run, given the result of the one before (None: first run, or the run before has
        failed)."""
        if previous is not None and self._current is not None and self._note(self._current, previous):
            self._position = len(self._steps)
        while self._position < len(self._steps):
            step = self._steps[self._position]
            self._position += 1
            run = self._resolve(step)
            if run is not None:
                self._current = step
                if step.rate.kind == "curve_max":
                    self._last_max = None  # should it fail, its points have nothing to refer to
                return run
        self._current = None
        return None

    def _note(self, step: PlanStep, result: StepResult) -> bool:
        """Remembers a result; True if it ends the plan."""
        if step.rate.kind in ("max", "curve_max"):
            self._last_max = result
        if step.rate.kind == "curve_point" and step.stop_response_ms is not None:
            slow = result.response_ms_mean > step.stop_response_ms
            if slow and self._position < len(self._steps):
                self.stopped = self._why_stopped(step, result.response_ms_mean)
            return slow
        return False

    def _why_stopped(self, step: PlanStep, response_ms: float) -> str:
        left = len(self._steps) - self._position
        what = "the last run is left out" if left == 1 else f"the other {left:,} runs are left out"
        limit = f"stopcurve={step.stop_response_ms:g}"
        return f"{limit}: {step.run.label} had a mean response time of {response_ms:.3g} ms, so {what}"

    def _resolve(self, step: PlanStep) -> PlannedRun | None:
        if step.rate.kind in ("max", "curve_max"):
            return step.run
        if step.rate.kind == "fixed":
            return _at_rate(step, step.rate.value, None)
        if self._last_max is None:
            return None
        if step.rate.kind == "percent":
            rate_iops = min(self._last_max.iops * step.rate.value / 100, RATE_IOPS_MAX)
            return _at_rate(step, rate_iops, None) if rate_iops > 0 else None
        target = curve_target_iops(self._last_max.iops, step.rate.value)
        return None if target is None else _at_rate(step, min(target, RATE_IOPS_MAX), self._last_max)


def curve_target_iops(max_iops: float, percent: float) -> float | None:
    """Rate of a curve point by vdbench's rule: rounded up to 100 above 1000, else up to 10; None: too small
    to run."""
    target = max_iops * percent / 100
    step = 100 if target > 1000 else 10
    rounded = math.ceil(round(target / step, 9)) * step
    return float(rounded) if rounded >= 10 else None


def _at_rate(step: PlanStep, rate_iops: float, observed: StepResult | None) -> PlannedRun:
    """The step at an open rate. A maximum run without shares leaves its observed shares to the points of its
    curve."""
    spec = step.run.spec
    update: dict[str, object] = {
        "arrival": OpenArrival(process=step.rate.process, rate_iops=rate_iops),
        "shares": "controlled",
    }
    if observed is not None and spec.shares == "uncontrolled":
        update["streams"] = _with_observed_shares(spec.streams, observed)
    return replace(step.run, spec=spec.model_copy(update=update), rate_text=f"{rate_iops:.10g}")


def _with_observed_shares(streams: tuple[StreamSpec, ...], observed: StepResult) -> tuple[StreamSpec, ...]:
    """A stream that did no I/O at the maximum has no share and is left out."""
    rates = {stream.name: observed.per_stream_iops.get(stream.name, 0.0) for stream in streams}
    total = sum(rates.values())
    if total <= 0:
        return streams
    return tuple(
        stream.model_copy(update={"share_percent": rates[stream.name] / total * 100})
        for stream in streams
        if rates[stream.name] > 0
    )
