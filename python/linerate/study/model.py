"""A study, resolved: what is compared with what, under which loads, where, and how often. Pure data, kept as JSON.

`reader` makes one from a file. Nothing here knows a clock, a network or a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from linerate.backup import BackupPhase, BackupSpec
from linerate.san import Topology
from linerate.scale import Axis, Curve, Parts, SearchLimits, Threshold
from linerate.scale.search import ALPHA
from linerate.setting import Value
from linerate.workload.spec import FrozenSpec, RunSpec

SettingValue = Value
Settings = Mapping[str, SettingValue]


class RealHost(FrozenSpec):
    """A host that exists: this machine, or one that is reached by SSH or another command."""

    name: str
    ssh: str | None = None
    """[user@]address; null is this machine, unless there is `reach`."""
    reach: tuple[str, ...] = ()
    """The words that stand before a command to run it there, in place of ssh."""
    python: str | None = None
    """The Python there that has Linerate; null: what `linerate hosts install` brought, else `python3`."""
    sudo: bool = False
    """Settings are changed through `sudo -n`."""
    devices: tuple[str, ...] = Field(min_length=1)
    """Network devices that carry the storage traffic; settings are applied to these."""
    volumes: tuple[str, ...] = Field(min_length=1)
    """iSCSI URLs, one per volume."""

    @property
    def is_here(self) -> bool:
        """It is this machine."""
        return self.ssh is None and not self.reach


class San(FrozenSpec):
    """Where a part of the study runs: a topology that a lab builds, or hosts that exist."""

    name: str
    topology: Topology | None = None
    hosts: tuple[RealHost, ...] = ()
    fabric: Literal["auto", "kernel", "user"] = "auto"
    clock: Literal["real", "virtual"] = "real"
    """virtual: nothing is brought up; loads go straight onto the disks of its array, in their modelled time."""
    settings: Settings = Field(default_factory=dict)
    """What is particular about it: these replace the baseline's and hold for every case that does not change them."""
    control_address: str | None = None
    """This machine's address as the hosts reach it; null: the address of its name."""
    control_ports: str | None = None
    """FIRST-LAST: where this machine and the workers on the hosts listen; null: the kernel chooses."""


class BackupWorkload(FrozenSpec):
    """A phase of an image backup, after those that it needs. Its image is on the first volume."""

    phase: BackupPhase
    """The one whose figures count."""
    data: BackupSpec


class Workload(FrozenSpec):
    """One load on one SAN. Every case is compared with the baseline under the same workload."""

    name: str
    title: str
    san: str
    metric: str
    """The figure that decides: a name of `linerate.analysis.verdict.METRICS`."""
    spec: RunSpec | None
    """The run, its volumes not yet placed; null: no storage load, only `lan`."""
    backup: BackupWorkload | None = None
    """What runs in place of `spec`, which then says what is written."""
    lan: tuple[str, ...] = ()
    """LAN streams of the topology that run beside it."""
    elapsed_s: PositiveFloat
    warmup_s: NonNegativeFloat
    until_steady: bool = False
    """The warm-up is as long as the baseline takes to become steady; `warmup_s` is the most."""

    @property
    def run_s(self) -> float:
        """Time that one run takes, without what comes before and after."""
        return self.warmup_s + self.elapsed_s

    def timed(self, warmup_s: float, elapsed_s: float) -> Workload:
        """The same workload with other times."""
        times = {"warmup_s": warmup_s, "elapsed_s": elapsed_s}
        spec = self.spec.model_copy(update=times) if self.spec else None
        return self.model_copy(update={**times, "spec": spec})

    def seeded(self, seed: int) -> Workload:
        """The same workload with other I/Os of the same kind."""
        return (
            self.model_copy(update={"spec": self.spec.model_copy(update={"seed": seed})})
            if self.spec
            else self
        )


class Case(FrozenSpec):
    """One configuration. `settings` are all of them, those of the baseline included."""

    name: str
    title: str
    settings: Settings
    changed: tuple[str, ...] = ()
    """Names of the settings in which it differs from the baseline."""
    workloads: tuple[str, ...]
    source: str = ""
    """Where a publication describes it: a table and row."""


