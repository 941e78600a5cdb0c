"""Sections as jobs: defaults of `[global]` applied, keywords looked up, values read and checked one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.workload.fio.entries.load import FILES_MAX, EntryFiles, EntryLoad, check_files, read_entries
from linerate.workload.fio.lexer import JobOption, JobSection
from linerate.workload.fio.load import JobLoad, read_load, smallest, word_of
from linerate.workload.fio.options import SectionOptions
from linerate.workload.fio.tables import find_keyword, nearest_keyword
from linerate.workload.fio.values import Amount, JobValueError, filenames, time_s
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.url import in_dev

_COPIES_MAX = 4096
_SECTIONS_MAX = 4096
_FILES_MAX = 4096
_ALL_FILES_MAX = 16_384
_CONTINUES = {"none": False, "0": False, "all": True, "1": True, "io": True, "read": True, "write": True}
_FORMAT = "$jobname.$jobnum.$filenum"


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

    @property
    def total_bytes(self) -> int | None:
        """`size`, if it is no percentage."""
        return None if self.size is None or self.size.is_percent else self.size.value

    @property
    def each_bytes(self) -> int | None:
        """The size of each file: its own, or its part of the whole."""
        total = self.total_bytes
        return self.file_bytes or (total // self.number if total else None)


@dataclass(frozen=True, slots=True)
class FioJob:
    """A job of the file. None of a time or of an amount: not given."""

    name: str
    section: str
    place: SourceLocation
    load: JobLoad
    entries: EntryLoad | None
    """What it does to files of a structure; None: it reads and writes."""
    files: JobFiles
    copies: int
    stonewall: bool
    wait_for: str | None
    """The job that it waits for, by name."""
    runtime_s: float | None
    time_based: bool
    ramp_s: float
    delay_s: float
    io_bytes: int | None
    number_ios: int | None
    loops: int
    seed: int | None
    error_limit: int | None
    ends_with_first: bool
    options: Mapping[str, str]
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
        job = _read_job(section, SectionOptions(section, options, problems))
        most = FILES_MAX if job.entries else _ALL_FILES_MAX
        if job.copies * job.files.number > most:
            what = f"[{job.name}]: {job.copies * job.files.number:,} files; at most {most:,}"
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
            problems.error(option.place, f"{option.text}: unknown keyword {shorten(option.keyword)!r}", hint)
            continue
        if option.value is None and not row.alone:
            problems.error(option.place, f"{option.text}: no value", f"write {row.name}={row.accepted}")
            continue
        into.pop(row.name, None)
        into[row.name] = option


def _read_job(section: JobSection, options: SectionOptions) -> FioJob:
    options.check_effects()
    load = read_load(options)
    entries = read_entries(options, writes=load.read_percent < 100)
    copies = options.number("numjobs", 1, 1, _COPIES_MAX)
    files = _files(options, FILES_MAX if entries else _FILES_MAX)
    if entries is None:
        _check_order(options, files)
        _check_flush(options, files, load)
        _check_fill(options, files)
    else:
        check_files(options, entries, _entry_files(files, load, copies))
    return FioJob(
        name=options.text("name", section.name),
        section=section.name,
        place=section.place,
        load=load,
        entries=entries,
        files=files,
        copies=copies,
        stonewall=options.flag("stonewall"),
        wait_for=options.text("wait_for", "") or None,
        runtime_s=options.value("runtime", time_s, 0.0) or None,
        time_based=_is_time_based(options),
        ramp_s=options.value("ramp_time", time_s, 0.0),
        delay_s=options.value("startdelay", time_s, 0.0),
        io_bytes=options.value("io_size", options.size, 0) or None,
        number_ios=options.number("number_ios", 0, 0, 1 << 40) or None,
        loops=options.number("loops", 1, 1, 1 << 30),
        seed=options.number("randseed", 0, 0, 1 << 62) if "randseed" in options else None,
        error_limit=None if options.value("continue_on_error", word_of(_CONTINUES), False) else 1,
        ends_with_first=any(options.is_on(word) for word in ("exitall", "exit_what")),
        options=options.as_written(),
        start_commands=options.command("exec_prerun"),
        end_commands=options.command("exec_postrun"),
    )


def _is_time_based(options: SectionOptions) -> bool:
    if not options.flag("time_based") or options.is_on("runtime"):
        return options.flag("time_based")
    options.notice("time_based", "no effect without runtime=, as in fio: the job ends by its size")
    return False


def _entry_files(files: JobFiles, load: JobLoad, copies: int) -> EntryFiles:
    return EntryFiles(
        directories=files.directories,
        name_format=files.name_format,
        number=files.number,
        copies=copies,
        file_bytes=files.each_bytes,
        total_bytes=files.total_bytes if files.file_bytes else None,
        least_bytes=min(smallest(load.read_sizes), smallest(load.write_sizes)),
    )


def _check_order(options: SectionOptions, files: JobFiles) -> None:
    """Of several files that are read or written, none is before another."""
    number = files.number if files.names is None else len(files.names)
    if number > 1 and options.text("file_service_type", "roundrobin") != "roundrobin":
        reason = "every file of a job has its own queue"
        options.refuse("file_service_type", reason, "leave it out, or write file_service_type=roundrobin")


def _check_flush(options: SectionOptions, files: JobFiles, load: JobLoad) -> None:
    """fio goes round the files of a job with its flushes as with its I/Os."""
    number = files.number if files.names is None else len(files.names)
    if number > 1 and load.flush is not None:
        name = "fsync" if options.is_on("fsync") else "fdatasync"
        reason = "fio flushes the next file of a job, not the one that it has written"
        options.refuse(name, reason, "write a job for each file")


def _check_fill(options: SectionOptions, files: JobFiles) -> None:
    """A device has an end, which its size says; a file system is full only once it has said so."""
    if not options.is_on("fill_device"):
        return
    is_device = files.names is not None and all(in_dev(name) for name in files.names)
    if not is_device or any(name in options for name in ("size", "filesize", "io_size")):
        reason = "a run ends after a time or an amount, not with an error of a full file system"
        options.refuse("fill_device", reason, "write size= instead")


def _files(options: SectionOptions, most: int) -> JobFiles:
    return JobFiles(
        names=options.value("filename", filenames, None),
        directories=options.value("directory", filenames, ()),
        name_format=options.value("filename_format", _name_format, _FORMAT),
        number=options.number("nrfiles", 1, 1, most),
        file_bytes=options.value("filesize", options.size, 0) or None,
        size=_given(options.value("size", options.amount, None)),
        offset=options.value("offset", options.amount, Amount(0)),
        increment=options.value("offset_increment", options.amount, Amount(0)),
        is_null=options.text("ioengine", "") == "null",
    )


def _given(size: Amount | None) -> Amount | None:
    """0 means that it is not given, as in fio."""
    return size if size is not None and size.value else None


def _name_format(text: str) -> str:
    if "$clientuid" in text:
        raise JobValueError("is not supported: there are no clients of fio")
    return text
