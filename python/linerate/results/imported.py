"""What a run directory says of a run of another tool: the tool, its file, and the figures that the file gives.

A run that was imported has no interval tables: the figures of its steps are those of the tool. A figure that the tool
does not give is None.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field

from linerate.model import Model


class _Given(Model):
    model_config = ConfigDict(extra="ignore")


class GivenFigures(_Given):
    """Reads, writes or both over the measured time of a step.

    `mib_s` counts 2^20 bytes. Times are from submit to completion, in ms. `percentiles_ms` has the percent as text
    (`99.9`) -> ms. `errors` counts failed I/Os.
    """

    ios: int
    bytes: int
    iops: float
    mib_s: float
    mean_ms: float | None = None
    stddev_ms: float | None = None
    max_ms: float | None = None
    errors: int | None = None
    percentiles_ms: dict[str, float] = Field(default_factory=dict)


class GivenStep(_Given):
    """One step as the tool reports it.

    `seconds` is the measured time. CPU percentages are of all CPUs of the load host. `load` is what the tool was
    asked for, by the names of its own options: it identifies the workload in a history.
    """

    seconds: float
    total: GivenFigures
    read: GivenFigures | None = None
    write: GivenFigures | None = None
    read_percent: float | None = None
    outstanding: int | None = None
    cpu_busy_percent: float | None = None
    cpu_system_percent: float | None = None
    load: dict[str, str] = Field(default_factory=dict)


class ImportedRecord(_Given):
    """Where the figures of an imported run come from.

    `file` is a name without its folder. `figures` are the names of `GivenFigures` and `GivenStep` that the file gives
    in every step; `percentiles` are those that every step has over reads and writes, in percent.
    """

    tool: str
    version: str = ""
    file: str
    sha256: str
    figures: tuple[str, ...] = ()
    percentiles: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The tool with its version."""
        return f"{self.tool} {self.version}".strip()
