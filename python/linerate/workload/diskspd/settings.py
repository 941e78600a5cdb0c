"""From the words of a command to what it asks for: sizes in bytes, times in seconds, defaults filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from linerate.errors import UserError
from linerate.quantity import size_text
from linerate.workload.diskspd.distribution import DistributionError, read_distribution
from linerate.workload.diskspd.lexer import CommandLine, read_bytes
from linerate.workload.diskspd.paths import file_of
from linerate.workload.diskspd.refused import why_refused
from linerate.workload.diskspd.tables import (
    EXCLUSIVE,
    OPTIONS,
    CommandOption,
    OptionEffect,
    ToolName,
    ValueForm,
    option_of,
)
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.spec import PlaceDistribution
from linerate.workload.text import text_of

SECTOR_BYTES = 512
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NEEDS_VALUE = (ValueForm.NUMBER, ValueForm.PERCENT, ValueForm.SIZE)
_NEVER_ZERO = ("size_bytes", "random_grid", "stride", "interlocked_stride")
_NUMBER_MAX = 1 << 62
_WHOLE_MAX = (1 << 31) - 1
"""Largest number of an option, as in diskspd."""
_SIZE = re.compile(r"(\d{1,20})([kmgtb]?)", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,18})(i?)", re.IGNORECASE)
_DRIVE = re.compile(r"#\d+|[a-z]:", re.IGNORECASE)
_NO_TARGET = "name one behind the options; on a command line all of them come behind --"
_STRIPE_BLOCKS, _RUN_IOS = 64, 64
"""What sqlio takes without -f and -i."""
_WHOLE_BYTES = 64 << 30
"""A run of -f1 that is so long means the whole target."""
_DEFAULT_FILE = "testfile.dat"
"""What sqlio uses without a target."""
_DASHES = ("\u2013", "\u2014")
_LETTERS = {row.key: row.letters for row in OPTIONS if row.tool == "diskspd"}


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A file or drive of a command. threads, size_bytes: its own, where a parameter file of sqlio has them."""

    text: str
    place: SourceLocation
    threads: int | None = None
    size_bytes: int | None = None
    weight: int = 1
    """How often it is taken in a queue of several targets, in proportion to the others."""


@dataclass(slots=True)
class CommandSettings:
    """What a command asks for. Sizes in bytes; the used part of a target is [base, end), None: up to its end."""

    command: CommandLine
    size_bytes: int
    outstanding: int
    threads: int
    duration_s: int
    warmup_s: int
    read_percent: int
    random_percent: int = 0
    grid_bytes: int | None = None
    stride_bytes: int | None = None
    """From one sequential I/O to the next; None: they follow each other."""
    is_interlocked: bool = False
    passes: int = 1
    """Of a stride: each begins one I/O further, before the first one follows again."""
    thread_stride_bytes: int = 0
    distribution: PlaceDistribution | None = None
    shares_queue: bool = False
    """All targets are in one queue: of each thread, where threads have positions of their own."""
    base_bytes: int = 0
    end_bytes: int | None = None
    creates: bool = False
    direct: bool = False
    durable_writes: bool = False
    rate_iops: float | None = None
    """Per thread and target."""
    burst: int = 0
    pause_s: float = 0.0
    compresses: bool = True
    seed: int = 0
    targets: list[CommandTarget] = field(default_factory=list)

    @property
    def place(self) -> SourceLocation:
        """Where the command is."""
        return self.command.place

    @property
    def tool(self) -> ToolName:
        """Whose command it is."""
        return self.command.tool


def read_settings(command: CommandLine, problems: Problems) -> CommandSettings | None:
    """The settings of a command; None after a problem was noted."""
    before = len(problems.errors)
    values: dict[str, str] = {}
    given: list[tuple[str, str]] = []
    targets: list[str] = []
    words = iter(command.words)
    for word in words:
        row = option_of(command.tool, word)
        if word[:1] in _DASHES:
            what = f"{shorten(word)}: begins with a long dash, which {command.tool} takes for a file"
            problems.error(command.place, what, "write a hyphen: -")
            continue
        if row is None and word[0] != "-":
            targets.append(word)
            continue
        if targets and command.tool == "diskspd":
            what = f"{shorten(word)}: an option behind a target, which diskspd refuses"
            problems.error(command.place, what, "write options first")
        if row is None:
            problems.error(command.place, f"{shorten(word)}: {command.tool} has no such option", "correct it")
        else:
            _take(command, row, word, words, values, problems)
            given.append((row.letters, word[1 + len(row.letters) :]))
    for what, accepted in why_refused(given) if command.tool == "diskspd" else ():
        problems.error(command.place, f"diskspd: {what}", accepted)
    reader = _Reader(command, values, problems)
    settings = reader.settings()
    settings.targets = _targets(command, values, targets, problems)
    if command.tool == "sqlio":
        reader.stripe(settings)
    _check(settings, problems)
    return settings if len(problems.errors) == before else None


