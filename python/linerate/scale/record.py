"""scale.json: what a search was asked for and every run that it has made, written after each run.

Everything else follows from it: the answer, the headroom, the laws, the report.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict

from linerate.model import Model
from linerate.results.files import open_record, write_record
from linerate.scale.procedure import Parts, Procedure
from linerate.scale.reached import Axis, Reached
from linerate.scale.search import SearchLimits
from linerate.scale.threshold import Threshold

SCALE = "scale.json"
FORMAT_VERSION = 1


class ScaleRecord(Model):
    """A search. The directories of its runs are below its own."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["linerate-scale"] = "linerate-scale"
    format_version: int = FORMAT_VERSION
    name: str
    """Of the workload."""
    started_at: datetime
    command: tuple[str, ...] = ()
    axis: Axis
    threshold: Threshold
    limits: SearchLimits
    parts: Parts
    runs: tuple[Reached, ...] = ()

    def with_run(self, reached: Reached, directory: Path) -> ScaleRecord:
        """With one more run."""
        below = str(Path(reached.directory).relative_to(directory))
        return self.model_copy(update={"runs": (*self.runs, reached.model_copy(update={"directory": below}))})

    def write(self, directory: Path) -> None:
        """Into the search's directory, in place of an earlier one. Raises HostError when it cannot be written."""
        write_record(directory / SCALE, self)

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Raises UserError for a directory that is no search, or a damaged one."""
        wanted = "give a directory that `linerate scale` wrote"
        return open_record(cls, directory / SCALE, FORMAT_VERSION, wanted)

    @property
    def procedure(self) -> Procedure:
        """As far as it has come."""
        procedure = Procedure(self.limits, self.parts)
        for run in self.runs:
            procedure.record(run)
        return procedure
