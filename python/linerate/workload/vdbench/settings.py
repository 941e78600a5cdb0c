"""What the instances of a file say, as typed settings: checked one by one, not yet combined into runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.quantity import number_text, size_text
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import (
    CURSORS_MAX,
    IO_BYTES_MAX,
    RATE_IOPS_MAX,
    TIME_S_MAX,
    ByteSpan,
    SizeMix,
    SizeRange,
    Sizes,
    VolumeRegion,
)
from linerate.workload.vdbench.blocks import Instance
from linerate.workload.vdbench.hosts import HostDefinitions
from linerate.workload.vdbench.tables import FILE_RD_KEYWORDS, LOOP_KEYWORDS
from linerate.workload.vdbench.values import Value

SECTOR_BYTES = 512
_MOST_BYTES = 1 << 62
_MOST_THREADS = 65_536
_DEDUP_UNIT_MAX = 16 << 20
COMPRESSION_RATIO_MAX = 25
_WHOLE = ("xfersize", "threads", "hitarea")
"""Loops over whole numbers."""
_LARGEST_PERCENT = 200
"""A range up to here is in percent, beyond it in bytes."""
_DIRECT = ("o_direct", "directio")
_DURABLE = ("o_sync", "o_dsync", "fsync")
_SEEK_WORDS = {"sequential": 0.0, "seq": 0.0, "random": 100.0, "rand": 100.0, "eof": -1.0}
_SIZE_FORMS = "xfersize=4k, (4k,60,8k,40) or (4k,64k,4k)"
_COMMAND_TARGETS = ("cons", "sum", "log", "master", "slave")
_HISTOGRAM_US = {"us": 1, "u": 1, "ms": 1000, "m": 1000, "s": 1_000_000}
DEFAULT_HISTOGRAM_US = (
    *(20, 40, 60, 80, 100, 200, 400, 600, 800),
    *(ms * 1000 for ms in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 800)),
    *(1_000_000, 2_000_000),
)
"""vdbench's bucket limits in microseconds."""


@dataclass(frozen=True, slots=True)
class Flags:
    """openflags=."""

    direct: bool
    durable: bool


@dataclass(frozen=True, slots=True)
class Seek:
    """seekpct=: percent random, or sequential to the end."""

    random_percent: float
    stop_at_end: bool


@dataclass(frozen=True, slots=True)
class Sd:
    """A storage definition."""

    name: str
    place: SourceLocation
    luns: Mapping[str, str | None]
    """Label of each host that uses it, in the order of hosts -> where it is there; None: not said."""
    size_bytes: int | None
    threads: int
    hit_area_bytes: int
    offset_bytes: int
    align_bytes: int | None
    range: VolumeRegion | None
    flags: Flags | None


@dataclass(frozen=True, slots=True)
class Wd:
    """A workload definition."""

    name: str
    place: SourceLocation
    sd_names: tuple[str, ...] | None
    hosts: tuple[str, ...]
    """Labels, in the order in which `host=` names them."""
    sizes: Sizes
    read_percent: float
    seek: Seek | None
    stride: ByteSpan | None
    range: VolumeRegion | None
    hotband: VolumeRegion | None
    read_hit_percent: float
    write_hit_percent: float
    skew: float | None
    rate_iops: float | None
    priority: int | None
    streams: int
    flags: Flags | None


