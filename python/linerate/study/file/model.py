"""A study file as models: what may stand in it, with defaults.

    title = "Jumbo frames"
    san = "base-san"

    [[workload]]
    name = "seqread"
    file = "dell-nic/256k-seq-read.vdb"
    metric = "mib_s"

    [baseline]
    settings = { mtu = 1500 }

    [[case]]
    name = "jumbo"
    settings = { mtu = 9000 }
    claims = ["nic.jumbo.seqread"]

A case has the baseline's settings except those that it changes. Cases come one by one from `[[case]]`, or from
`[factors]` in every combination (or a fraction of them).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, WithJsonSchema

from linerate.backup import BackupPhase
from linerate.san import FaultTable
from linerate.scale import Axis
from linerate.study.model import SettingValue
from linerate.workload.spec import FrozenSpec
from linerate.workload.toml_fields import Bytes, Names, PositiveSeconds, Seconds

Name = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,_%=+/-]*$")]


def _flat(value: Any) -> Any:
    """`switch.flow_control = "pfc"` as written in TOML is a table in a table; here it is one name with a dot. A list
    (of paths) is one text."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, Any] = {}
    for name, one in value.items():
        if isinstance(one, dict):
            flat |= {f"{name}.{key}": what for key, what in _flat(one).items()}
        else:
            flat[name] = ", ".join(map(str, one)) if isinstance(one, list) else one
    return flat


_SETTINGS_SCHEMA = {
    "type": "object",
    "description": "setting = value; `linerate settings` lists the settings",
}
SettingsField = Annotated[dict[str, SettingValue], BeforeValidator(_flat), WithJsonSchema(_SETTINGS_SCHEMA)]
Levels = Annotated[tuple[SettingValue, ...], Field(min_length=2)]


class RealHostTable(FrozenSpec):
    """[[san.host]]: a host that exists."""

    name: Name
    ssh: str | None = None
    """[user@]address; this machine if neither this nor `reach` is given."""
    reach: tuple[str, ...] = ()
    """Words that run a command there when they stand before it, in place of ssh: ["ip", "netns", "exec", "h1"]."""
    python: str | None = Field(default=None, pattern=r"^[^-\s]\S*$")
    """The Python there that has Linerate; what `linerate hosts install` brought, else `python3`, if not given."""
    sudo: bool = False
    """Change settings through `sudo -n`: for a user other than root."""
    devices: tuple[str, ...] = Field(min_length=1)
    """Network devices that carry the storage traffic."""
    volumes: tuple[str, ...] = Field(min_length=1)
    """iSCSI URLs, one per volume; one with {n} or {n-1} in it means `count` volumes."""
    count: PositiveInt = 1
    """Number of volumes of a URL with {n}, numbered from 1."""


class SanTable(FrozenSpec):
    """[[san]]: a virtual SAN by its topology, or hosts that exist."""

    name: Name | None = None
    topology: str | None = None
    """A shipped topology by name, or the path of a topology file."""
    fabric: Literal["auto", "kernel", "user"] = "auto"
    clock: Literal["real", "virtual"] = "real"
    """virtual: no network; loads go straight onto the disks of its one array, in their modelled time."""
    settings: SettingsField = Field(default_factory=dict)
    """What is particular about it: these replace the baseline's; a case's own changes replace them."""
    control_address: str | None = None
    """This machine's address as the hosts reach it; the address of its name if not given."""
    control_ports: str | None = None
    """FIRST-LAST: the TCP ports of the control network that are used, here and on the hosts; free ones if not given."""
    host: tuple[RealHostTable, ...] = ()


class BackupTable(FrozenSpec):
    """[workload.backup]: a phase of an image backup (`linerate backup-load`), after those that it needs."""

    phase: BackupPhase
    """create, full, incremental or restore: its figures count."""
    image: Bytes
    """Size of the image: whole clusters of 64 KiB."""
    used_percent: Annotated[float, Field(gt=0, le=100)] = 60.0
    """Share of the source that is used."""
    changed_percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    """Share of the used part that changes before an incremental backup."""
    transfer: Bytes = 1 << 20
    """Longest write: whole clusters of 64 KiB."""
    flush: Bytes = 1 << 30
    """Data between two flushes."""


class WorkloadTable(FrozenSpec):
    """[[workload]]: one load."""

    name: Name
    title: str = ""
    san: str | None = None
    """The SAN on which it runs; the first one if not given."""
    file: str | None = None
    """A workload file (vdbench or TOML), beside the study file or shipped; none: LAN traffic alone."""
    run: str | None = None
    """Which run of the file, where it has several: its name, or of a sweep as in "read size=8k"."""
    outstanding: PositiveInt | None = None
    """I/Os in flight per volume; as the file says if not given."""
    size: Bytes | None = None
    """Used part of each volume; as the file says, or all of a smaller volume, if not given."""
    backup: BackupTable | None = None
    """In place of a file: a phase of an image backup."""
    lan: Names = ()
    """LAN streams of the topology that run beside it."""
    cases: Names = ("*",)
    """Cases that run under it beside the baseline, a trailing * as wildcard; all if not given."""
    metric: str | None = None
    """What decides: iops, mib_s, response_ms, lan_mib_s, ...; with [scale] the largest load decides."""
    elapsed: PositiveSeconds = 60.0
    """Measured time of a run."""
    interval: PositiveSeconds = 1.0
    """Of the run's counters; a shorter one shows more of what a fault does."""
    warm_up: Literal["steady"] | Seconds = 10.0
    """Time before the measured part; "steady": as long as the baseline takes to become steady, measured once."""
    warm_up_max: PositiveSeconds = 120.0
    """With "steady", the longest that is waited for it."""


