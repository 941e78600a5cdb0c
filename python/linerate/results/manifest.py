"""The manifest of a run directory: what ran, where, with which settings, and how it ended.

`manifest.json` is rewritten as a whole (new file, then rename) when a run starts, when a step starts or ends,
and when the run closes, so that a killed run leaves the last complete state behind. `FORMAT_VERSION` rises
only when an older reader would misunderstand a newer directory; additions that an old reader may ignore do
not raise it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from linerate.model import Model
from linerate.results.imported import GivenStep, ImportedRecord

FORMAT = "linerate-run"
FORMAT_VERSION = 3
"""2: the stamp and the severity between `valid` and `void` are called `caution`; format 1 called them `suspect`.

3: a run may be imported from another tool; its figures are in the manifest, and its tables are empty."""

State = Literal["running", "complete", "failed", "interrupted"]


def _since_format_2(word: Any) -> Any:
    """The word of today for one of format 1."""
    return "caution" if word == "suspect" else word


Stamp = Annotated[Literal["valid", "caution", "void"], BeforeValidator(_since_format_2)]
"""Of a whole result: to be used, to be used with the cautions that are listed, not to be used."""
Severity = Annotated[Literal["note", "caution", "void"], BeforeValidator(_since_format_2)]
"""Of one finding: known and harmless here; may shift a result, by as much as its effect says; makes it useless."""
FactValue = str | int | float | bool | None


class _Record(Model):
    model_config = ConfigDict(extra="ignore")


class WorkloadSource(_Record):
    """The file (or preset) that the user ran, with its text as it was."""

    name: str
    format: str = ""
    text: str = ""


class JobRecord(_Record):
    """A job of a fio job file: its name, its options as the file has them, and the streams that it became."""

    name: str
    options: dict[str, str] = Field(default_factory=dict)
    streams: tuple[str, ...] = ()


class IometerWorkerRecord(_Record):
    """A worker of an Iometer configuration: its stream, its access specification with the lines of the file, and its
    targets by volume, as the file names them."""

    stream: str
    specification: str
    lines: tuple[str, ...] = ()
    targets: dict[str, str] = Field(default_factory=dict)


class IometerRecord(_Record):
    """What Iometer's result file says of a run besides its figures; test_type is the number of `'Test Type`."""

    test_type: int = 0
    description: str = ""
    manager: str = ""
    workers: tuple[IometerWorkerRecord, ...] = ()


class StepRecord(_Record):
    """One step of the run: one vdbench RD at one point of its loops.

    `key` is unique in the run and names the step in every table and tag. `spec` is the RunSpec that the data
    plane got, without secrets; `facts` is what it read back at the start. `histogram_us` are the bucket limits of
    vdbench's histogram report, in microseconds; none: vdbench's own. `jobs` are those of a fio job file, `iometer`
    is what an Iometer configuration says of the step. `san` is the network under test and its settings as read back;
    `counters` is what hosts, ports, switches and arrays counted over the measured time, units in the names, a name in
    `_max` being a high-water mark. Both are empty if the network was not watched. `given` has the figures of a step of
    another tool, whose `spec` is empty.
    """

    key: str
    name: str
    label: str = ""
    for_loops: str = ""
    requested_rate: str = ""
    histogram_us: tuple[int, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    iometer: IometerRecord | None = None
    given: GivenStep | None = None
    spec: dict[str, Any] = Field(default_factory=dict)
    facts: dict[str, Any] = Field(default_factory=dict)
    san: dict[str, Any] = Field(default_factory=dict)
    counters: dict[str, float] = Field(default_factory=dict)
    started_at: datetime
    ended_at: datetime | None = None
    state: State = "running"
    reason: str = ""


class Planned(_Record):
    """What the run was to do when it began; a curve may leave steps out. `seconds` counts warm-up and pauses."""

    steps: int
    seconds: float


class Finding(_Record):
    """One doubt about the result: which rule, how grave, why, what it changes, and what to do.

    `effect` says what a caution may change and by how much; notes and void results have none.
    """

    rule: str
    severity: Severity
    reason: str
    effect: str = ""
    advice: str = ""
    step: str = ""


class Validity(_Record):
    """The stamp on a run and the findings behind it."""

    stamp: Stamp
    findings: tuple[Finding, ...] = ()

    @property
    def words(self) -> str:
        """The stamp in front of people."""
        return "valid with cautions" if self.stamp == "caution" else self.stamp


class FileRecord(_Record):
    """Size and SHA-256 of a data file when the run was closed."""

    bytes: int
    sha256: str


class Manifest(_Record):
    """Everything about a run that is not a measurement."""

    format: Literal["linerate-run"] = "linerate-run"
    format_version: int = FORMAT_VERSION
    run_id: str
    name: str
    state: State = "running"
    reason: str = ""
    started_at: datetime
    ended_at: datetime | None = None
    command: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, FactValue] = Field(default_factory=dict)
    workload: WorkloadSource
    imported: ImportedRecord | None = None
    planned: Planned | None = None
    steps: tuple[StepRecord, ...] = ()
    validity: Validity | None = None
    files: dict[str, FileRecord] = Field(default_factory=dict)
