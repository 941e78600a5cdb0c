"""The labels of an Iometer configuration as data: section, spelling, what stands below, what Linerate does with it.

A label is a line that begins with `'`; the values of the next lines are its own. Iometer (1.1.0) compares labels
without case. Some labels list the names of their values, and older versions list fewer. docs/iometer.md is made from
these rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

_COMMA = re.compile(r"\s*,\s*")
_BLANKS = re.compile(r"\s+")


class IcfPart(Enum):
    """A section of the file, by the text of its first line."""

    SETUP = "TEST SETUP"
    DISPLAY = "RESULTS DISPLAY"
    SPECIFICATIONS = "ACCESS SPECIFICATIONS"
    MANAGERS = "MANAGER LIST"


class IcfEffect(Enum):
    """What Linerate does with a label or a value."""

    DOES = auto()
    NONE = auto()
    UNLESS = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class IcfLabel:
    """One row. `fields`: names of values that the label itself lists. `older`: other spellings.

    bare: it has no values.
    """

    part: IcfPart
    name: str
    accepted: str
    meaning: str
    effect: IcfEffect = IcfEffect.DOES
    fields: tuple[str, ...] = ()
    older: tuple[str, ...] = ()
    prefix: bool = False
    bare: bool = False

    @property
    def text(self) -> str:
        """As Iometer 1.1.0 writes it, without the quote."""
        return ",".join(self.fields) if self.fields else self.name


@dataclass(frozen=True, slots=True)
class IcfField:
    """One of the values that a label lists."""

    label: str
    name: str
    accepted: str
    meaning: str
    effect: IcfEffect = IcfEffect.DOES


@dataclass(frozen=True, slots=True)
class IcfTest:
    """A `'Test Type`: its name, the number that Iometer's result file has for it, and the runs that it makes."""

    name: str
    number: int
    meaning: str


SPECIFICATION = "Access specification name"
LINES = "size"
MANAGER = "Manager ID"
OUTSTANDING = "Number of outstanding IOs"
DISK = "Disk maximum size"
ASSIGNED = "Assigned access specs"

_SPAWN = "the workers are those of the manager list"
_DISPLAY = "it concerns Iometer's screen"
_ENDS = "ends its block"


def _ends(*names: str) -> tuple[IcfLabel, ...]:
    return tuple(
        IcfLabel(IcfPart.MANAGERS, f"End {name}", "", _ENDS, IcfEffect.NONE, bare=True) for name in names
    )


