"""A writer of Iometer configurations: what a test says of one becomes the text that Iometer would save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

BAR = "=" * 40
NEW_LINE_LABEL = "'size,% of size,% reads,% random,delay,burst,align,reply"
OLD_SETTINGS = "'Number of outstanding IOs,test connection rate,transactions per connection"
OLD_DISK = "'Disk maximum size,starting sector"


@dataclass(frozen=True)
class Spec:
    """An access specification; lines are in Iometer's order of values."""

    name: str = "4k"
    lines: Sequence[Sequence[int]] = ((4096, 100, 67, 100, 0, 1, 4096, 0),)
    default: str = "NONE"

    def text(self) -> str:
        lines = "".join(f"\t{','.join(map(str, line))}\n" for line in self.lines)
        name = f"'Access specification name,default assignment\n\t{self.name},{self.default}\n"
        return f"{name}{NEW_LINE_LABEL}\n{lines}"


@dataclass(frozen=True)
class Work:
    """A worker. old: as versions without seeds and data patterns wrote it. transactions: per connection; None: test
    connection rate is off."""

    name: str = "Worker 1"
    specs: Sequence[str] = ("4k",)
    targets: Sequence[str] = ("PHYSICALDRIVE:1",)
    outstanding: int = 1
    sectors: int = 0
    start: int = 0
    pattern: int = 1
    seed: int | None = None
    kind: str = "DISK"
    old: bool = False
    transactions: int | None = None

    def text(self) -> str:
        seed = f"DISABLED,{0}" if self.seed is None else f"ENABLED,{self.seed}"
        rate = "DISABLED,1" if self.transactions is None else f"ENABLED,{self.transactions}"
        settings = (
            f"{OLD_SETTINGS}\n\t{self.outstanding},{rate}\n{OLD_DISK}\n\t{self.sectors},{self.start}\n"
            if self.old
            else f"{OLD_SETTINGS},use fixed seed,fixed seed value\n\t{self.outstanding},{rate},{seed}\n"
            f"{OLD_DISK},Data pattern\n\t{self.sectors},{self.start},{self.pattern}\n"
        )
        specs = "".join(f"\t{name}\n" for name in self.specs)
        targets = "".join(f"'Target\n\t{name}\n'Target type\n\tDISK\n'End target\n" for name in self.targets)
        return (
            f"'Worker\n\t{self.name}\n'Worker type\n\t{self.kind}\n'Default target settings for worker\n"
            f"{settings}'End default target settings for worker\n'Assigned access specs\n{specs}"
            f"'End assigned access specs\n'Target assignments\n{targets}'End target assignments\n'End worker\n"
        )


@dataclass(frozen=True)
class Icf:
    """A configuration."""

    specs: Sequence[Spec] = (Spec(),)
    workers: Sequence[Work] = (Work(),)
    run_s: int = 10
    ramp_s: int = 0
    test: str = "NORMAL"
    description: str = "some words"
    worker_cycling: str = "1 1 LINEAR"
    disk_cycling: str = "1 1 LINEAR"
    depth_cycling: str = "1 32 2 EXPONENTIAL"
    version: str = "1.1.0"
    more_managers: Sequence[Sequence[Work]] = field(default=())

    def setup(self) -> str:
        hours, rest = divmod(self.run_s, 3600)
        return (
            f"'TEST SETUP {BAR}\n'Test Description\n\t{self.description}\n'Run Time\n'\thours      minutes    seconds\n"
            f"\t{hours}          {rest // 60}          {rest % 60}\n'Ramp Up Time (s)\n\t{self.ramp_s}\n"
            "'Default Disk Workers to Spawn\n\tNUMBER_OF_CPUS\n'Default Network Workers to Spawn\n\t0\n"
            f"'Record Results\n\tALL\n'Worker Cycling\n'\tstart      step       step type\n\t{self.worker_cycling}\n"
            f"'Disk Cycling\n'\tstart      step       step type\n\t{self.disk_cycling}\n'Queue Depth Cycling\n"
            f"'\tstart      end        step       step type\n\t{self.depth_cycling}\n'Test Type\n\t{self.test}\n"
            "'END test setup\n"
        )

    def display(self) -> str:
        return (
            f"'RESULTS DISPLAY {BAR}\n'Record Last Update Results,Update Frequency,Update Type\n"
            "\tDISABLED,0,WHOLE_TEST\n'Bar chart 1 statistic\n\tTotal I/Os per Second\n'END results display\n"
        )

    def specifications(self) -> str:
        specs = "".join(spec.text() for spec in self.specs)
        return f"'ACCESS SPECIFICATIONS {BAR}\n{specs}'END access specifications\n"

    def managers(self) -> str:
        groups = (self.workers, *self.more_managers)
        texts = (
            f"'Manager ID, manager name\n\t{number},HOST{number}\n'Manager network address\n\t\n"
            f"{''.join(worker.text() for worker in workers)}'End manager\n"
            for number, workers in enumerate(groups, start=1)
        )
        return f"'MANAGER LIST {BAR}\n{''.join(texts)}'END manager list\n"

    def text(self) -> str:
        parts = self.setup() + self.display() + self.specifications() + self.managers()
        return f"Version {self.version} \n{parts}Version {self.version} \n"
