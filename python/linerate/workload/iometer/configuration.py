"""A configuration of Iometer as typed values, and what is read from its sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linerate.workload.iometer.lexer import IcfEntry, IcfSection
from linerate.workload.iometer.tables import TESTS, IcfTest
from linerate.workload.iometer.values import one_line, whole, word
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import TIME_S_MAX

SECTOR_BYTES = 512
_STEPS = ("LINEAR", "EXPONENTIAL")
_COUNT_MAX = 65_536


@dataclass(frozen=True, slots=True)
class AccessLine:
    """One kind of I/O of an access specification. share_percent: of all its I/Os. text: as in the file."""

    place: SourceLocation
    text: str
    size_bytes: int
    share_percent: int
    read_percent: int
    random_percent: int
    delay_ms: int
    burst: int
    align_bytes: int
    reply_bytes: int

    @property
    def grid_bytes(self) -> int:
        """Places are multiples of it: 0 means sectors."""
        return self.align_bytes or SECTOR_BYTES


@dataclass(frozen=True, slots=True)
class AccessSpecification:
    """A named mix of I/Os."""

    place: SourceLocation
    name: str
    lines: tuple[AccessLine, ...]


@dataclass(slots=True)
class IcfWorker:
    """A disk worker: what it does, one specification after the other, and on which targets.

    assigned: (place, name) of specifications; None: the file does not say, as before 1998.05.21. seed: None: not given.
    manager: its number in the file, from 1. transactions: I/Os between two openings of a target; None: it stays open.
    """

    place: SourceLocation
    name: str
    manager: int = 1
    outstanding: int = 1
    transactions: int | None = None
    seed: int | None = None
    size_sectors: int = 0
    first_sector: int = 0
    pattern: int = 0
    assigned: list[tuple[SourceLocation, str]] | None = None
    targets: list[tuple[SourceLocation, str]] = field(default_factory=list)


@dataclass(slots=True)
class IcfManager:
    """A host that makes load."""

    place: SourceLocation
    name: str
    workers: list[IcfWorker] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cycling:
    """A number that grows from run to run. end: the largest; None: as long as more takes part."""

    place: SourceLocation
    start: int = 1
    step: int = 1
    is_exponential: bool = False
    end: int | None = None


@dataclass(frozen=True, slots=True)
class IcfSetup:
    """The test setup. run_s 0: Iometer runs until it is stopped."""

    place: SourceLocation
    description: str
    kind: IcfTest
    run_s: int
    ramp_s: int
    workers: Cycling
    targets: Cycling
    depth: Cycling


def read_setup(section: IcfSection | None, path: str, problems: Problems) -> IcfSetup:
    """The test setup, with Iometer's defaults for what it does not say."""
    place = section.place if section else SourceLocation(path, 0)
    found = _last_of(section.entries if section else (), problems)

    def value(name: str, read: Callable[[IcfEntry, Problems], int], default: int) -> int:
        return read(found[name], problems) if name in found else default

    kind = _test_kind(found["Test Type"], problems) if "Test Type" in found else TESTS[0]
    return IcfSetup(
        place=found["Run Time"].value_place if "Run Time" in found else place,
        description=found["Test Description"].value if "Test Description" in found else "",
        kind=kind,
        run_s=value("Run Time", _run_s, 0),
        ramp_s=value("Ramp Up Time (s)", _ramp_s, 0),
        workers=_cycling(found.get("Worker Cycling"), place, problems),
        targets=_cycling(found.get("Disk Cycling"), place, problems),
        depth=_cycling(found.get("Queue Depth Cycling"), place, problems, has_end=True),
    )


def _last_of(entries: Sequence[IcfEntry], problems: Problems) -> dict[str, IcfEntry]:
    found: dict[str, IcfEntry] = {}
    for entry in entries:
        if entry.row.name in found:
            what = f"'{entry.row.text} comes twice; line {found[entry.row.name].place.line} has the first"
            problems.error(entry.place, what, "remove one of them")
        found[entry.row.name] = entry
        if entry.row.name != "Test Description":
            one_line(entry, problems)
    return found


def _run_s(entry: IcfEntry, problems: Problems) -> int:
    words = entry.value.split()
    if len(words) != 3:
        problems.error(
            entry.value_place, f"{entry.text}: not three numbers", "write hours, minutes and seconds"
        )
        return 0
    names = ("hours", "minutes", "seconds")
    numbers = [
        whole(text, name, entry.value_place, problems, most=1 << 31)
        for name, text in zip(names, words, strict=True)
    ]
    return _in_limits(numbers[0] * 3600 + numbers[1] * 60 + numbers[2], entry, problems)


def _ramp_s(entry: IcfEntry, problems: Problems) -> int:
    return _in_limits(whole(entry.value, "ramp up time", entry.value_place, problems), entry, problems)


def _in_limits(time_s: int, entry: IcfEntry, problems: Problems) -> int:
    if time_s > TIME_S_MAX:
        problems.error(entry.value_place, f"{entry.text}: more than 366 days", "write a shorter time")
        return 0
    return time_s


def _test_kind(entry: IcfEntry, problems: Problems) -> IcfTest:
    """By name, or by number as in versions before names."""
    for kind in TESTS:
        if entry.value.upper() in (kind.name, str(kind.number)):
            return kind
    names = ", ".join(kind.name for kind in TESTS)
    problems.error(entry.value_place, f"{entry.text}: no test type", f"write one of {names}")
    return TESTS[0]


def _cycling(
    entry: IcfEntry | None, place: SourceLocation, problems: Problems, *, has_end: bool = False
) -> Cycling:
    if entry is None:
        return Cycling(place, end=1 if has_end else None)
    words = entry.value.split()
    names = ("start", "end", "step") if has_end else ("start", "step")
    if len(words) != len(names) + 1:
        what = f"{entry.text}: not {', '.join(names)} and step type"
        problems.error(entry.value_place, what, f"write {' '.join(names)} LINEAR")
        return Cycling(entry.place, end=1 if has_end else None)
    numbers = {
        name: whole(text, name, entry.value_place, problems, most=_COUNT_MAX)
        for name, text in zip(names, words, strict=False)
    }
    step_type = {"0": _STEPS[0], "1": _STEPS[1]}.get(words[-1], words[-1])
    kind = word(step_type, "step type", _STEPS, entry.value_place, problems)
    return Cycling(
        entry.value_place, numbers["start"], numbers["step"], kind == _STEPS[1], numbers.get("end")
    )