LABELS = (
    IcfLabel(IcfPart.SETUP, "Test Description", "text", "shown in Iometer's result file"),
    IcfLabel(IcfPart.SETUP, "Run Time", "hours minutes seconds", "measured time of each run"),
    IcfLabel(
        IcfPart.SETUP, "Ramp Up Time (s)", "seconds", "warm-up before each run", older=("Ramp Up Time",)
    ),
    IcfLabel(
        IcfPart.SETUP,
        "Default Disk Workers to Spawn",
        "number or NUMBER_OF_CPUS",
        _SPAWN,
        IcfEffect.NONE,
        older=("Default Workers to Spawn",),
    ),
    IcfLabel(
        IcfPart.SETUP,
        "Default Network Workers to Spawn",
        "number or NUMBER_OF_CPUS",
        _SPAWN,
        IcfEffect.NONE,
    ),
    IcfLabel(
        IcfPart.SETUP,
        "Record Results",
        "ALL, NO_TARGETS, NO_WORKERS, NO_MANAGERS, NONE or a number",
        "`--iometer-csv` has the rows of ALL",
        IcfEffect.NONE,
    ),
    IcfLabel(
        IcfPart.SETUP,
        "Worker Cycling",
        "start step LINEAR or EXPONENTIAL",
        "of a test type that adds workers",
    ),
    IcfLabel(
        IcfPart.SETUP, "Disk Cycling", "start step LINEAR or EXPONENTIAL", "of a test type that adds targets"
    ),
    IcfLabel(
        IcfPart.SETUP,
        "Queue Depth Cycling",
        "start end step LINEAR or EXPONENTIAL",
        "of a test type that changes the I/Os in flight",
    ),
    IcfLabel(
        IcfPart.SETUP, "Test Type", "see below, or its number", "which runs each access specification has"
    ),
    IcfLabel(
        IcfPart.SPECIFICATIONS,
        SPECIFICATION,
        "name,NONE or ALL or DISK or NET",
        "a name for the lines below; the default assignment has no effect where the manager list assigns",
        fields=(SPECIFICATION, "default assignment"),
    ),
    IcfLabel(
        IcfPart.SPECIFICATIONS,
        LINES,
        "one or more lines of whole numbers",
        "kinds of I/O, by share",
        fields=(LINES, "% of size", "% reads", "% random", "delay", "burst", "align", "reply"),
    ),
    IcfLabel(
        IcfPart.MANAGERS,
        MANAGER,
        "number,name",
        "a host that made the load; its workers make it here",
        fields=(MANAGER, "manager name"),
    ),
    IcfLabel(IcfPart.MANAGERS, "Manager network address", "address", "the load is made here", IcfEffect.NONE),
    IcfLabel(IcfPart.MANAGERS, "Worker", "name", "a thread with queues and positions of its own"),
    IcfLabel(
        IcfPart.MANAGERS,
        "Worker type",
        "DISK",
        "NETWORK is refused unless it is idle: it loads a network, not storage",
    ),
    IcfLabel(
        IcfPart.MANAGERS,
        "Default target settings for worker",
        "",
        "begins the settings of a worker",
        bare=True,
    ),
    IcfLabel(
        IcfPart.MANAGERS,
        OUTSTANDING,
        "one line of values",
        "see below",
        fields=(
            OUTSTANDING,
            "test connection rate",
            "transactions per connection",
            "use fixed seed",
            "fixed seed value",
        ),
    ),
    IcfLabel(
        IcfPart.MANAGERS,
        DISK,
        "one line of values",
        "see below",
        fields=(DISK, "starting sector", "Data pattern"),
    ),
    IcfLabel(
        IcfPart.MANAGERS, "Local network interface", "address", "of a network worker", IcfEffect.REFUSED
    ),
    IcfLabel(IcfPart.MANAGERS, "VI outstanding IOs", "number", "of a network worker", IcfEffect.REFUSED),
    IcfLabel(
        IcfPart.MANAGERS,
        ASSIGNED,
        "names, a line each",
        "the runs of a worker, one after the other; Idle: it pauses in that run",
    ),
    IcfLabel(IcfPart.MANAGERS, "Target assignments", "", "begins the targets of a worker", bare=True),
    IcfLabel(IcfPart.MANAGERS, "Target", "name", "a volume; `--map` says where it is"),
    IcfLabel(IcfPart.MANAGERS, "Target type", "DISK", "NETWORK is refused"),
    IcfLabel(
        IcfPart.MANAGERS,
        "Target manager ID",
        "number,name",
        "of a network target",
        IcfEffect.REFUSED,
        fields=("Target manager ID", "manager name"),
    ),
    *_ends(
        "default target settings for worker",
        "assigned access specs",
        "target",
        "target assignments",
        "worker",
        "manager",
    ),
    *(
        IcfLabel(IcfPart.DISPLAY, name, "any", _DISPLAY, IcfEffect.NONE, prefix=True)
        for name in ("Record Last Update Results", "Update Frequency", "Bar chart")
    ),
)