class ClaimTest(FrozenSpec):
    """A published finding and the comparison that puts it to the test: `case` against `against`."""

    claim: str
    """An id of the shipped claims."""
    case: str
    against: str
    workloads: tuple[str, ...] = ()
    """Those under which it is put to the test; all that it speaks of if empty."""


class Repeat(FrozenSpec):
    """How often a case is measured."""

    blocks_min: PositiveInt = 3
    blocks_max: PositiveInt = 6
    """A case runs again after `blocks_min` blocks as long as its comparison is undecided, up to so many blocks."""
    budget_s: PositiveFloat | None = None
    """No new block begins that would end later than this; null: no limit."""
    settle_s: NonNegativeFloat = 2.0
    """Wait after every change of settings."""
    baselines: Literal[1, 2] = 2
    """Runs of the baseline in every block; two show the noise floor."""


class Scale(FrozenSpec):
    """Each case is searched for the largest load that keeps a threshold, in place of being measured at one load."""

    over: Axis = "threads"
    until: Threshold
    least: PositiveInt = 1
    most: PositiveInt
    repeats: int = Field(default=6, ge=2)
    """Most runs of a load that is hard to decide."""
    resolution: float = Field(default=0.0, ge=0, le=0.5)
    """Relative gap at which a search ends."""
    down: bool = True
    headroom: bool = True
    curve: tuple[PositiveInt, ...] = ()
    """Loads whose rates show how the rate grows; none: no curve."""
    curve_repeats: int = Field(default=4, ge=2)
    """Runs of each load of the curve."""
    linear_margin: float = Field(default=0.1, gt=0, lt=1)
    """Growth is linear if the rate per unit of load stays within this of that of the curve's first load."""
    volumes_per_host: PositiveInt = 1
    """Over hosts: how many volumes each has. The first ones are the first host's."""

    def limits(self, searches: int) -> SearchLimits:
        """The limits of one of so many searches: the answers of all hold together with 95 %."""
        return SearchLimits(
            self.until.limit_ms,
            self.least,
            self.most,
            repeats_most=self.repeats,
            resolution=self.resolution,
            alpha=ALPHA / searches,
        )

    @property
    def parts(self) -> Parts:
        """What is measured beside the largest load."""
        curve = Curve(self.curve, self.curve_repeats) if self.curve else None
        return Parts(self.down, self.headroom, curve)


class Study(FrozenSpec):
    """A study. The baseline is the first case."""

    name: str
    title: str
    description: str = ""
    margin: float = Field(default=0.05, gt=0, lt=1)
    """A relative difference below this does not matter."""
    seed: NonNegativeInt
    quick: bool = False
    """Its times were scaled down."""
    sans: tuple[San, ...] = Field(min_length=1)
    workloads: tuple[Workload, ...] = Field(min_length=1)
    cases: tuple[Case, ...] = Field(min_length=2)
    claims: tuple[ClaimTest, ...] = ()
    repeat: Repeat = Repeat()
    scale: Scale | None = None

    @property
    def search_limits(self) -> SearchLimits:
        """Of each search. Raises ValueError for a study without searches."""
        if self.scale is None:
            raise ValueError(f"{self.name} has no [scale]")
        return self.scale.limits(sum(len(case.workloads) for case in self.cases))

    @property
    def baseline(self) -> Case:
        """What every case is compared with."""
        return self.cases[0]

    def san(self, name: str) -> San:
        """The SAN of that name. Raises KeyError."""
        return _named(self.sans, name)

    def workload(self, name: str) -> Workload:
        """The workload of that name. Raises KeyError."""
        return _named(self.workloads, name)

    def case(self, name: str) -> Case:
        """The case of that name. Raises KeyError."""
        return _named(self.cases, name)

    def settings(self, san: str, case: str) -> Settings:
        """All settings of a case on a SAN. Raises KeyError."""
        configuration = self.case(case)
        own = {name: configuration.settings[name] for name in configuration.changed}
        return {**configuration.settings, **self.san(san).settings, **own}


_Named = TypeVar("_Named", San, Workload, Case)


def _named(items: Iterable[_Named], name: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)
