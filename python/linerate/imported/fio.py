"""Reads fio's JSON (`--output-format=json` or `json+`; stat.c and json.c of fio 3): one step per group of jobs.

Jobs of one groupid ran at the same time, so they are one step. A group of several entries has the sums of its jobs over
its longest run time, as fio's own group lines have; its percentiles are not known, because percentiles do not add up.
bw is KiB/s and times are ns; fio 2 has io_bytes in KiB and times in us. Service time is clat (submit to complete), or
lat where the file has percentiles of lat only.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from linerate.imported.record import MIB, ToolRun, ToolStep, largest, later, weighted_mean
from linerate.imported.text import FIGURE_MAX, SourceText, shown
from linerate.results import GivenFigures, GivenStep

_VERSION = '"fio version"'
_DOCUMENT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_TRIES_MAX = 100
_HINT = "give the file as fio --output-format=json wrote it"
_ALIASES = {"readwrite": "rw", "blocksize": "bs", "io_size": "io_limit", "blocksize_range": "bsrange"}
_LOAD = (
    *("rw", "bs", "bsrange", "bssplit", "rwmixread", "iodepth", "numjobs", "ioengine", "direct", "sync"),
    *("filename", "directory", "size", "offset", "rate", "rate_iops", "rate_process", "thinktime"),
    *("percentage_random", "random_distribution"),
)
"""Options that make the load and its target."""
_NAME_CHARACTERS_MAX = 60
_KIB = 1024


def is_fio(text: str) -> bool:
    """Whether a text has a document of fio."""
    return _VERSION in text and _DOCUMENT.search(text) is not None


def read_fio(source: SourceText) -> ToolRun:
    """The groups of the last document of a file: earlier ones are interim results. Raises UserError."""
    documents = list(_documents(source))
    if not documents:
        raise source.refuse(0, "no JSON of fio in it", _HINT)
    document = documents[-1]
    reader = _Reader(source, document)
    groups: dict[int, list[_Job]] = {}
    for number, entry in enumerate(reader.entries()):
        job = _Job(reader, number, entry)
        groups.setdefault(job.group, []).append(job)
    several = f"{len(documents)} documents: the last one is read, the others are interim results"
    version = str(document.get("fio version", "")).removeprefix("fio-")
    steps: list[ToolStep] = []
    ended = reader.ended_at()
    for jobs in reversed(groups.values()):  # without job_start only the end of the last group is known
        steps.insert(0, _step(jobs, ended))
        ended = steps[0].started_at
    return ToolRun("fio", version, steps, notes=(several,) if len(documents) > 1 else ())


def _documents(source: SourceText) -> Iterator[Mapping[str, Any]]:
    """fio's documents, with any text between them. The first error is raised if there is no document behind it."""
    decoder = json.JSONDecoder()
    text, place, tries = source.text, 0, 0
    failure: tuple[int, str] | None = None
    while (found := _DOCUMENT.search(text, place)) is not None and tries < _TRIES_MAX:
        begin = found.end() - 1
        try:
            value, place = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            failure = failure or (source.line_at(error.pos), f"no JSON: {error.msg}; is the file cut off?")
        except (RecursionError, ValueError) as error:
            why = "too deep" if isinstance(error, RecursionError) else "a number with too many digits"
            failure = failure or (source.line_at(begin), f"no JSON of fio: {why}")
        else:
            if isinstance(value, dict) and "fio version" in value:
                failure = None
                yield value
            continue
        tries += 1
        place = found.end()
    if failure is not None:
        raise source.refuse(*failure, _HINT)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Values of a document by their keys; errors name the keys."""

    source: SourceText
    document: Mapping[str, Any]

    def entries(self) -> Sequence[Mapping[str, Any]]:
        if "client_stats" in self.document:
            raise self.source.refuse(
                0, "client_stats: results of fio's --client are not read", "import a result of each host"
            )
        jobs = self.document.get("jobs")
        if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
            raise self.source.refuse(0, "jobs: no list of jobs", _HINT)
        return jobs

    def ended_at(self) -> datetime | None:
        for key, per_second in (("timestamp_ms", 1000), ("timestamp", 1)):
            if (time := self.time(self.document, key, per_second)) is not None:
                return time
        return None

    def time(self, part: Mapping[str, Any], key: str, per_second: int) -> datetime | None:
        value = part.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            return None
        try:
            return datetime.fromtimestamp(value / per_second, UTC)
        except (ValueError, OverflowError, OSError):
            return None

    def figure(self, part: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
        """A number that is not negative."""
        value = part.get(key, default)
        if value is None:
            raise self.source.refuse(0, f"{where}.{key} is missing", _HINT)
        if isinstance(value, bool) or not isinstance(value, int | float):
            what = f"is {type(value).__name__}, not a number"
        elif not math.isfinite(value):
            what = f"is {value}, not a number"
        elif value > FIGURE_MAX:
            what = "is too large"
        elif value < 0:
            what = f"is {value:g}: negative"
        else:
            return value
        raise self.source.refuse(0, f"{where}.{key} {what}", _HINT)

    def part(self, of: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
        value = of.get(key, {})
        if not isinstance(value, dict):
            raise self.source.refuse(0, f"{where}.{key} is no object", _HINT)
        return value


class _Job:
    """One entry of `jobs`."""

    def __init__(self, reader: _Reader, number: int, entry: Mapping[str, Any]) -> None:
        self._reader = reader
        self._entry = entry
        self.name = str(entry.get("jobname", "")) or f"job {number + 1}"
        self._where = f"jobs[{number}] ({shown(self.name)})"
        self.group = int(reader.figure(entry, "groupid", self._where, 0))
        if reader.part(entry, "trim", self._where).get("total_ios"):
            raise reader.source.refuse(
                0, f"{self._where}.trim: trims are not read", "import jobs that read and write"
            )
        self.error = int(reader.figure(entry, "error", self._where, 0))
        self.errors = self._errors()
        sides = {op: self._side(op) for op in ("read", "write", "mixed")}
        self.mixed, self.read, self.write = sides["mixed"], sides["read"], sides["write"]

    @property
    def parts(self) -> list[_Side]:
        """What makes the total: unified_rw_reporting=both has the sum of reads and writes beside them."""
        return _busy([self.mixed]) or _busy([self.read, self.write])

    @property
    def seconds(self) -> float:
        return max(side.seconds for side in (self.mixed, self.read, self.write))

    @property
    def load(self) -> dict[str, str]:
        shared = self._reader.part(self._reader.document, "global options", "the document")
        own = self._reader.part(self._entry, "job options", self._where)
        options = {
            _ALIASES.get(key, key): str(value) for part in (shared, own) for key, value in part.items()
        }
        return {name: options[name] for name in _LOAD if name in options}

    def started_at(self) -> datetime | None:
        return self._reader.time(self._entry, "job_start", 1000)

    def _errors(self) -> int | None:
        """A job without continue_on_error ends at its first error, and does not count it."""
        if "total_err" in self._entry:
            return int(self._reader.figure(self._entry, "total_err", self._where))
        return None if self.error else 0

    def _side(self, op: str) -> _Side:
        where = f"{self._where}.{op}"
        part = self._reader.part(self._entry, op, self._where)
        ios = int(self._reader.figure(part, "total_ios", where, None if part else 0))
        if not ios:
            return _Side(0, 0, 0.0, 0.0, 0.0, None, None, None, {})
        in_bytes = "io_kbytes" in part
        size = int(self._reader.figure(part, "io_bytes", where)) * (1 if in_bytes else _KIB)
        rate = (
            self._reader.figure(part, "bw_bytes", where)
            if "bw_bytes" in part
            else self._reader.figure(part, "bw", where) * _KIB
        )
        times, unit_ms, name = self._times(part, where)
        known = bool(times.get("N", 0) if "N" in times else times.get("mean"))
        where_time = f"{where}.{name}"

        def ms(key: str) -> float | None:
            return self._reader.figure(times, key, where_time) * unit_ms if known else None

        table = self._reader.part(times, "percentile", where_time)
        return _Side(
            ios=ios,
            size=size,
            seconds=self._reader.figure(part, "runtime", where) / 1000,
            iops=self._reader.figure(part, "iops", where),
            bytes_s=rate,
            mean_ms=ms("mean"),
            stddev_ms=ms("stddev"),
            max_ms=ms("max"),
            percentiles_ms={
                self._percent(key, where_time): self._reader.figure(table, key, where_time) * unit_ms
                for key in table
                if known
            },
        )

    def _times(self, part: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], float, str]:
        """The table of times, its unit in ms, and its name."""
        new = "clat_ns" in part or "lat_ns" in part
        names, unit_ms = (("clat_ns", "lat_ns"), 1e-6) if new else (("clat", "lat"), 1e-3)
        tables = [(self._reader.part(part, name, where), unit_ms, name) for name in names]
        with_table = [one for one in tables if one[0].get("percentile")]
        with_time = [one for one in tables if one[0].get("mean")]
        return (with_table or with_time or tables)[0]

    def _percent(self, key: str, where: str) -> str:
        """`99.000000` -> `99`."""
        if not re.fullmatch(r"\d{1,3}(?:\.\d{1,12})?", key) or not 0 < float(key) <= 100:
            raise self._reader.source.refuse(0, f"{where}.percentile: {shown(key)} is no percentage", _HINT)
        return f"{float(key):.9g}"


@dataclass(frozen=True, slots=True)
class _Side:
    """One direction of a job. `bytes_s` are bytes per second."""

    ios: int
    size: int
    seconds: float
    iops: float
    bytes_s: float
    mean_ms: float | None
    stddev_ms: float | None
    max_ms: float | None
    percentiles_ms: dict[str, float]


def _step(jobs: Sequence[_Job], document_ended: datetime | None) -> ToolStep:
    reads, writes = _busy([job.read for job in jobs]), _busy([job.write for job in jobs])
    counts = [job.errors for job in jobs]
    known_errors = [count for count in counts if count is not None]
    errors = sum(known_errors) if len(known_errors) == len(counts) else None
    seconds = max(job.seconds for job in jobs)
    parts = [part for job in jobs for part in job.parts]
    starts = [start for job in jobs if (start := job.started_at()) is not None]
    ended = later(min(starts), seconds) if starts else document_ended
    began = min(starts) if starts else later(document_ended, -seconds)
    failed = [f"{job.name}: {os.strerror(job.error)} (error {job.error})" for job in jobs if job.error]
    return ToolStep(
        name=_name(jobs),
        given=GivenStep(
            seconds=seconds,
            total=_figures(parts, len(jobs), seconds, errors),
            read=_figures(reads, len(jobs), seconds, None) if reads else None,
            write=_figures(writes, len(jobs), seconds, None) if writes else None,
            outstanding=_outstanding(jobs),
            load=_common_load(jobs),
        ),
        started_at=began,
        ended_at=ended,
        failed="; ".join(failed),
    )


def _busy(sides: Sequence[_Side]) -> list[_Side]:
    return [side for side in sides if side.ios]


def _figures(parts: Sequence[_Side], jobs: int, seconds: float, errors: int | None) -> GivenFigures:
    """Of one job, the rates that fio gives; of several, the sums over the longest run time."""
    ios, size = sum(part.ios for part in parts), sum(part.size for part in parts)
    longest = max((part.seconds for part in parts), default=seconds)
    own = jobs == 1
    single = parts[0] if len(parts) == 1 else None
    return GivenFigures(
        ios=ios,
        bytes=size,
        iops=sum(part.iops for part in parts) if own else ios / longest if longest else 0.0,
        mib_s=(sum(part.bytes_s for part in parts) if own else size / longest if longest else 0.0) / MIB,
        mean_ms=weighted_mean([(part.ios, part.mean_ms) for part in parts]),
        stddev_ms=single.stddev_ms if single else None,
        max_ms=largest([part.max_ms for part in parts]),
        errors=errors,
        percentiles_ms=single.percentiles_ms if single else {},
    )


def _name(jobs: Sequence[_Job]) -> str:
    """The names of the jobs; of many, the first and how many there are."""
    names = list(dict.fromkeys(job.name for job in jobs))
    joined = " + ".join(names)
    if len(joined) <= _NAME_CHARACTERS_MAX:
        return joined
    return f"{names[0][:_NAME_CHARACTERS_MAX]} and {len(names) - 1} more"


def _outstanding(jobs: Sequence[_Job]) -> int | None:
    """iodepth= times numjobs= of each job; None if one of them has no whole number there, or gives no iodepth=.

    Entries of the clones of a job (numjobs= without group_reporting) are there one by one.
    """
    entries = Counter(job.name for job in jobs)
    total = 0
    for job in jobs:
        depth, clones = job.load.get("iodepth", ""), job.load.get("numjobs", "1")
        if not depth.isdecimal() or not clones.isdecimal() or len(depth + clones) > 12:
            return None
        total += int(depth) * (int(clones) if entries[job.name] == 1 else 1)
    return total


def _common_load(jobs: Sequence[_Job]) -> dict[str, str]:
    """The options of the jobs. Jobs that differ have all their values, in order."""
    loads = [job.load for job in jobs]
    names = [name for name in _LOAD if any(name in load for load in loads)]
    values = {name: list(dict.fromkeys(load.get(name, "-") for load in loads)) for name in names}
    found = {name: " | ".join(texts) for name, texts in values.items()}
    return found | ({"jobs": str(len(jobs))} if len(jobs) > 1 else {})
