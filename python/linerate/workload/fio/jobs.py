"""Sections as jobs: defaults of `[global]` applied, keywords looked up, values read and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from linerate.workload.fio.lexer import JobOption, JobSection, printable
from linerate.workload.fio.refused import ASYNCHRONOUS, REFUSED_ENGINES, SYNCHRONOUS
from linerate.workload.fio.tables import JobEffect, JobKeyword, find_keyword, nearest_keyword
from linerate.workload.fio.values import (
    Amount,
    JobValueError,
    amount,
    by_direction,
    filenames,
    flag,
    io_bytes,
    percent,
    size_bytes,
    size_range,
    size_split,
    time_s,
    whole,
)
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import RATE_IOPS_MAX, SizeMix, SizeRange, Sizes

T = TypeVar("T")
_COPIES_MAX = 4096
_DEPTH_MAX = 65_536
_SECTIONS_MAX = 4096
_FILES_MAX = 4096
_ALL_FILES_MAX = 16_384
_DEFAULT_BYTES = 4096
_DIRECTIONS = {
    "read": (True, False, False),
    "write": (False, True, False),
    "rw": (True, True, False),
    "readwrite": (True, True, False),
    "randread": (True, False, True),
    "randwrite": (False, True, True),
    "randrw": (True, True, True),
}
"""rw= as (reads, writes, random)."""
_SYNC = {"none": False, "0": False, "1": True, "sync": True, "dsync": True}
_CONTINUES = {"none": False, "0": False, "all": True, "1": True, "io": True, "read": True, "write": True}
_FORMAT = "$jobname.$jobnum.$filenum"


@dataclass(frozen=True, slots=True)
class JobLoad:
    """What one copy of a job does to its files."""

    read_percent: float
    random_percent: float
    read_sizes: Sizes
    write_sizes: Sizes
    align_bytes: int | None
    depth: int
    rate_iops: float | None
    process: Literal["deterministic", "poisson"]
    compression_ratio: float | None
    direct: bool
    durable: bool


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Which files a job uses, and which part of them; offsets and sizes as written."""

    names: tuple[str, ...] | None
    directories: tuple[str, ...]
    name_format: str
    number: int
    file_bytes: int | None
    size: Amount | None
    offset: Amount
    increment: Amount
    is_null: bool


@dataclass(frozen=True, slots=True)
class FioJob:
    """A job of the file. None of a time or of an amount: not given."""

    name: str
    section: str
    place: SourceLocation
    load: JobLoad
    files: JobFiles
    copies: int
    stonewall: bool
    runtime_s: float | None
    time_based: bool
    ramp_s: float
    delay_s: float
    io_bytes: int | None
    loops: int
    seed: int | None
    error_limit: int | None
    ends_with_first: bool
    start_commands: tuple[str, ...]
    end_commands: tuple[str, ...]


def read_jobs(sections: Sequence[JobSection], problems: Problems) -> list[FioJob]:
    """The jobs of the sections in order; what is wrong is noted in `problems`."""
    defaults: dict[str, JobOption] = {}
    jobs: list[FioJob] = []
    if len(sections) > _SECTIONS_MAX:
        what = f"more than {_SECTIONS_MAX:,} sections"
        problems.error(sections[_SECTIONS_MAX].place, what, "split the file")
        return []
    for section in sections:
        if section.is_global:
            _merge(defaults, section.options, problems)
            defaults.pop("name", None)  # the names of sections win
            continue
        options = dict(defaults)
        _merge(options, section.options, problems)
        before = len(problems.errors)
        job = _JobReader(section, options, problems).read()
        if job.copies * job.files.number > _ALL_FILES_MAX:
            what = f"[{job.name}]: {job.copies * job.files.number:,} files; at most {_ALL_FILES_MAX:,}"
            problems.error(section.place, what, "write fewer numjobs= or nrfiles=")
        if len(problems.errors) == before:
            jobs.append(job)
    return jobs