class CaseTable(FrozenSpec):
    """[[case]]: what it changes in the baseline."""

    name: Name
    title: str = ""
    settings: SettingsField = Field(default_factory=dict)
    faults: tuple[FaultTable, ...] | None = None
    """What breaks while it runs, and when after the warm-up; as in the baseline if not given, [] for nothing."""
    workloads: Names = ("*",)
    """Names, a trailing * as wildcard; all if not given."""
    claims: tuple[str, ...] = ()
    """Published findings that it puts to the test against the baseline; for the baseline itself, as values."""
    source: str = ""
    """Where a publication describes it."""


class BaselineTable(CaseTable):
    """[baseline]: what every case is compared with."""

    name: Name = "baseline"


class ClaimTable(FrozenSpec):
    """[[claim]]: a published finding that another comparison than that with the baseline puts to the test."""

    id: str
    case: str
    against: str
    workloads: Names = ("*",)
    """Under which of those that the finding speaks of, a trailing * as wildcard; all if not given."""


class FactorialTable(FrozenSpec):
    """[factorial]: how the values of `[factors]` are combined."""

    fraction: PositiveInt = 1
    """1: every combination; 2, 4, ..: so many times fewer, for factors of two values each."""


class RepeatTable(FrozenSpec):
    """[repeat]: how often a case is measured."""

    blocks_min: int = Field(default=3, ge=1)
    """Every case runs in so many blocks."""
    blocks_max: int = Field(default=6, ge=1)
    """Cases whose comparison is undecided run in up to so many blocks."""
    budget: PositiveSeconds | None = None
    """No new block begins that would end later."""
    settle: Seconds = 2.0
    """Wait after a change of settings."""
    baselines: Literal[1, 2] = 2
    """Runs of the baseline in every block."""


class ScaleTable(FrozenSpec):
    """[scale]: each case is searched for the largest load that keeps a threshold of response time."""

    over: Axis = "threads"
    """What grows: threads (I/Os in flight per volume), volumes, rate (I/Os per second), or hosts."""
    until: str = "mean=20ms"
    """Threshold of response time: mean=20ms, p50=, p95= or p99=."""
    least: PositiveInt = 1
    """Smallest load."""
    most: PositiveInt | None = None
    """Largest load; 256, or all volumes or hosts, if not given."""
    repeats: int = Field(default=6, ge=2, le=50)
    """Most runs of a load that is hard to decide."""
    resolution_percent: float = Field(default=0.0, ge=0, le=50)
    """Gap at which a search ends."""
    down: bool = True
    """Measure a few loads once more after the highest one."""
    headroom: bool = True
    """Measure 70, 80 and 90 % of the rate at the largest load, with Poisson arrivals."""
    curve: tuple[PositiveInt, ...] = ()
    """Loads in rising order that are all measured, to judge whether the rate grows linearly."""
    curve_repeats: int = Field(default=4, ge=2, le=50)
    """Runs of each load of the curve."""
    linear_margin_percent: float = Field(default=10.0, gt=0, lt=100)
    """Growth is linear if the rate per thread (or host) stays within this of that of the curve's first load."""
    volumes_per_host: PositiveInt | None = None
    """Over hosts with clock = "virtual": the volumes of each host, which there is a share of the load."""


class QuickTable(FrozenSpec):
    """[quick]: what `--quick` makes of it."""

    workloads: Names = ("*",)
    """Those that it keeps, a trailing * as wildcard; all if not given."""

    elapsed: PositiveSeconds = 2.0
    warm_up: Seconds = 0.5
    settle: Seconds = 0.2
    blocks: PositiveInt = 3
    baselines: Literal[1, 2] | None = None
    """As in [repeat] if not given."""


class StudyFile(FrozenSpec):
    """A study file."""

    name: Name | None = None
    """The file's name if not given."""
    title: str
    description: str = ""
    seed: NonNegativeInt = 1
    """Same seed, same order of runs."""
    margin_percent: float = Field(default=5.0, gt=0, lt=100)
    """A relative difference below this does not matter."""
    san: Annotated[tuple[SanTable, ...], Field(min_length=1)]
    workload: Annotated[tuple[WorkloadTable, ...], Field(min_length=1)]
    baseline: BaselineTable = BaselineTable()
    case: tuple[CaseTable, ...] = ()
    claim: tuple[ClaimTable, ...] = ()
    factors: dict[str, Levels] = Field(default_factory=dict)
    """Settings with their values; the first value of each is the baseline's."""
    factorial: FactorialTable = FactorialTable()
    repeat: RepeatTable = RepeatTable()
    scale: ScaleTable | None = None
    """Search each case for the largest load that keeps a threshold."""
    quick: QuickTable = QuickTable()
