"""What a job does to files, one operation on each: which, in what order, and how long it goes on.

fio's engines open each file of a job once, and this open makes, looks up or removes it; the blocks of the file are
counted and not moved. So one operation on each file is the whole of a job, and what concerns blocks means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from linerate.workload.files import FileOp
from linerate.workload.fio.options import SectionOptions
from linerate.workload.fio.refused import ENTRY_OPERATIONS

FILES_MAX = 20_000_000
"""Files of one structure that the data plane holds."""
_ORDERS = ("roundrobin", "sequential")
_PACED = ("rate", "rate_iops", "thinktime", "io_size", "number_ios", "offset", "offset_increment", "verify")
_FLUSHED = ("fsync", "fdatasync", "fsync_on_close", "end_fsync")
_STATS = ("stat", "lstat", "statx")


@dataclass(frozen=True, slots=True)
class EntryLoad:
    """What a job does to each of its files. select: once in their order, round and round, or at random.

    lays_out: fio makes the files that are missing before the run.
    """

    operation: FileOp
    select: Literal["once", "sequential", "random"]
    lays_out: bool


def read_entries(options: SectionOptions, *, writes: bool) -> EntryLoad | None:
    """What a job with such an engine does; None with another engine. What is not supported is noted.

    writes: rw= has writes, and fio flushes files after them.
    """
    operation = ENTRY_OPERATIONS.get(options.text("ioengine", ""))
    if operation is None:
        return None
    for name in _PACED:
        if options.is_on(name):
            reason = "the engine has one operation for each file, and this concerns blocks"
            options.refuse(name, reason, "leave it out")
    for name in _FLUSHED if operation == "create" and writes else ():
        if options.is_on(name):
            options.refuse(name, "new files are not flushed", "leave it out")
    return EntryLoad(operation, _select(options, operation), operation != "create" and _lays_out(options))


@dataclass(frozen=True, slots=True)
class EntryFiles:
    """The files of a job with all its copies. file_bytes: of each; None: not said. total_bytes: size=, in bytes.
    least_bytes: a block."""

    directories: Sequence[str]
    name_format: str
    number: int
    copies: int
    file_bytes: int | None
    total_bytes: int | None
    least_bytes: int


def check_files(options: SectionOptions, entries: EntryLoad, files: EntryFiles) -> None:
    """Refuses names that a structure does not have, and files that fio would leave out."""
    if "filename" in options:
        reason = "a structure names its files itself"
        options.refuse("filename", reason, "write directory= and nrfiles= instead")
    if len(files.directories) > 1:
        reason = "all files of a job are in one folder"
        options.refuse("directory", reason, "write a job with stonewall for each folder")
    for name, number, part in (("nrfiles", files.number, "$filenum"), ("numjobs", files.copies, "$jobnum")):
        if number > 1 and part not in files.name_format:
            reason = f"without {part} several files of the job have one name"
            options.refuse("filename_format", reason, f"write {part} into it, or {name}=1")
    if "/" in files.name_format:
        reason = "all files of a job are in one folder"
        options.refuse("filename_format", reason, "leave the folder out")
    if files.file_bytes is None:
        if entries.lays_out:
            options.error("how large its files are is not said", "write filesize=")
        return
    if files.file_bytes < files.least_bytes:
        what = f"its files have {files.file_bytes} bytes, fewer than a block of bs=: fio leaves them out"
        options.error(what, "write a larger filesize=, or a smaller bs=")
    if files.total_bytes is not None and files.total_bytes < files.number * files.file_bytes:
        reason = f"it is less than nrfiles={files.number} files have: fio uses the first of them only"
        options.refuse("size", reason, "leave it out, and write fewer nrfiles=")


def _lays_out(options: SectionOptions) -> bool:
    if "stat_type" in options and options.text("stat_type", "stat") not in _STATS:
        options.refuse("stat_type", "no way to look up a file that fio has", "write stat_type=stat")
    return not options.flag("create_on_open")


def _select(options: SectionOptions, operation: FileOp) -> Literal["once", "sequential", "random"]:
    """The order of files; a job that goes on after each had its turn looks them up."""
    again = options.flag("time_based") and options.is_on("runtime")
    loops = options.number("loops", 1, 1, 1 << 30)
    if operation != "getattr":
        reason = "after one pass over its files fio opens files that are there already"
        if operation == "delete":
            reason = "after one pass no file is left, and fio ends with an error"
        if again:
            options.refuse("time_based", reason, "leave it out: runtime= ends the job earlier")
        if loops > 1:
            options.refuse("loops", reason, "leave it out, and write more nrfiles=")
    elif not again and loops > 1:
        reason = "files are looked up once each, or for a time"
        options.refuse("loops", reason, "write time_based and runtime=")
    order = options.text("file_service_type", "roundrobin").partition(":")[0]
    if order == "random" and operation == "getattr" and again:
        options.notice("file_service_type", "each file is drawn anew; fio goes on once all had their turn")
        return "random"
    if order not in _ORDERS:
        reason = "each file has its turn once, in the order of their numbers"
        options.refuse("file_service_type", reason, "write file_service_type=sequential")
    return "sequential" if again and operation == "getattr" else "once"
