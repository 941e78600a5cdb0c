"""Run directories: what one `linerate run` measured, kept so that it can be judged years later.

`RunWriter` writes one while the run proceeds; `RunDirectory` reads it back.
"""

from typing import TYPE_CHECKING, Any

from linerate.results.environment import collect_environment
from linerate.results.errors import NotARunError, RunClosedError, RunDamagedError, RunExistsError
from linerate.results.histogram import LatencyHistogram
from linerate.results.imported import GivenFigures, GivenStep, ImportedRecord
from linerate.results.manifest import (
    Finding,
    IometerRecord,
    IometerWorkerRecord,
    JobRecord,
    Manifest,
    Planned,
    Stamp,
    State,
    StepRecord,
    Validity,
    WorkloadSource,
)
from linerate.results.sample import (
    ArrayRow,
    CounterRow,
    IntervalSample,
    LatencySample,
    PathRow,
    TimedEvent,
    Usage,
    interval_from_core,
)
from linerate.results.writer import RunWriter

if TYPE_CHECKING:
    from linerate.results.reader import RunDirectory

__all__ = [
    "ArrayRow",
    "CounterRow",
    "Finding",
    "GivenFigures",
    "GivenStep",
    "ImportedRecord",
    "IntervalSample",
    "IometerRecord",
    "IometerWorkerRecord",
    "JobRecord",
    "LatencyHistogram",
    "LatencySample",
    "Manifest",
    "NotARunError",
    "PathRow",
    "Planned",
    "RunClosedError",
    "RunDamagedError",
    "RunDirectory",
    "RunExistsError",
    "RunWriter",
    "Stamp",
    "State",
    "StepRecord",
    "TimedEvent",
    "Usage",
    "Validity",
    "WorkloadSource",
    "collect_environment",
    "interval_from_core",
]


def __getattr__(name: str) -> Any:
    """Loads the reader when it is first asked for: a load host has no polars."""
    if name != "RunDirectory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from linerate.results.reader import RunDirectory

    return RunDirectory
