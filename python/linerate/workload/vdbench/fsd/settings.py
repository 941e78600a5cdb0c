"""What FSDs, FWDs and the RDs that use them say, as typed settings: checked one by one, not yet combined into runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from pydantic import SecretStr

from linerate.errors import UserError
from linerate.quantity import number_text, size_text
from linerate.workload.files import FileOp
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import RATE_IOPS_MAX
from linerate.workload.url import SMB_FOLDER_FORM, Target, is_share, parse_smb_folder
from linerate.workload.vdbench.blocks import Instance
from linerate.workload.vdbench.hosts import HostDefinitions
from linerate.workload.vdbench.settings import (
    COMPRESSION_RATIO_MAX,
    Fields,
    Flags,
    RunTimes,
    read_process,
    read_times,
    whole_numbers,
)
from linerate.workload.vdbench.tables import BLOCK_RD_KEYWORDS, FILE_LOOP_KEYWORDS
from linerate.workload.vdbench.values import CURVE_RATE, MAX_RATE

OPERATIONS: tuple[FileOp, ...] = get_args(FileOp)
_ANCHOR_FORM = f"write anchor=/path/of/a/folder, or anchor={SMB_FOLDER_FORM}"
_MOST_BYTES = 1 << 62
_MOST_THREADS = 4096
_BLOCK_BYTES_MAX = 1 << 30
COPYING: tuple[FileOp, ...] = ("copy", "move")
"""Operations with a target."""
_BYTES = ("sizes", "xfersize", "totalsize", "wss")

Sizes = tuple[tuple[int, float], ...]
LoopValue = float | str


@dataclass(frozen=True, slots=True)
class Fsd:
    """A file system definition."""

    name: str
    place: SourceLocation
    anchor: str
    user: str | None
    secret: SecretStr | None
    depth: int
    width: int
    files: int
    sizes: Sizes
    files_in: Literal["bottom", "all"]
    total_bytes: int | None
    working_set_bytes: int | None
    flags: Flags | None
    shared: bool
    """Several hosts may use it at the same time."""


@dataclass(frozen=True, slots=True)
class Fwd:
    """A file system workload definition."""

    name: str
    place: SourceLocation
    fsd_names: tuple[str, ...] | None
    operation: FileOp
    target: str | None
    """Name of the FSD that copies go to."""
    read_percent: float | None
    stop_after_blocks: int | None
    stop_after_percent: float | None
    select: Literal["sequential", "random", "once"]
    random_io: bool
    shared_files: bool
    sizes: Sizes
    skew: float | None
    threads: int
    flags: Flags | None
    hosts: tuple[str, ...]
    """Labels of the hosts that run it, in the order of their HDs."""


@dataclass(frozen=True, slots=True)
class Formatting:
    """format= of an RD."""

    wanted: bool = False
    only: bool = False
    delete: bool = True
    files: bool = True
    once: bool = False
    limited: bool = False
    clean: bool = False


@dataclass(frozen=True, slots=True)
class FileLoop:
    """A for loop of an RD: a value for each pass, and its text."""

    keyword: str
    values: tuple[LoopValue, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileRd:
    """A run definition with FWDs."""

    name: str
    place: SourceLocation
    fwd_names: tuple[str, ...]
    operations: tuple[FileOp, ...]
    rates: tuple[float, ...]
    process: Literal["deterministic", "poisson", "uniform"]
    formatting: Formatting
    times: RunTimes
    pause_s: float
    loops: tuple[FileLoop, ...]
    flags: Flags | None
    start_commands: tuple[str, ...]
    end_commands: tuple[str, ...]


def read_fsd(instance: Instance, problems: Problems) -> Fsd:
    """One FSD."""
    fields = Fields(instance, problems)
    anchor = _anchor(fields, problems)
    word = (fields.texts("distribution") or ("bottom",))[0].lower()
    if word not in ("bottom", "all") and (value := fields.value("distribution")):
        fields.wrong(value, "not bottom or all", "write distribution=bottom or distribution=all")
    return Fsd(
        name=instance.name,
        place=instance.place,
        anchor=anchor.url,
        user=anchor.user,
        secret=anchor.secret,
        depth=fields.whole("depth", 1, 1, 64),
        width=fields.whole("width", 1, 1),
        files=fields.whole("files", 10, 0),
        sizes=_sizes(fields, "sizes", _MOST_BYTES),
        files_in="all" if word == "all" else "bottom",
        total_bytes=fields.divided("totalsize", 0) or None,
        working_set_bytes=fields.divided("workingsetsize", 0) or None,
        flags=fields.flags(),
        shared=fields.yes("shared"),
    )


def _anchor(fields: Fields, problems: Problems) -> Target:
    """Where the structure is: a path, or a folder of a share."""
    instance = fields.instance
    text = (fields.texts("anchor") or ("",))[0]
    if not text:
        problems.error(instance.place, f"fsd={instance.name}: no anchor", _ANCHOR_FORM)
    elif is_share(text):
        try:
            return parse_smb_folder(text, os.environ)
        except UserError as error:
            problems.error(instance.place, f"fsd={instance.name}: {error.message}", error.hint)
    elif "://" in text:
        scheme = text.split(":", 1)[0]
        what = f"fsd={instance.name}: structures on {scheme}:// are not supported"
        problems.error(instance.place, what, _ANCHOR_FORM)
    return Target("file", text)


def _sizes(fields: Fields, keyword: str, most: int) -> Sizes:
    value = fields.value(keyword)
    if value is None:
        return ((4096, 100.0),)
    numbers = value.numbers
    if len(numbers) == 1:
        numbers = (numbers[0], 100.0)
    if keyword == "sizes" and len(numbers) == 2 and numbers[1] == 0 and 0 < numbers[0] <= most:
        return ((int(numbers[0]), 0.0),)
    sizes, percents = numbers[::2], numbers[1::2]
    if len(sizes) != len(percents) or not all(0 < size <= most and size % 1 == 0 for size in sizes):
        fields.wrong(value, "not a size, or pairs of size and percentage", f"write {keyword}=(4k,60,8k,40)")
    elif any(percent <= 0 for percent in percents) or int(round(sum(percents), 6)) != 100:
        fields.wrong(
            value, f"the percentages add up to {sum(percents):g}, not 100", f"write {keyword}=(4k,60,8k,40)"
        )
    else:
        return tuple((int(size), percent) for size, percent in zip(sizes, percents, strict=True))
    return ((4096, 100.0),)


def read_fwd(instance: Instance, hosts: HostDefinitions, problems: Problems) -> Fwd:
    """One FWD."""
    fields = Fields(instance, problems)
    labels = hosts.labels(fields.value("host"), problems)
    operations = _operations(fields, "operation")
    if len(operations) > 1 and (value := fields.value("operation")):
        fields.wrong(value, "one operation expected in an FWD", "a list belongs to operations= in the RD")
    blocks, percent = _stop_after(fields)
    random_io, shared = _file_io(fields)
    select = _select(fields)
    read_percent = fields.number("rdpct", 0, 0, 100) if fields.value("rdpct") else None
    fwd = Fwd(
        name=instance.name,
        place=instance.place,
        fsd_names=fields.texts("fsd"),
        operation=operations[0] if operations else "read",
        target=_target(fields),
        read_percent=read_percent,
        stop_after_blocks=blocks,
        stop_after_percent=percent,
        select=select,
        random_io=random_io,
        shared_files=shared,
        sizes=_sizes(fields, "xfersize", _BLOCK_BYTES_MAX),
        skew=fields.number("skew", 0, 0, 100) or None,
        threads=fields.whole("threads", 1, 1, _MOST_THREADS),
        flags=fields.flags(),
        hosts=hosts.ordered(labels),
    )
    if instance.name not in ("default", "format"):
        _check_fwd(fwd, problems)
    return fwd


def _check_fwd(fwd: Fwd, problems: Problems) -> None:
    """What contradicts itself in one FWD."""
    if fwd.operation in COPYING and fwd.target is None:
        what = f"fwd={fwd.name}: operation={fwd.operation} needs target="
        problems.error(fwd.place, what, "write target=name, the FSD that files go to")
    if fwd.operation not in COPYING and fwd.target is not None:
        what = f"fwd={fwd.name}: target={fwd.target} goes with operation=copy or move"
        problems.error(fwd.place, what, "leave it out, or write operation=copy")
    if fwd.read_percent is not None and not fwd.random_io:
        problems.error(fwd.place, f"fwd={fwd.name}: rdpct= needs fileio=random", "write fileio=random")
    if fwd.shared_files and fwd.select == "random":
        what = f"fwd={fwd.name}: fileio=(random,shared) and fileselect=random exclude each other"
        problems.error(fwd.place, what, "write fileselect=sequential")
    if (fwd.stop_after_blocks or fwd.stop_after_percent) and not fwd.random_io:
        what = f"fwd={fwd.name}: stopafter= with fileio=sequential is not supported: files would not be whole"
        problems.error(fwd.place, what, "write fileio=random, or leave it out")


def _operations(fields: Fields, keyword: str) -> tuple[FileOp, ...]:
    value = fields.value(keyword)
    found: list[FileOp] = []
    for text in value.texts if value else ():
        word = text.lower()
        if word in OPERATIONS:
            found.append(word)
        elif value:
            fields.wrong(value, f"{text!r} is no operation", f"write {', '.join(OPERATIONS)}")
    return tuple(found)


def _target(fields: Fields) -> str | None:
    value = fields.value("target")
    if value is not None and len(value.texts) != 1:
        fields.wrong(value, "one FSD expected", "write target=name")
    return value.texts[0] if value else None


def _stop_after(fields: Fields) -> tuple[int | None, float | None]:
    value = fields.value("stopafter")
    if value is None:
        return None, None
    number = value.numbers[0]
    if len(value.numbers) != 1 or number == 0 or (number > 0 and number % 1):
        fields.wrong(value, "not a number of blocks or a percentage", "write stopafter=100 or stopafter=50%")
        return None, None
    return (int(number), None) if number > 0 else (None, -number)


def _file_io(fields: Fields) -> tuple[bool, bool]:
    """Random, shared."""
    value = fields.value("fileio")
    words = [text.lower() for text in value.texts] if value else ["sequential"]
    random_io = len(words[0]) >= 1 and "random".startswith(words[0])
    if random_io and (len(words) == 1 or (len(words) == 2 and "shared".startswith(words[1]))):
        return True, len(words) == 2
    if value and (len(words) > 1 or not "sequential".startswith(words[0])):
        accepted = "write fileio=random, fileio=sequential or fileio=(random,shared)"
        fields.wrong(value, "not supported (delete before a write neither)", accepted)
    return False, False


def _select(fields: Fields) -> Literal["sequential", "random", "once"]:
    value = fields.value("fileselect")
    words = [text.lower() for text in value.texts] if value else ["sequential"]
    for select in ("sequential", "random", "once"):
        if len(words) == 1 and select.startswith(words[0]):
            return select
    if sorted(words) == ["once", "sequential"]:
        return "once"
    if value:
        fields.wrong(value, "not supported", "write fileselect=sequential, random or once")
    return "sequential"


def read_file_rd(instance: Instance, problems: Problems) -> FileRd:
    """One RD with FWDs."""
    fields = Fields(instance, problems)
    for keyword in BLOCK_RD_KEYWORDS:
        if value := fields.value(keyword):
            fields.wrong(value, "goes with WDs, and this file has FWDs", "leave it out")
    rates = fields.value("fwdrate")
    if rates is None:
        problems.error(instance.place, f"rd={instance.name}: no fwdrate", "write fwdrate=max, or fwdrate=n")
    for rate in rates.numbers if rates else ():
        if rates and rate == CURVE_RATE:
            fields.wrong(rates, "curve is not supported for FWDs", "write fwdrate=max, or a list of rates")
        elif rates and rate < 0:
            what = "a rate in percent is not supported for FWDs: there is no maximum that it refers to"
            fields.wrong(rates, what, "write fwdrate=n in operations per second, or max")
        elif rates and not 0 < rate <= RATE_IOPS_MAX:
            fields.wrong(rates, "a rate must be above 0 and below 1e9", "write fwdrate=n, or max")
    return FileRd(
        name=instance.name,
        place=instance.place,
        fwd_names=fields.texts("fwd") or (),
        operations=_operations(fields, "operations"),
        rates=rates.numbers if rates else (MAX_RATE,),
        process=cast("Literal['deterministic', 'poisson', 'uniform']", read_process(fields)),
        formatting=_formatting(fields, has_loops=any(key in instance.values for key in _loop_names())),
        times=read_times(fields),
        pause_s=fields.number("pause", 0, 0, 366.0 * 86_400),
        loops=_loops(fields),
        flags=fields.flags(),
        start_commands=fields.commands("startcmd"),
        end_commands=fields.commands("endcmd"),
    )


def _formatting(fields: Fields, *, has_loops: bool) -> Formatting:
    value = fields.value("format")
    if value is None:
        return Formatting()
    words = [text.lower() for text in value.texts]
    if any("no".startswith(word) for word in words):
        return Formatting()
    known = ("restart", "only", "once", "clean", "limited")
    for word in words:
        if word == "complete":
            fields.wrong(value, "complete is not supported", "write format=restart: it makes what is missing")
        elif word not in known and not "yes".startswith(word) and not "directories".startswith(word):
            fields.wrong(value, f"{word!r} is not known", f"write yes, no, directories, {', '.join(known)}")
    if "limited" in words and "only" not in words:
        fields.wrong(value, "limited needs only", "write format=(only,limited)")
    if "once" in words and not has_loops:
        fields.wrong(value, "once goes with for loops", "write format=yes")
    clean = "clean" in words
    return Formatting(
        wanted=True,
        only="only" in words or clean,
        delete=clean or "restart" not in words,
        files=not clean and not any("directories".startswith(word) for word in words),
        once="once" in words,
        limited="limited" in words,
        clean=clean,
    )


def _loop_names() -> Sequence[str]:
    plain = (keyword for keyword in FILE_LOOP_KEYWORDS if keyword != "operations")
    return (*plain, *(f"for{keyword}" for keyword in FILE_LOOP_KEYWORDS))


def _loops(fields: Fields) -> tuple[FileLoop, ...]:
    """The for loops in their order of appearance."""
    loops: list[FileLoop] = []
    for keyword, value in fields.instance.values.items():
        name = keyword.removeprefix("for")
        if name not in FILE_LOOP_KEYWORDS or keyword == "operations":
            continue
        if name == "operations":
            operations = _operations(fields, keyword)
            loops.append(FileLoop("operation", operations, operations))
            continue
        numbers = value.numbers if name in ("rdpct", "compratio") else whole_numbers(value.numbers)
        if not _fits(name, numbers):
            accepted = "whole numbers above 0; rdpct from 0 to 100; compratio from 1 to 25"
            fields.wrong(value, "a value is out of range", accepted)
            continue
        shown = size_text if name in _BYTES else number_text
        loops.append(FileLoop(name, numbers, tuple(shown(number) for number in numbers)))
    return tuple(loops)


def _fits(name: str, numbers: Sequence[float]) -> bool:
    if name == "rdpct":
        return all(0 <= number <= 100 for number in numbers)
    if name == "compratio":
        return all(1 <= number <= COMPRESSION_RATIO_MAX for number in numbers)
    most = {"threads": _MOST_THREADS, "depth": 64, "xfersize": _BLOCK_BYTES_MAX}.get(name, _MOST_BYTES)
    return all(1 <= number <= most for number in numbers)