def _take(
    command: CommandLine,
    row: CommandOption,
    word: str,
    words: Iterator[str],
    values: dict[str, str],
    problems: Problems,
) -> None:
    """Notes the value of one option, or why it is refused."""
    value = word[1 + len(row.letters) :]
    if row.effect is OptionEffect.REFUSED:
        problems.error(command.place, f"{shorten(word)} is not supported: {row.meaning}")
    elif row.effect is OptionEffect.DOES:
        if not value and command.tool == "sqlio" and row.form is not ValueForm.NOTHING:
            value = next(words, "")  # sqlio takes the next word
        if row.form is ValueForm.NOTHING and value:
            problems.error(command.place, f"{shorten(word)}: {command.tool} has no such option", "correct it")
        elif not value and row.key == "warmup_s":
            values[row.key] = "0"  # as in diskspd
        elif not value and row.form in _NEEDS_VALUE:
            problems.error(
                command.place,
                f"{shorten(word)}: no value",
                f"write it behind -{row.letters}, without a blank",
            )
        elif row.key == "caching":
            values[row.key] = values.get(row.key, "") + (value or "u")
        else:
            if values.get(row.key, value) != value:
                problems.notice(command.place, f"{shorten(word)}: given twice; the last one counts")
            values[row.key] = value


class _Reader:
    """Turns the texts of a command's options into settings."""

    def __init__(self, command: CommandLine, values: dict[str, str], problems: Problems) -> None:
        self._command = command
        self._values = values
        self._problems = problems
        self._block_bytes = 0

    def settings(self) -> CommandSettings:
        """All but the targets."""
        settings = self._sqlio() if self._command.tool == "sqlio" else self._diskspd()
        for name in ("size_bytes", "outstanding", "threads", "duration_s"):
            if getattr(settings, name) < 1:
                what = f"{name.removesuffix('_bytes').removesuffix('_s')} 0"
                self._error(what + (": no load is made" if name == "duration_s" else ""), "write 1 or more")
        return settings

    def _sqlio(self) -> CommandSettings:
        direction, order = self._values.get("direction", "").upper(), self._values.get("order", "").lower()
        if direction not in ("", "R", "W"):
            self._error(f"-k{shorten(direction)}", "write -kR or -kW")
        if direction and "read_percent" in self._values:
            self._error("-k with -T", "write one of them")
        caching = (self._values.get("caching") or "N").upper()
        if caching not in ("N", "Y", "H", "S"):
            self._error(f"-B{shorten(caching)}", "write -BN, -BY, -BH or -BS")
        size_bytes = self._number("size_kib", 2) << 10
        return CommandSettings(
            command=self._command,
            size_bytes=size_bytes,
            outstanding=max(self._number("outstanding", 1), 1),  # with -o0 a thread waits for each I/O
            threads=self._number("threads", 1),
            duration_s=self._number("duration_s", 30),
            warmup_s=0,
            read_percent=self._percent("read_percent", 0 if direction == "W" else 100),
            random_percent=100 if order == "random" else 0,
            base_bytes=self._number("start_block", 0) * size_bytes,
            direct=caching in ("N", "H"),
            durable_writes=caching in ("N", "S"),
        )

    def stripe(self, settings: CommandSettings) -> None:
        """Each thread goes down its columns of a table: a row is a stripe of so many blocks, and -i counts the rows."""
        if self._values.get("order", "").lower() in ("random", "sequential"):
            return
        blocks, rows = self._number("order", _STRIPE_BLOCKS), self._number("run_ios", _RUN_IOS)
        counts = {target.threads or settings.threads for target in settings.targets} or {settings.threads}
        threads = min(counts)
        if len(counts) > 1:
            what = f"-f{blocks} with files of {threads} and of {max(counts)} threads is not supported"
            self._error(what, "give each file its own command")
        elif not blocks or not rows or blocks % max(threads, 1):
            what = f"-f{blocks} with {threads} threads and -i{rows}"
            self._error(what, "write -f as a multiple of the threads, or -frandom, or -fsequential")
        else:
            size_bytes, columns = settings.size_bytes, blocks // threads
            if blocks > 1:
                settings.stride_bytes = blocks * size_bytes
                settings.passes = columns
                settings.thread_stride_bytes = columns * size_bytes
            if blocks > 1 or rows * size_bytes < _WHOLE_BYTES:
                settings.end_bytes = settings.base_bytes + blocks * rows * size_bytes

    def _diskspd(self) -> CommandSettings:
        self._block_bytes = self._size("size_bytes", 64 << 10)
        caching = self._caching()
        base, length = self._base()
        create, end = self._size("create_bytes", 0), self._size("end_bytes", 0)
        ends = [one for one in (create, end, base + length if length else 0) if one]
        random_percent = self._percent("random_percent", 100 if "random_grid" in self._values else 0)
        write_percent = self._percent("write_percent", 0)
        self._check_together(random_percent, write_percent)
        if "parallel" in self._values and self._number("outstanding", 2) > 1:
            self._error("-p is not supported: I/Os in flight go to different places", "write -o1 with it")
        data = self._data()
        threads = self._number("all_threads", self._number("threads", 1))
        burst = self._number("burst", 0)
        return CommandSettings(
            command=self._command,
            size_bytes=self._block_bytes,
            outstanding=self._outstanding(),
            threads=threads,
            duration_s=self._number("duration_s", 10),
            warmup_s=self._number("warmup_s", 5),
            read_percent=100 - write_percent,
            random_percent=random_percent,
            grid_bytes=self._grid() if random_percent else None,
            stride_bytes=self._stride(),
            is_interlocked="interlocked_stride" in self._values,
            thread_stride_bytes=self._size("thread_stride_bytes", 0),
            distribution=self._distribution(random_percent),
            shares_queue=self._shares_queue(),
            base_bytes=base,
            end_bytes=min(ends) if ends else None,
            creates=bool(create),
            direct=bool({"h", "u"} & caching),
            durable_writes=bool({"h", "w"} & caching),
            rate_iops=self._rate(),
            burst=max(burst // max(threads, 1), 1) if burst else 0,
            pause_s=self._number("pause_ms", 0) / 1000,
            compresses="random_data" not in self._values and not data,
            seed=self._number("seed", 1) if self._values.get("seed") else int("seed" in self._values),
        )

    def _shares_queue(self) -> bool:
        return "all_outstanding" in self._values and "all_threads" in self._values

    def _outstanding(self) -> int:
        if "all_outstanding" in self._values and not self._shares_queue():
            place = self._command.place
            self._problems.notice(place, "-O has no effect without -F, as in diskspd; -o counts")
        return self._number("all_outstanding" if self._shares_queue() else "outstanding", 2)

    def _distribution(self, random_percent: int) -> PlaceDistribution | None:
        text = self._values.get("distribution")
        if text is None:
            return None
        if not random_percent:
            self._error(f"-rd{shorten(text)} without random I/O, which diskspd refuses", "write -r or -rs")
            return None
        try:
            return read_distribution(
                text, block_bytes=self._block_bytes, grid_bytes=self._grid(), size=self._bytes_or_none
            )
        except DistributionError as error:
            self._error(error.what, error.accepted)
            return None

    def _check_together(self, random_percent: int, write_percent: int) -> None:
        """Options that diskspd or Linerate refuses together."""
        for one, other in EXCLUSIVE:
            if one in self._values and other in self._values:
                self._error(f"-{_LETTERS[one]} with -{_LETTERS[other]}", "write one of them")
        if ":" in self._values.get("base", "") and "end_bytes" in self._values:
            self._error("-f with a length in -B", "write one of them")
        if self._values.get("random_percent") and not random_percent:
            self._error("-rs0", "leave it out: I/O is sequential without it")
        if 0 < random_percent < 100 and 0 < write_percent < 100:
            what = (
                f"-rs{random_percent} with -w{write_percent} is not supported: diskspd gives each sequential "
            )
            self._error(f"{what}part one direction, here each I/O has its own", "leave one of them out")

    def _stride(self) -> int | None:
        key = "interlocked_stride" if "interlocked_stride" in self._values else "stride"
        if key not in self._values:
            return None
        letters, stride = _LETTERS[key], self._size(key, self._block_bytes)
        if stride % SECTOR_BYTES:
            what = f"-{letters}{self._values[key]}: not a multiple of {SECTOR_BYTES} bytes"
            self._error(what, "disks move whole sectors")
        elif stride < self._block_bytes:
            what = f"-{letters}{self._values[key]} is not supported: less than an I/O, so that they overlap"
            self._error(what, f"write -{letters}")
        return stride if stride > self._block_bytes else None

    def _data(self) -> str:
        """The size of the write data; empty: none is given."""
        data = self._values.get("data", "")
        if "," in data:
            self._error(
                f"-Z{shorten(data)}: write data from a file is not made", "write -Zr, or a size alone"
            )
        elif data and self._bytes(data, "data") < self._block_bytes:
            self._error(f"-Z{shorten(data)}: less than an I/O, which diskspd refuses", "write a larger size")
        return data

    def _error(self, what: str, accepted: str) -> None:
        self._problems.error(self._command.place, f"{self._command.tool}: {what}", accepted)

    def _number(self, key: str, default: int) -> int:
        text = self._values.get(key)
        if text is None:
            return default
        text = text.strip()  # "-o 8" in quotes
        if re.fullmatch(r"\d{1,10}", text) and int(text) <= _WHOLE_MAX:
            return int(text)
        what = f"more than {_WHOLE_MAX:,}" if re.fullmatch(r"\d+", text) else "no whole number"
        self._error(f"{key.replace('_', ' ')} {shorten(text)!r}: {what}", "write digits")
        return default or 1

    def _percent(self, key: str, default: int) -> int:
        number = self._number(key, default)
        if number > 100:
            self._error(f"{key.replace('_', ' ')} {number}", "write 0 to 100")
        return min(number, 100)

    def _size(self, key: str, default: int) -> int:
        text = self._values.get(key)
        if text and key in _NEVER_ZERO and not text.strip("0bBkKmMgGtT"):
            self._error(f"{key.removesuffix('_bytes').replace('_', ' ')} {text}: zero", "write 512 or more")
            return default or SECTOR_BYTES
        return default if not text else self._bytes(text, key) or default or 1

    def _bytes_or_none(self, text: str) -> int | None:
        match = _SIZE.fullmatch(text)
        if match is None:
            return None
        unit = match[2].lower()
        size = int(match[1]) * (self._block_bytes if unit == "b" else _FACTORS[unit])
        return size if size <= _NUMBER_MAX else None

    def _bytes(self, text: str, key: str) -> int:
        size = self._bytes_or_none(text)
        if size is not None:
            return size
        self._error(f"{key.removesuffix('_bytes').replace('_', ' ')} {shorten(text)!r}: no size", "write 64K")
        return 0

    def _base(self) -> tuple[int, int]:
        first, _, length = self._values.get("base", "").partition(":")
        return self._bytes(first, "base") if first else 0, self._bytes(length, "length") if length else 0

    def _grid(self) -> int:
        grid = self._size("random_grid", self._block_bytes)
        if grid % SECTOR_BYTES:
            self._error(
                f"-r{self._values['random_grid']}: not a multiple of {SECTOR_BYTES} bytes", "write 4K"
            )
        return grid

    def _caching(self) -> set[str]:
        text = self._values.get("caching", "").lower() + ("h" if "uncached" in self._values else "")
        letters = set(text)
        if wrong := letters - set("bhruw"):
            what = "memory-mapped I/O is not made" if "m" in wrong else "no such letter"
            self._error(f"-S{shorten(text)}: {what}", "write -Sh, -Su, -Sw, -Sr or -Sb")
        elif any(sum(letter in group for letter in text) > 1 for group in ("bhru", "hw")):
            self._error(
                f"-S{shorten(text)}: these exclude each other", "write -Sh, -Su, -Suw, -Sw, -Sr or -Sb"
            )
        return letters | ({"u"} if "r" in letters else set())

    def _rate(self) -> float | None:
        text = self._values.get("rate")
        if text is None:
            return None
        match = _RATE.fullmatch(text)
        if match is None:
            self._error(f"-g{shorten(text)}: no rate", "write bytes per ms, or I/Os per s with an i")
            return None
        rate = float(match[1]) if match[2] else float(match[1]) * 1000 / max(self._block_bytes, 1)
        return rate or None


def _targets(
    command: CommandLine, values: dict[str, str], words: list[str], problems: Problems
) -> list[CommandTarget]:
    """Files and drives."""
    place = command.place
    if "parameter_file" in values:
        targets = list(_of_parameter_file(command, values["parameter_file"], problems))
        if words:
            problems.error(place, f"sqlio: {shorten(words[0])} beside -F", "name targets in one place")
        if "drives" in values or "raw_drives" in values:
            problems.notice(place, "-d and -R have no effect beside -F: the parameter file names the targets")
    else:
        drives = [f"{letter}:" for letter in re.sub(r"[,:\s]", "", values.get("drives", ""))]
        raw = [f"{one}:" if one.isalpha() else f"#{one}" for one in _listed(values.get("raw_drives", ""))]
        files = (
            [drive + word for drive in drives for word in words or ["\\" + _DEFAULT_FILE]]
            if drives
            else words
        )
        if command.tool == "sqlio" and not (files or raw):
            files = [_DEFAULT_FILE]
        targets = [CommandTarget(text, place) for text in (*files, *raw)]
        if command.weights:
            weighed = zip(targets, command.weights, strict=True)
            targets = [replace(target, weight=weight) for target, weight in weighed]
    if not targets and not any(where.startswith(f"{place}: ") for where, _ in problems.errors):
        problems.error(place, f"{command.tool}: no file or drive", _NO_TARGET)
    names: set[str] = set()
    for target in targets:
        if (name := target.text.lower()) in names:
            problems.error(
                target.place, f"{shorten(target.text)}: a target twice", "name it once, with more threads"
            )
        names.add(name)
    return targets


def _listed(text: str) -> list[str]:
    return [one for one in re.split(r"[,\s]+", text) if one]


def _of_parameter_file(command: CommandLine, name: str, problems: Problems) -> Iterator[CommandTarget]:
    """Lines of sqlio's parameter file: path, threads, CPU mask, size in MB."""
    path = file_of(command.place, name, problems)
    try:
        lines = text_of(path, read_bytes(path)).splitlines()
    except UserError as error:
        problems.error(command.place, f"-F{name}: {error.message}", error.hint)
        return
    for number, line in enumerate(lines, start=1):
        place = SourceLocation(str(path), number)
        found = re.fullmatch(
            r'\s*("[^"]+"|\S+)\s+(\d{1,5})(?:\s+(\S+))?(?:\s+(\d{1,9}))?\s*', _without_comment(line)
        )
        if found is not None:
            size = int(found[4]) << 20 if found[4] else None
            yield CommandTarget(found[1].strip('"'), place, int(found[2]) or 1, size)
        elif _without_comment(line).strip():
            problems.error(place, f"{shorten(line)}: no target", "write path, threads, mask, and size in MB")


def _without_comment(line: str) -> str:
    """A line of a parameter file up to `#`, or to the `*` of a comment behind its size."""
    return re.split(r"#|\s\*", line, maxsplit=1)[0]


def _check(settings: CommandSettings, problems: Problems) -> None:
    """What no single option can say."""

    def error(what: str, accepted: str) -> None:
        problems.error(settings.place, f"{settings.tool}: {what}", accepted)

    if settings.size_bytes % SECTOR_BYTES:
        error(
            f"size {settings.size_bytes}: not a multiple of {SECTOR_BYTES} bytes", "disks move whole sectors"
        )
    for target in settings.targets if settings.creates else ():
        if _DRIVE.fullmatch(target.text):
            error(f"-c makes files, and {shorten(target.text)} is a drive", "write -f for its used part")
    if settings.tool == "diskspd" and settings.thread_stride_bytes and settings.threads < 2:
        error("-T with one thread", "write -t2 or more, or -B for the first byte")
    if settings.end_bytes is not None and settings.end_bytes - settings.base_bytes < settings.size_bytes:
        error(
            f"no room for an I/O of {size_text(settings.size_bytes)} in the used part",
            "write a larger -c or -f",
        )
    if (settings.pause_s > 0) != (settings.burst > 0):
        error("-i and -j go together", "write both: so many I/Os, then the pause")
    if settings.pause_s and settings.outstanding > 1:
        what = "-i and -j with several I/Os in flight is not supported: a thread pauses as a whole"
        error(what, "write -o1, or leave them out")
    if settings.shares_queue and any(not target.weight for target in settings.targets):
        error(
            "-O with a target of Weight 0, which diskspd refuses", "write 1 or more, or leave the target out"
        )
    if settings.pause_s and settings.rate_iops:
        error("-g with -i and -j", "write one of them")
