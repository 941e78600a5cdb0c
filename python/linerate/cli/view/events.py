"""The events of a command, as shown by every view and as printed by --json: one JSON object per line.

Those of `linerate.run`, and how the command ended. `linerate schema events` prints the JSON Schema. Fields are only
added within a version.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from linerate.errors import LinerateError
from linerate.results import Finding
from linerate.run.events import (
    Ending,
    Figures,
    Happened,
    IntervalMeasured,
    LatencyRecord,
    PathFigures,
    Record,
    RunNotice,
    RunStarted,
    StepEnded,
    StepStarted,
    VolumeFound,
    VolumesFound,
)

__all__ = [
    "LINES",
    "AnyEvent",
    "Failed",
    "Figures",
    "Happened",
    "IntervalMeasured",
    "LatencyRecord",
    "PathFigures",
    "RunEnded",
    "RunNotice",
    "RunStarted",
    "StepEnded",
    "StepStarted",
    "VolumeFound",
    "VolumesFound",
]


class RunEnded(Record):
    """The run directory is closed."""

    type: Literal["run_ended"] = "run_ended"
    state: Ending
    reason: str = ""
    stamp: Literal["valid", "caution", "void"] | None = None
    findings: tuple[Finding, ...] = ()
    directory: str
    report: str | None = None
    exit_code: int


class Failed(Record):
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


AnyEvent = (
    RunStarted
    | VolumesFound
    | RunNotice
    | StepStarted
    | IntervalMeasured
    | Happened
    | StepEnded
    | RunEnded
    | Failed
)
LINES: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="type")])