@dataclass(frozen=True, slots=True)
class Loop:
    """A for loop of an RD: a value for each pass and its text; seek loops hold a Seek each."""

    keyword: str
    values: tuple[float | Seek, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Times of an RD in seconds."""

    elapsed_s: float
    interval_s: float
    warmup_s: float


@dataclass(frozen=True, slots=True)
class Rd:
    """A run definition."""

    name: str
    place: SourceLocation
    wd_names: tuple[str, ...] | None
    sd_names: tuple[str, ...] | None
    rates: tuple[float, ...]
    curve: tuple[float, ...]
    stop_curve_ms: float | None
    elapsed_s: float
    interval_s: float
    warmup_s: float
    pause_s: float
    process: str
    max_data: dict[str, float]
    loops: tuple[Loop, ...]
    flags: Flags | None
    start_commands: tuple[str, ...]
    end_commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dedup:
    """dedupratio= and what belongs to it. sets: their number on all SDs; None: `sets_percent` of the units."""

    ratio: float
    unit_bytes: int
    sets_percent: float
    sets: int | None


@dataclass(frozen=True, slots=True)
class General:
    """The general parameters."""

    compression_ratio: float | None
    dedup: Dedup | None
    verify: bool
    error_limit: int
    histogram_us: tuple[int, ...]
    format_sds: bool
    format_bytes: int
    start_commands: tuple[str, ...]
    end_commands: tuple[str, ...]
    create_anchors: bool


def _limits_text(low: float, high: float) -> str:
    if high == TIME_S_MAX:
        return f"{low:g} s to {TIME_S_MAX / 86_400:.0f} days"
    return (
        f"{number_text(low)} to {number_text(high)}" if high < _MOST_BYTES else f"at least {number_text(low)}"
    )


class Fields:
    """Reads an instance's values with their limits; a value outside is noted and replaced by the default."""

    def __init__(self, instance: Instance, problems: Problems) -> None:
        self.instance = instance
        self._problems = problems

    def value(self, keyword: str) -> Value | None:
        """The value as read, if the keyword was given."""
        return self.instance.values.get(keyword)

    def wrong(self, value: Value, what: str, accepted: str) -> None:
        """Notes that a value is wrong."""
        self._problems.error(value.place, f"{value.shown}: {what}", accepted)

    def number(self, keyword: str, default: float, low: float, high: float) -> float:
        """One number in [low, high]."""
        value = self.value(keyword)
        if value is None:
            return default
        if len(value.numbers) != 1:
            self.wrong(value, "one number expected", f"write {keyword}=n")
        elif not low <= value.numbers[0] <= high:
            self.wrong(value, f"out of range, {_limits_text(low, high)}", f"write {keyword}=n")
        else:
            return value.numbers[0]
        return default

    def whole(self, keyword: str, default: int, low: int, high: int = 1 << 31) -> int:
        """One whole number in [low, high]."""
        number = self.number(keyword, default, low, high)
        if number != int(number) and (value := self.value(keyword)):
            self.wrong(value, "a whole number expected", f"write {keyword}=n")
            return default
        return int(number)

    def sectors(self, keyword: str, default: int) -> int:
        """Bytes, a multiple of the sector size."""
        value_bytes = self.whole(keyword, default, 0, _MOST_BYTES)
        if value_bytes % SECTOR_BYTES and (value := self.value(keyword)):
            self.wrong(value, f"not a multiple of {SECTOR_BYTES}", f"write {keyword}=bytes")
            return default
        return value_bytes

    def divided(self, keyword: str, default: int) -> int:
        """A number, or (n,m) which is n divided by m."""
        value = self.value(keyword)
        if value is None or len(value.numbers) == 1:
            return self.whole(keyword, default, 0, _MOST_BYTES)
        if len(value.numbers) == 2 and value.numbers[0] >= 0 and value.numbers[1] >= 1:
            return int(value.numbers[0] // value.numbers[1])
        self.wrong(value, "not a number or (total,n)", f"write {keyword}=n or {keyword}=(total,n)")
        return default

    def texts(self, keyword: str) -> tuple[str, ...] | None:
        """The texts, if the keyword was given."""
        value = self.value(keyword)
        return value.texts if value else None

    def yes(self, keyword: str) -> bool:
        """yes or no; default no."""
        value = self.value(keyword)
        if value is None:
            return False
        word = value.texts[0].lower() if len(value.texts) == 1 else ""
        if word not in ("yes", "y", "no", "n"):
            self.wrong(value, "only yes or no is supported", f"write {keyword}=yes or {keyword}=no")
        return word in ("yes", "y")

    def region(self, keyword: str) -> VolumeRegion | None:
        """(low,high), in percent up to 200, else in bytes."""
        value = self.value(keyword)
        if value is None:
            return None
        low, high = (abs(n) for n in value.numbers) if len(value.numbers) == 2 else (0.0, 0.0)
        if not low < high:
            self.wrong(value, "not a range", f"write {keyword}=(low,high), for example (10,20)")
            return None
        if high > _LARGEST_PERCENT:
            return VolumeRegion(unit="bytes", start=low, end=high)
        if low >= 100 or (high > 100 and high - low >= 100):
            self.wrong(
                value,
                "a range starts below 100 %, and one that wraps stays below 100 % in all",
                f"write {keyword}=(70,130)",
            )
            return None
        return VolumeRegion(unit="percent", start=low, end=high)

    def flags(self) -> Flags | None:
        """openflags=."""
        value = self.value("openflags")
        if value is None:
            return None
        words = [word.lower() for word in value.texts]
        for word in words:
            if word not in (*_DIRECT, *_DURABLE, "o_rsync"):
                self.wrong(value, f"no support for {word!r}", f"write {', '.join((*_DIRECT, *_DURABLE))}")
        return Flags(any(w in _DIRECT for w in words), any(w in _DURABLE for w in words))

    def commands(self, keyword: str) -> tuple[str, ...]:
        """startcmd= or endcmd=, without the words that say where its output goes."""
        return tuple(t for t in self.texts(keyword) or () if t.lower() not in _COMMAND_TARGETS)


def read_general(instance: Instance, problems: Problems) -> General:
    """The general parameters."""
    fields = Fields(instance, problems)
    return General(
        create_anchors=fields.yes("create_anchors"),
        compression_ratio=_compression(fields),
        dedup=_dedup(fields, problems),
        verify=fields.yes("validate"),
        error_limit=_error_limit(fields),
        histogram_us=_histogram(fields),
        format_sds=fields.yes("formatsds"),
        format_bytes=fields.sectors("formatxfersize", 128 << 10),
        start_commands=fields.commands("startcmd"),
        end_commands=fields.commands("endcmd"),
    )


def _compression(fields: Fields) -> float | None:
    return fields.number("compratio", 1, 1, COMPRESSION_RATIO_MAX) if fields.value("compratio") else None


def _dedup(fields: Fields, problems: Problems) -> Dedup | None:
    """The duplicates; None without any. Ratio and unit go together, as in vdbench."""
    ratio, unit, sets = (fields.value(f"dedup{what}") for what in ("ratio", "unit", "sets"))
    if ratio and ratio.numbers == (1.0,):
        problems.notice(ratio.place, f"{ratio.shown}: no effect, 1 means no duplicates")
        return None
    for given, missing, form in ((ratio, unit, "dedupunit=4k"), (unit or sets, ratio, "dedupratio=2")):
        if given and not missing:
            fields.wrong(given, f"needs {form.partition('=')[0]}= too, as in vdbench", f"write {form}")
            return None
    if ratio is None:
        return None
    if fields.yes("validate"):
        fields.wrong(ratio, "data with duplicates cannot be checked", "leave out dedupratio= or validate=yes")
    unit_bytes = fields.sectors("dedupunit", SECTOR_BYTES)
    if unit and not 0 < unit_bytes <= _DEDUP_UNIT_MAX:
        fields.wrong(unit, "out of range", "write a multiple of 512, up to 16m")
    number = sets.numbers[0] if sets and len(sets.numbers) == 1 else -5.0
    if sets and (len(sets.numbers) != 1 or not (-100 <= number < 0 or (number >= 1 and number % 1 == 0))):
        fields.wrong(sets, "not a number of sets", "write dedupsets=5% or dedupsets=n")
    return Dedup(
        ratio=fields.number("dedupratio", 1, 1, 1e9),
        unit_bytes=unit_bytes,
        sets_percent=-number if number < 0 else 5.0,
        sets=int(number) if number >= 1 else None,
    )


def _error_limit(fields: Fields) -> int:
    value = fields.value("data_errors")
    if value is None:
        return 50
    limit = value.numbers[0]
    if len(value.texts) != 1 or not limit >= 1 or limit != int(limit):
        fields.wrong(value, "only a number of errors is supported", "write data_errors=n, at least 1")
        return 50
    return int(limit)


def _histogram(fields: Fields) -> tuple[int, ...]:
    value = fields.value("histogram")
    limits: list[int] = []
    for text in (value.texts if value else ())[:65]:
        word = text.lower()
        if word in ("default", "suppress"):
            continue
        digits = word.rstrip("usm")
        unit = word[len(digits) :] or "us"
        if value and (not (digits.isascii() and digits.isdigit()) or unit not in _HISTOGRAM_US):
            fields.wrong(value, f"{text!r} is no limit", "write histogram=(20,40,100,1m,2s): us, m or s")
            break
        limits.append(int(digits[:15]) * _HISTOGRAM_US[unit])
    if value and (len(limits) > 64 or limits != sorted(set(limits))):
        fields.wrong(value, "at most 64 rising limits", "write histogram=(20,40,100,1m,2s)")
    return tuple(limits) or DEFAULT_HISTOGRAM_US


def read_sd(instance: Instance, hosts: HostDefinitions, problems: Problems) -> Sd:
    """One SD."""
    fields = Fields(instance, problems)
    threads = fields.divided("threads", 8)
    if not 1 <= threads <= _MOST_THREADS and (value := fields.value("threads")):
        fields.wrong(value, "out of range", f"write threads=n, 1 to {_MOST_THREADS}")
    return Sd(
        name=instance.name,
        place=instance.place,
        luns=hosts.luns(instance, problems),
        size_bytes=fields.divided("size", 0) or None,
        threads=min(max(threads, 1), _MOST_THREADS),
        hit_area_bytes=fields.sectors("hitarea", 1 << 20),
        offset_bytes=fields.sectors("offset", 0),
        align_bytes=fields.sectors("align", 0) or None,
        range=fields.region("range"),
        flags=fields.flags(),
    )


def read_wd(instance: Instance, hosts: HostDefinitions, problems: Problems) -> Wd:
    """One WD."""
    fields = Fields(instance, problems)
    read_percent = fields.number("rdpct", 100, 0, 100)
    if fields.value("wrpct"):
        read_percent = 100 - fields.number("wrpct", 0, 0, 100)
    stride = fields.value("stride")
    if stride and (len(stride.numbers) != 2 or not 0 <= stride.numbers[0] <= stride.numbers[1] > 0):
        fields.wrong(stride, "not a stride", "write stride=(min,max) in bytes")
        stride = None
    seeks = _seeks(fields, fields.value("seekpct"))
    if len(seeks) > 1 and (value := fields.value("seekpct")):
        fields.wrong(value, "one value expected in a WD", "a list belongs to forseekpct in the RD")
    return Wd(
        name=instance.name,
        place=instance.place,
        sd_names=fields.texts("sd"),
        hosts=hosts.labels(fields.value("host"), problems),
        sizes=_sizes(fields),
        read_percent=read_percent,
        seek=seeks[0] if seeks else None,
        stride=ByteSpan(min_bytes=int(stride.numbers[0]), max_bytes=int(stride.numbers[1]))
        if stride
        else None,
        range=fields.region("range"),
        hotband=fields.region("hotband"),
        read_hit_percent=fields.number("rhpct", 0, 0, 100),
        write_hit_percent=fields.number("whpct", 0, 0, 100),
        skew=fields.number("skew", 0, 0, 100) or None,
        rate_iops=fields.number("iorate", 0, 1, RATE_IOPS_MAX) or None,
        priority=fields.whole("priority", 0, 1, 10_000) or None,
        streams=fields.whole("streams", 1, 2, CURSORS_MAX),
        flags=fields.flags(),
    )


def _sizes(fields: Fields) -> Sizes:
    value = fields.value("xfersize")
    default = SizeMix.one(4096)
    if value is None:
        return default
    numbers = value.numbers
    pairs = len(numbers) > 1 and len(numbers) % 2 == 0
    if not pairs and len(numbers) not in (1, 3):
        fields.wrong(value, "not a size, pairs, or (min,max,align)", f"write {_SIZE_FORMS}")
        return default
    sizes = numbers[::2] if pairs else numbers
    if any(not size >= SECTOR_BYTES or size % SECTOR_BYTES or size > IO_BYTES_MAX for size in sizes):
        fields.wrong(value, f"a size is a multiple of {SECTOR_BYTES}", "write xfersize=4k or (4k,60,8k,40)")
        return default
    if len(numbers) == 1:
        return SizeMix.one(int(numbers[0]))
    if pairs:
        percents = numbers[1::2]
        if any(p <= 0 for p in percents) or round(sum(percents)) != 100:
            what = f"the percentages add up to {sum(percents):g}, not 100"
            fields.wrong(value, what, f"write {_SIZE_FORMS}")
            return default
        scale = 100 / math.fsum(percents)
        return SizeMix(parts=tuple((int(s), p * scale) for s, p in zip(sizes, percents, strict=True)))
    low, high, align = map(int, numbers)
    if low <= high // align * align:
        return SizeRange(min_bytes=low, max_bytes=high, align_bytes=align)
    fields.wrong(value, "no size is between min and max", f"write {_SIZE_FORMS}")
    return default


def _seeks(fields: Fields, value: Value | None) -> tuple[Seek, ...]:
    seeks: list[Seek] = []
    for text, number in zip(value.texts, value.numbers, strict=True) if value else ():
        percent = _SEEK_WORDS.get(text.lower(), number)
        if value and not (percent == -1 or 0 <= percent <= 100):
            words = "0 to 100, seq, sequential, rand, random, eof"
            fields.wrong(value, f"{text!r} is no seek percentage that is supported", f"write {words}")
            continue
        seeks.append(Seek(max(percent, 0.0), percent == -1))
    return tuple(seeks)


def read_rd(instance: Instance, problems: Problems) -> Rd:
    """One RD with WDs."""
    fields = Fields(instance, problems)
    for keyword in FILE_RD_KEYWORDS:
        if (value := fields.value(keyword)) and keyword == "format":
            problems.notice(value.place, f"{value.shown}: no effect with WDs, as in vdbench: it is of FSDs")
        elif value:
            fields.wrong(value, "goes with FWDs, and this file has none", "leave it out")
    rates = fields.value("iorate")
    for rate in rates.numbers if rates else ():
        if rates and (rate == 0 or rate < -1000 or rate > RATE_IOPS_MAX):
            fields.wrong(rates, "a rate must be above 0 and below 1e9", "write iorate=n, max, curve or n%")
    curve = fields.value("curve")
    points = tuple(abs(p) for p in curve.numbers) if curve else (10, 50, 70, 80, 90, 100)
    if curve and not all(0 < p <= 1000 for p in points):
        fields.wrong(curve, "a point is a percentage above 0", "write curve=(10,50,70,80,90,100)")
    times = read_times(fields)
    return Rd(
        name=instance.name,
        place=instance.place,
        wd_names=fields.texts("wd"),
        sd_names=fields.texts("sd"),
        rates=rates.numbers if rates else (),
        curve=points,
        stop_curve_ms=fields.number("stopcurve", 0, 0, 1e9) or None,
        elapsed_s=times.elapsed_s,
        interval_s=times.interval_s,
        warmup_s=times.warmup_s,
        pause_s=fields.number("pause", 0, 0, TIME_S_MAX),
        process=read_process(fields),
        max_data={
            key: fields.number(key, 0, 0, _MOST_BYTES)
            for key in ("maxdata", "maxdataread", "maxdatawritten")
            if fields.value(key)
        },
        loops=_loops(fields),
        flags=fields.flags(),
        start_commands=fields.commands("startcmd"),
        end_commands=fields.commands("endcmd"),
    )


def read_times(fields: Fields) -> RunTimes:
    """elapsed, interval, warmup in seconds; elapsed and warmup are multiples of the interval."""
    elapsed_s = fields.number("elapsed", 30, 1, TIME_S_MAX)
    interval_s = fields.number("interval", 1, 1, TIME_S_MAX)
    warmup_s = fields.number("warmup", 0, 0, TIME_S_MAX)
    for keyword, time_s in (("elapsed", elapsed_s), ("warmup", warmup_s)):
        if (value := fields.value(keyword)) and abs(time_s / interval_s - round(time_s / interval_s)) > 1e-9:
            fields.wrong(value, f"not a multiple of interval={interval_s:g}", f"write {keyword}=seconds")
    shortest = fields.value("elapsed") or fields.value("interval")
    if shortest and elapsed_s < 2 * interval_s:
        fields.wrong(
            shortest, f"less than two intervals of {interval_s:g} s", "lengthen elapsed or shorten interval"
        )
    return RunTimes(elapsed_s, interval_s, warmup_s)


def read_process(fields: Fields) -> str:
    """distribution=: how the times between starts are spread."""
    value = fields.value("distribution")
    words = [text.lower() for text in value.texts] if value else ["exponential"]
    known = {"exponential": "poisson", "uniform": "uniform", "deterministic": "deterministic"}
    if len(words) == 1:
        for word, process in known.items():
            if word.startswith(words[0]):
                return process
    if value:
        fields.wrong(value, "not a distribution that is supported", f"write {', '.join(known)}")
    return "poisson"


def _loops(fields: Fields) -> tuple[Loop, ...]:
    """The for loops in their order of appearance."""
    limits: dict[str, tuple[float, float, bool]] = {
        "xfersize": (SECTOR_BYTES, IO_BYTES_MAX, True),
        "threads": (1, _MOST_THREADS, False),
        "hitarea": (0, _MOST_BYTES, True),
        "compratio": (1, COMPRESSION_RATIO_MAX, False),
    }
    loops: list[Loop] = []
    for keyword, value in fields.instance.values.items():
        if keyword not in LOOP_KEYWORDS:
            continue
        if keyword == "seekpct":
            seeks = _seeks(fields, value)
            loops.append(
                Loop(
                    keyword, seeks, tuple("eof" if s.stop_at_end else f"{s.random_percent:g}" for s in seeks)
                )
            )
            continue
        low, high, sectors = limits.get(keyword, (0.0, 100.0, False))
        numbers = whole_numbers(value.numbers) if keyword in _WHOLE else value.numbers
        if any(not low <= n <= high or (sectors and n % SECTOR_BYTES) for n in numbers):
            unit = f"multiples of {SECTOR_BYTES}" if sectors else f"{low:g} to {high:g}"
            fields.wrong(value, f"a value of {keyword} is out of range", f"allowed are {unit}")
            continue
        loops.append(Loop(keyword, numbers, tuple(_loop_text(keyword, n) for n in numbers)))
    return tuple(loops)


def whole_numbers(numbers: Sequence[float]) -> tuple[float, ...]:
    """Without their fractions, as vdbench takes those of a loop: halving leaves some, and (100-1,d) has 12 and not
    12.5."""
    return tuple(float(math.trunc(number)) for number in numbers)


def _loop_text(keyword: str, number: float) -> str:
    return size_text(number) if keyword in ("xfersize", "hitarea") else number_text(number)
