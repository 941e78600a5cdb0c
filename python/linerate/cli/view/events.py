"""The events of a run, as shown by every view and as printed by --json: one JSON object per line.

`linerate schema events` prints the JSON Schema. Fields are only added within a version. Units end the names; MB/s is
`mib_s`, 2^20 bytes per second; latencies are service times unless the name says response.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from linerate.analysis import OpSummary, StepSummary
from linerate.errors import LinerateError

VERSION: Literal["linerate.events/1"] = "linerate.events/1"

Ending = Literal["complete", "failed", "interrupted"]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Latency(_Event):
    """I/Os of one direction, or of both."""

    iops: float
    mib_s: float
    mean_ms: float
    max_ms: float
    stddev_ms: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    response_mean_ms: float
    """From the intended start; differs from mean_ms in an open loop only."""
    ios: int
    bytes: int
    errors: int


class Figures(_Event):
    """What was measured over an interval or a step."""

    total: Latency
    read: Latency | None = None
    write: Latency | None = None
    queue_depth: float
    """I/Os in flight, mean."""
    cpu_percent: float | None
    """User and system time of the whole host, of all its CPUs."""
    cpu_system_percent: float | None
    retransmits: int
    """TCP segments sent again."""


class RunStarted(_Event):
    """A run directory was made."""

    schema_: Literal["linerate.events/1"] = Field(
        default=VERSION, alias="schema", serialization_alias="schema"
    )
    type: Literal["run_started"] = "run_started"
    name: str
    directory: str
    steps: int
    """Steps planned; a curve may drop some."""


class Notice(_Event):
    """Something the user should know before trusting the result."""

    type: Literal["notice"] = "notice"
    message: str


class StepStarted(_Event):
    """A step's volumes are open and its load runs."""

    type: Literal["step_started"] = "step_started"
    step: str
    number: int
    of: int
    banner: str
    """As vdbench prints it."""
    warmup_s: float
    elapsed_s: float
    interval_s: float
    volumes: int
    driver: str
    """io_uring or epoll."""


class IntervalMeasured(_Event):
    """An interval is over."""

    type: Literal["interval"] = "interval"
    step: str
    index: int
    start_s: float
    end_s: float
    warmup: bool
    figures: Figures


class Happened(_Event):
    """Something happened to a volume or to the run."""

    type: Literal["event"] = "event"
    step: str
    at_s: float
    kind: str
    volume: str
    message: str
    blame: str


class StepEnded(_Event):
    """A step is over; its figures leave the warm-up out."""

    type: Literal["step_ended"] = "step_ended"
    step: str
    state: Ending
    reason: str = ""
    figures: Figures | None = None


class RunEnded(_Event):
    """The run directory is closed."""

    type: Literal["run_ended"] = "run_ended"
    state: Ending
    reason: str = ""
    stamp: Literal["valid", "suspect", "void"] | None = None
    findings: tuple[str, ...] = ()
    directory: str
    report: str | None = None
    exit_code: int


class Failed(_Event):
    """Nothing can go on: what, where, and what to do."""

    type: Literal["error"] = "error"
    message: str
    hint: str
    blame: str
    exit_code: int

    @classmethod
    def of(cls, error: LinerateError) -> Failed:
        """From the error that ended the command."""
        return cls(message=error.message, hint=error.hint, blame=error.blame, exit_code=error.exit_code)


AnyEvent = RunStarted | Notice | StepStarted | IntervalMeasured | Happened | StepEnded | RunEnded | Failed
LINES: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="type")])


def figures(summary: StepSummary) -> Figures:
    """The shown part of a summary."""
    return Figures(
        total=_latency(summary.total),
        read=_latency(summary.read) if summary.read else None,
        write=_latency(summary.write) if summary.write else None,
        queue_depth=summary.queue_depth,
        cpu_percent=summary.usage.cpu_busy_percent,
        cpu_system_percent=summary.usage.cpu_system_percent,
        retransmits=summary.usage.retransmits,
    )


def _latency(op: OpSummary) -> Latency:
    quantile = {item.q: item.value_ms for item in op.quantiles}
    return Latency(
        iops=op.iops,
        mib_s=op.mib_s,
        mean_ms=op.mean_ms,
        max_ms=op.max_ms,
        stddev_ms=op.stddev_ms,
        p50_ms=quantile.get(0.5),
        p95_ms=quantile.get(0.95),
        p99_ms=quantile.get(0.99),
        p999_ms=quantile.get(0.999),
        response_mean_ms=op.response_mean_ms,
        ios=op.ios,
        bytes=op.bytes,
        errors=op.errors,
    )