def _merge(into: dict[str, JobOption], options: Sequence[JobOption], problems: Problems) -> None:
    """The last of several wins, and takes the last place."""
    for option in options:
        row = find_keyword(option.keyword)
        if row is None:
            close = nearest_keyword(option.keyword)
            hint = (
                f"did you mean {close}?"
                if close
                else "docs/fio.md lists the keywords; those of engines that are refused are not among them"
            )
            problems.error(
                option.place, f"{option.text}: unknown keyword {printable(option.keyword)!r}", hint
            )
            continue
        if option.value is None and not row.alone:
            problems.error(option.place, f"{option.text}: no value", f"write {row.name}={row.accepted}")
            continue
        into.pop(row.name, None)
        into[row.name] = option


class _JobReader:
    def __init__(self, section: JobSection, options: Mapping[str, JobOption], problems: Problems) -> None:
        self._section = section
        self._options = options
        self._problems = problems
        self._kb_base = 1024

    def read(self) -> FioJob:
        for name, option in self._options.items():
            if (row := find_keyword(name)) is not None:
                self._check_effect(row, option)
        self._kb_base = self._get("kb_base", _kb_base, 1024)
        name_option = self._options.get("name")
        error_limit = None if self._get("continue_on_error", _word(_CONTINUES), False) else 1
        return FioJob(
            name=name_option.value if name_option and name_option.value else self._section.name,
            section=self._section.name,
            place=self._section.place,
            load=self._load(),
            files=self._files(),
            copies=self._number("numjobs", 1, 1, _COPIES_MAX),
            stonewall=self._get("stonewall", flag, False),
            runtime_s=self._get("runtime", time_s, 0.0) or None,
            time_based=self._get("time_based", flag, False),
            ramp_s=self._get("ramp_time", time_s, 0.0),
            delay_s=self._get("startdelay", time_s, 0.0),
            io_bytes=self._get("io_size", self._size, 0) or None,
            loops=self._number("loops", 1, 1, 1 << 30),
            seed=self._number("randseed", 0, 0, 1 << 62) if "randseed" in self._options else None,
            error_limit=error_limit,
            ends_with_first=any(self._is_on(word) for word in ("exitall", "exit_what")),
            start_commands=self._command("exec_prerun"),
            end_commands=self._command("exec_postrun"),
        )

    def _check_effect(self, row: JobKeyword, option: JobOption) -> None:
        value = option.value or "1"
        if row.effect is JobEffect.REFUSED or (row.effect is JobEffect.UNLESS and value not in row.harmless):
            accepted = (
                f"leave it out, or write {row.name}={row.harmless[0]}" if row.harmless else "leave it out"
            )
            self._problems.error(option.place, f"{option.text}: is not supported: {row.meaning}", accepted)
        elif row.effect is JobEffect.NONE and not row.silent:
            self._problems.notice(option.place, f"{option.text}: no effect, {row.meaning}")

    def _is_on(self, name: str) -> bool:
        option = self._options.get(name)
        return option is not None and option.value not in ("0", "none")

    def _get(self, name: str, read: Callable[[str], T], default: T) -> T:
        """The value by its reader, or the default after a problem was noted."""
        option = self._options.get(name)
        if option is None:
            return default
        try:
            return read("1" if option.value is None else option.value)
        except JobValueError as error:
            row = find_keyword(name)
            accepted = f"write {name}={row.accepted}" if row else ""
            self._problems.error(option.place, f"{option.text}: {error}", accepted)
            return default

    def _number(self, name: str, default: int, least: int, most: int) -> int:
        number = self._get(name, whole, default)
        if not least <= number <= most:
            option = self._options[name]
            self._problems.error(option.place, f"{option.text}: out of range", f"{least} to {most:,}")
            return default
        return number

    def _size(self, text: str) -> int:
        return size_bytes(text, self._kb_base)

    def _amount(self, text: str) -> Amount:
        return amount(text, self._kb_base)

    def _command(self, name: str) -> tuple[str, ...]:
        option = self._options.get(name)
        return (option.value,) if option and option.value else ()

    def _later(self, one: str, other: str) -> str:
        """Which of two keywords stands later; the first if none is there."""
        there = [name for name in self._options if name in (one, other)]
        return there[-1] if there else one

    def _load(self) -> JobLoad:
        reads, writes, is_random = self._get("rw", _direction, (True, False, False))
        if self._later("rwmixread", "rwmixwrite") == "rwmixread":
            mix = self._get("rwmixread", percent, 50.0)
        else:
            mix = 100 - self._get("rwmixwrite", percent, 50.0)
        read_percent = mix if reads and writes else 100.0 if reads else 0.0
        read_sizes, write_sizes = self._sizes()
        if not reads or not writes:
            read_sizes = write_sizes = read_sizes if reads else write_sizes
        smallest = min(_smallest(read_sizes), _smallest(write_sizes))
        align = self._get("ba", lambda text: io_bytes(by_direction(text)[0], self._kb_base), 0)
        varied = not (
            read_sizes == write_sizes and isinstance(read_sizes, SizeMix) and len(read_sizes.parts) == 1
        )
        compressed = self._get("buffer_compress_percentage", percent, 0.0)
        direct = self._get("direct", flag, False)
        if self._later("direct", "buffered") == "buffered":
            direct = not self._get("buffered", flag, True)
        return JobLoad(
            read_percent=read_percent,
            random_percent=self._random_percent(reads, writes) if is_random else 0.0,
            read_sizes=read_sizes,
            write_sizes=write_sizes,
            align_bytes=align or (smallest if varied else None),
            depth=self._depth(),
            rate_iops=self._rate(reads, writes, read_sizes),
            process=self._get("rate_process", _process, "deterministic"),
            compression_ratio=min(100 / (100 - compressed), 512.0)
            if 0 < compressed < 100
            else _ratio(compressed),
            direct=direct,
            durable=self._durable(),
        )

    def _durable(self) -> bool:
        syncs = [self._number(name, 0, 0, 1 << 31) for name in ("fsync", "fdatasync")]
        for name, number in zip(("fsync", "fdatasync"), syncs, strict=True):
            if number > 1:
                option = self._options[name]
                what = f"{option.text}: is not supported: writes are durable each or not at all"
                self._problems.error(option.place, what, f"write {name}=1, or leave it out")
        return self._get("sync", _word(_SYNC), False) or any(syncs)

    def _random_percent(self, reads: bool, writes: bool) -> float:
        def read(text: str) -> float:
            shares = [percent(part) for part in by_direction(text)]
            if reads and writes and shares[0] != shares[1]:
                raise JobValueError("reads and writes have the same share of random places")
            return shares[0] if reads else shares[1]

        return self._get("percentage_random", read, 100.0)

    def _sizes(self) -> tuple[Sizes, Sizes]:
        """Of reads and of writes: bssplit before bsrange before bs."""
        readers: tuple[tuple[str, Callable[[str, int], Sizes]], ...] = (
            ("bssplit", size_split),
            ("bsrange", size_range),
            ("bs", lambda text, base: SizeMix.one(io_bytes(text, base))),
        )
        default: Sizes = SizeMix.one(_DEFAULT_BYTES)
        for name, reader in readers:
            if name not in self._options:
                continue

            def both(text: str, reader: Callable[[str, int], Sizes] = reader) -> tuple[Sizes, Sizes]:
                parts = by_direction(text)
                one, other = (reader(part, self._kb_base) if part else default for part in parts)
                return one, other

            return self._get(name, both, (default, default))
        return default, default

    def _depth(self) -> int:
        depth = self._number("iodepth", 1, 1, _DEPTH_MAX)
        option = self._options.get("ioengine")
        engine = option.value if option and option.value else "psync"
        if option is not None and engine not in (*ASYNCHRONOUS, *SYNCHRONOUS):
            reason = REFUSED_ENGINES.get(engine.partition(":")[0], "no engine that Linerate knows")
            known = ", ".join((*ASYNCHRONOUS, *SYNCHRONOUS))
            self._problems.error(
                option.place, f"{option.text}: is not supported: {reason}", f"write one of {known}"
            )
        if engine in SYNCHRONOUS and depth > 1:
            given = self._options["iodepth"]
            what = f"{given.text}: one I/O in flight for each copy, as in fio: the engine {engine} is synchronous"
            self._problems.notice(given.place, what)
            return 1
        return depth

    def _rate(self, reads: bool, writes: bool, sizes: Sizes) -> float | None:
        """I/Os per second of one copy: the lower of rate_iops= and rate=."""
        found: list[float] = []
        one_size = sizes.parts[0][0] if isinstance(sizes, SizeMix) and len(sizes.parts) == 1 else None

        def number(text: str) -> int:
            return self._size(by_direction(text)[0 if reads else 1] or "0")

        for name in ("rate_iops", "rate"):
            value = self._get(name, number, 0)
            if not value:
                continue
            option = self._options[name]
            if reads and writes:
                what = f"{option.text}: is not supported for a job that reads and writes: fio limits each by itself"
                self._problems.error(option.place, what, "write a job that reads and one that writes")
            elif name == "rate" and one_size is None:
                what = f"{option.text}: a rate in bytes needs one I/O size"
                self._problems.error(option.place, what, "write rate_iops=, or bs= with one size")
            else:
                found.append(value / one_size if name == "rate" and one_size else float(value))
        if found and min(found) > RATE_IOPS_MAX:
            self._problems.error(self._section.place, f"[{self._section.name}]: the rate is too high")
        return min(found) if found else None

    def _files(self) -> JobFiles:
        engine = self._options.get("ioengine")
        return JobFiles(
            names=self._get("filename", filenames, None),
            directories=self._get("directory", filenames, ()),
            name_format=self._get("filename_format", _name_format, _FORMAT),
            number=self._number("nrfiles", 1, 1, _FILES_MAX),
            file_bytes=self._get("filesize", self._size, 0) or None,
            size=self._get("size", self._amount, None),
            offset=self._get("offset", self._amount, Amount(0)),
            increment=self._get("offset_increment", self._amount, Amount(0)),
            is_null=engine is not None and engine.value == "null",
        )