FIELDS = (
    IcfField(LINES, LINES, "bytes, a multiple of 512", "size of an I/O"),
    IcfField(LINES, "% of size", "percent", "share of the I/Os that are of this line; all together 100"),
    IcfField(LINES, "% reads", "percent", "share of reads; the others are writes"),
    IcfField(
        LINES, "% random", "percent", "share that goes to a random place; the others follow the last I/O"
    ),
    IcfField(LINES, "delay", "ms", "pause before each burst; only of a worker with one I/O in flight"),
    IcfField(LINES, "burst", "number", "I/Os between two pauses; only 1 where there are several lines"),
    IcfField(LINES, "align", "bytes", "grid of places; 0: sectors of 512 bytes"),
    IcfField(LINES, "reply", "0", "transactions of a request and an answer are not made", IcfEffect.UNLESS),
    IcfField(OUTSTANDING, OUTSTANDING, "number", "I/Os in flight on each target of the worker"),
    IcfField(
        OUTSTANDING,
        "test connection rate",
        "ENABLED or DISABLED",
        "whether each target is closed and opened again and again; not a file of a share",
    ),
    IcfField(
        OUTSTANDING,
        "transactions per connection",
        "1 or more",
        "I/Os on a target between two openings, with test connection rate",
    ),
    IcfField(OUTSTANDING, "use fixed seed", "ENABLED or DISABLED", "whether the seed of the run is given"),
    IcfField(OUTSTANDING, "fixed seed value", "number", "seed of the run: that of the first worker with one"),
    IcfField(DISK, DISK, "sectors of 512 bytes, 0: all", "part of each target that is used"),
    IcfField(DISK, "starting sector", "sectors of 512 bytes", "where that part begins"),
    IcfField(
        DISK,
        "Data pattern",
        "0, 1 or 2",
        "0: a write repeats one byte (it compresses 512:1 here); 1 and 2: random bytes",
    ),
)

TESTS = (
    IcfTest("NORMAL", 0, "all targets of all workers"),
    IcfTest("CYCLE_TARGETS", 1, "more and more targets of each worker"),
    IcfTest("CYCLE_WORKERS", 2, "more and more workers of each manager with all their targets"),
    IcfTest("INCREMENT_TARGETS_PARALLEL", 3, "more and more targets: first those of the first worker"),
    IcfTest("INCREMENT_TARGETS_SERIAL", 4, "the same, but first those of the first manager"),
    IcfTest("CYCLE_WORKERS_AND_TARGETS", 5, "as CYCLE_WORKERS, and for each number of them more targets"),
    IcfTest("CYCLE_OUTSTANDING_IOS", 6, "all targets, with more and more I/Os in flight on each"),
    IcfTest(
        "CYCLE_OUTSTANDING_IOS_AND_TARGETS",
        7,
        "more and more targets of each worker, and for each number of them all I/Os in flight",
    ),
)


def names_of(label: str) -> tuple[str, ...]:
    """The names in a label, lower case, with one blank between words: `size, % of size` has two."""
    return tuple(_BLANKS.sub(" ", name).strip().lower() for name in _COMMA.split(label.strip()))


_ROWS = {
    names_of(spelling)[0]: row for row in LABELS if not row.prefix for spelling in (row.name, *row.older)
}
_PREFIXES = {row.name.lower(): row for row in LABELS if row.prefix}


def find_label(label: str) -> IcfLabel | None:
    """The row of a label, which has any case and any blanks; None: no row."""
    names = names_of(label)
    found = _ROWS.get(names[0])
    if found is not None and (found.fields or len(names) == 1):
        return found
    if names[0].startswith("ramp up time"):  # Iometer compares no more of it
        return _ROWS["ramp up time"]
    return next((row for prefix, row in _PREFIXES.items() if names[0].startswith(prefix)), None)


def part_of(label: str) -> IcfPart | None:
    """The section that a label begins: what follows the name, as `=====`, does not matter."""
    text = _BLANKS.sub(" ", label).strip().upper()
    return next((part for part in IcfPart if text.startswith(part.value)), None)


def ended_part(label: str) -> IcfPart | None:
    """The section that a label ends."""
    text = _BLANKS.sub(" ", label).strip().upper()
    return next((part for part in IcfPart if text.startswith(f"END {part.value}")), None)