def _ratio(compressed: float) -> float | None:
    """100 % is as much as the data plane can do."""
    return 512.0 if compressed >= 100 else None


def _smallest(sizes: Sizes) -> int:
    return sizes.min_bytes if isinstance(sizes, SizeRange) else min(size for size, _ in sizes.parts)


def _kb_base(text: str) -> int:
    if text not in ("1000", "1024"):
        raise JobValueError("neither 1000 nor 1024")
    return int(text)


def _word(words: Mapping[str, bool]) -> Callable[[str], bool]:
    def read(text: str) -> bool:
        if text not in words:
            raise JobValueError("not one of " + ", ".join(words))
        return words[text]

    return read


def _direction(text: str) -> tuple[bool, bool, bool]:
    kind, colon, _ = text.partition(":")
    if "trim" in kind:
        raise JobValueError("is not supported: blocks are not trimmed")
    if kind not in _DIRECTIONS:
        raise JobValueError("not one of " + ", ".join(_DIRECTIONS))
    if colon:
        raise JobValueError("is not supported: a number behind the direction changes the order of places")
    return _DIRECTIONS[kind]


def _process(text: str) -> Literal["deterministic", "poisson"]:
    if text not in ("linear", "poisson"):
        raise JobValueError("neither linear nor poisson")
    return "poisson" if text == "poisson" else "deterministic"


def _name_format(text: str) -> str:
    if "$clientuid" in text:
        raise JobValueError("is not supported: there are no clients of fio")
    return text
