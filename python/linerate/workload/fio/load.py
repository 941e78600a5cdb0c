"""What one copy of a job does to its files: directions, sizes, places, depth, rates, pauses and checks of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from linerate.workload.fio.options import SectionOptions
from linerate.workload.fio.refused import (
    ASYNCHRONOUS,
    ENGINE_NAMES,
    ENTRY_OPERATIONS,
    REFUSED_ENGINES,
    SYNCHRONOUS,
)
from linerate.workload.fio.values import (
    JobValueError,
    by_direction,
    distribution,
    io_bytes,
    numbers_by_direction,
    percent,
    size_range,
    size_split,
    think_time_s,
    whole,
)
from linerate.workload.fio.verify import VerifyUse, read_verify
from linerate.workload.spec import (
    RATE_IOPS_MAX,
    FlushSpec,
    PlaceDistribution,
    SizeMix,
    SizeRange,
    Sizes,
    ThinkTime,
)

_DEPTH_MAX = 65_536
_IOS_PER_PLACE_MAX = 1 << 20
_DEFAULT_BYTES = 4096
_RATIO_MAX = 512.0
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
_SEQUENCERS = {"sequential": False, "identical": True}
_FLUSHES_ASYNCHRONOUSLY = ("io_uring", "posixaio", "solarisaio", "libiscsi", "null")
"""Engines that queue a flush as they queue an I/O; the others wait for it."""
_SYNC = {"none": False, "0": False, "1": True, "sync": True, "dsync": True}


@dataclass(frozen=True, slots=True)
class JobLoad:
    """What one copy of a job does to its files.

    Rates are of one copy; None: as fast as it goes. ios_per_place: I/Os that follow each other from each random place.
    skip_bytes: left out between two sequential I/Os.
    """

    read_percent: float
    random_percent: float
    distribution: PlaceDistribution | None
    read_sizes: Sizes
    write_sizes: Sizes
    align_bytes: int | None
    ios_per_place: int
    skip_bytes: int
    depth: int
    read_rate_iops: float | None
    write_rate_iops: float | None
    process: Literal["deterministic", "poisson"]
    think_time: ThinkTime | None
    verify: VerifyUse
    compression_ratio: float | None
    direct: bool
    durable: bool
    flush: FlushSpec | None

    @property
    def is_mixed(self) -> bool:
        """It reads and writes."""
        return 0 < self.read_percent < 100

    @property
    def rates_iops(self) -> tuple[float | None, ...]:
        """The rate of each direction that it has."""
        reads = (self.read_rate_iops,) if self.read_percent > 0 else ()
        return (*reads, self.write_rate_iops) if self.read_percent < 100 else reads

    @property
    def has_rate(self) -> bool:
        """At least one direction has a rate."""
        return any(rate is not None for rate in self.rates_iops)

    @property
    def is_rated(self) -> bool:
        """Every direction has a rate."""
        return all(rate is not None for rate in self.rates_iops)


def read_load(options: SectionOptions) -> JobLoad:
    """The load of a section; what is wrong is noted."""
    (reads, writes, is_random), number = options.value("rw", _direction, ((True, False, False), ""))
    if options.later("rwmixread", "rwmixwrite") == "rwmixread":
        mix = options.value("rwmixread", percent, 50.0)
    else:
        mix = 100 - options.value("rwmixwrite", percent, 50.0)
    read_percent = mix if reads and writes else 100.0 if reads else 0.0
    read_sizes, write_sizes = _sizes(options)
    if read_percent in (0, 100):
        read_sizes = write_sizes = read_sizes if read_percent else write_sizes
    identical = options.value("rw_sequencer", word_of(_SEQUENCERS), False)
    depth = _depth(options)
    jumps_percent = _random_percent(options, reads, writes)
    random_percent = jumps_percent if is_random else 0.0
    ios_per_place, skip_bytes = 1, 0
    if number and is_random:
        ios_per_place = _ios_per_place(options, random_percent, read_percent, identical=identical)
    elif number:
        skip_bytes = options.value("rw", lambda text: _skip_bytes(text, options), 0)
    rates = _rates(options, (read_sizes, write_sizes), (read_percent > 0, read_percent < 100))
    return JobLoad(
        read_percent=read_percent,
        random_percent=random_percent,
        distribution=_distribution(options, is_random=is_random),
        read_sizes=read_sizes,
        write_sizes=write_sizes,
        align_bytes=_align_bytes(options, (read_sizes, write_sizes), skip_bytes),
        ios_per_place=ios_per_place,
        skip_bytes=skip_bytes,
        depth=depth,
        read_rate_iops=rates[0],
        write_rate_iops=rates[1],
        process=options.value("rate_process", _process, "deterministic"),
        think_time=_think_time(options, depth, has_rate=any(rates)),
        verify=read_verify(options, reads=read_percent > 0, writes=read_percent < 100),
        compression_ratio=_compression_ratio(options),
        direct=_direct(options),
        durable=_durable(options),
        flush=_flush(options),
    )


def _distribution(options: SectionOptions, *, is_random: bool) -> PlaceDistribution | None:
    """Areas of random places; they do not matter to a sequential job, as in fio."""
    found = options.value("random_distribution", lambda text: distribution(text, options.kb_base), None)
    return found if is_random else None


def _direction(text: str) -> tuple[tuple[bool, bool, bool], str]:
    kind, _, number = text.partition(":")
    if "trim" in kind:
        raise JobValueError("is not supported: blocks are not trimmed")
    if kind not in _DIRECTIONS:
        raise JobValueError("not one of " + ", ".join(_DIRECTIONS))
    return _DIRECTIONS[kind], number.strip()


def _ios_per_place(
    options: SectionOptions, random_percent: float, read_percent: float, *, identical: bool
) -> int:
    """The number of rw=randread:8. identical: all of them at one place."""
    found = options.value("rw", _number_of_ios, 1)
    if found > 1 and identical:
        options.refuse("rw_sequencer", "no place is used several times in a row", "write sequential")
    elif found > 1 and 0 < read_percent < 100:
        reason = "fio counts reads and writes together and moves them apart: a mix has one I/O at each place"
        options.refuse("rw", reason, "leave the number out, or write a job for each direction")
    elif found > 1 and random_percent < 100:
        options.refuse(
            "percentage_random", "the number of rw= says how often a place is random", "leave it out"
        )
    return found


def _number_of_ios(text: str) -> int:
    found = whole(text.partition(":")[2].strip())
    if not 1 <= found <= _IOS_PER_PLACE_MAX:
        raise JobValueError(f"I/Os at each random place: 1 to {_IOS_PER_PLACE_MAX:,}")
    return found


def _skip_bytes(text: str, options: SectionOptions) -> int:
    """The bytes of rw=read:64k."""
    after = text.partition(":")[2].strip()
    if after.startswith("-"):
        raise JobValueError("is not supported: sequential I/Os go forward only")
    return options.size(after)


def _align_bytes(options: SectionOptions, sizes: tuple[Sizes, Sizes], skip_bytes: int) -> int | None:
    """The grid of places: that of blockalign=, or one on which all sizes and the skip are."""
    given = options.value("ba", lambda text: io_bytes(numbers_by_direction(text)[0], options.kb_base), 0)
    if given:
        return given
    least = min(smallest(one) for one in sizes)
    if skip_bytes:
        return next(
            grid for power in range(31) if not (least % (grid := least >> power) or skip_bytes % grid)
        )
    varied = sizes[0] != sizes[1] or not isinstance(sizes[0], SizeMix) or len(sizes[0].parts) > 1
    return least if varied else None


def _compression_ratio(options: SectionOptions) -> float | None:
    """100 % is as much as the data plane can do."""
    compressed = options.value("buffer_compress_percentage", percent, 0.0)
    if options.only_reads:
        options.notice_only_reads("buffer_compress_percentage", "buffer_pattern", "zero_buffers")
        return None
    if options.flag("zero_buffers"):
        reason = "write data cannot be zeros, which many arrays do not store"
        options.refuse("zero_buffers", reason, "leave it out, or write buffer_compress_percentage=100")
    if "buffer_pattern" in options and compressed:
        what = "the part of a block that compresses is zeros, not the pattern"
        options.notice("buffer_pattern", what)
    elif "buffer_pattern" in options:
        reason = "the data pattern cannot be chosen: write data is random, or compressible"
        options.refuse("buffer_pattern", reason, "leave it out, or write buffer_compress_percentage=")
    if not compressed:
        return None
    return min(100 / (100 - compressed), _RATIO_MAX) if compressed < 100 else _RATIO_MAX


def _direct(options: SectionOptions) -> bool:
    if options.later("direct", "buffered") == "buffered":
        return "buffered" in options and not options.flag("buffered")
    return options.flag("direct")


def _durable(options: SectionOptions) -> bool:
    found = options.value("sync", word_of(_SYNC), False)
    if options.only_reads:
        options.notice_only_reads("sync")
        return False
    return found


def _flush(options: SectionOptions) -> FlushSpec | None:
    """The flushes of one copy. While an engine waits for one, its copy starts no I/O."""
    number = options.number("fsync", 0, 0, 1 << 31)
    data_number = options.number("fdatasync", 0, 0, 1 << 31)
    if options.only_reads:
        options.notice_only_reads("fsync", "fdatasync")
        return None
    if number and data_number:
        options.refuse("fdatasync", "fsync= is there too, and a copy counts to one number", "leave one out")
    after_writes = number or data_number
    engine = options.text("ioengine", "psync")
    blocks = ENGINE_NAMES.get(engine, engine) not in _FLUSHES_ASYNCHRONOUSLY
    return FlushSpec(after_writes=after_writes, blocks=blocks) if after_writes else None


def _random_percent(options: SectionOptions, reads: bool, writes: bool) -> float:
    def read(text: str) -> float:
        shares = [percent(part) for part in numbers_by_direction(text)]
        if reads and writes and shares[0] != shares[1]:
            raise JobValueError("reads and writes have the same share of random places")
        return shares[0] if reads else shares[1]

    return options.value("percentage_random", read, 100.0)


def _sizes(options: SectionOptions) -> tuple[Sizes, Sizes]:
    """Of reads and of writes: bssplit before bsrange before bs."""
    readers: tuple[tuple[str, Callable[[str, int], Sizes]], ...] = (
        ("bssplit", size_split),
        ("bsrange", size_range),
        ("bs", lambda text, base: SizeMix.one(io_bytes(text, base))),
    )
    default: Sizes = SizeMix.one(_DEFAULT_BYTES)
    for name, reader in readers:
        if name in options:

            def read(text: str, reader: Callable[[str, int], Sizes] = reader) -> Sizes:
                return reader(text, options.kb_base)

            parts = numbers_by_direction if name == "bs" else by_direction
            return options.by_direction(name, read, default, parts=parts)
    return default, default


def _depth(options: SectionOptions) -> int:
    depth = options.number("iodepth", 1, 1, _DEPTH_MAX)
    engine = options.text("ioengine", "psync")
    engine = ENGINE_NAMES.get(engine, engine)
    known = (*ASYNCHRONOUS, *SYNCHRONOUS, *ENTRY_OPERATIONS)
    if engine not in known:
        reason = REFUSED_ENGINES.get(engine.partition(":")[0], "no engine that Linerate knows")
        options.refuse("ioengine", reason, f"write one of {', '.join(known)}")
    if engine not in ASYNCHRONOUS and engine in known and depth > 1:
        what = f"one I/O in flight for each copy, as in fio: the engine {engine} is synchronous"
        options.notice("iodepth", what)
        return 1
    return depth


def _rates(
    options: SectionOptions, sizes: tuple[Sizes, Sizes], used: tuple[bool, bool]
) -> tuple[float | None, float | None]:
    """I/Os per second of one copy's reads and of its writes: the lower of rate_iops= and rate=."""
    found: list[list[float]] = [[], []]
    for name in ("rate_iops", "rate"):
        for place, rate in enumerate(options.by_direction(name, options.size, 0, parts=numbers_by_direction)):
            if not rate or not used[place]:
                continue
            one_size = _one_size(sizes[place])
            if name == "rate" and one_size is None:
                options.refuse(
                    name, "a rate in bytes needs one I/O size", "write rate_iops=, or bs= with one size"
                )
                continue
            found[place].append(rate / one_size if name == "rate" and one_size else float(rate))
            if found[place][-1] > RATE_IOPS_MAX:
                options.error("the rate is too high", f"at most {RATE_IOPS_MAX:,.0f} I/Os per second")
    reads, writes = (min(rates) if rates else None for rates in found)
    return reads, writes


def _think_time(options: SectionOptions, depth: int, *, has_rate: bool) -> ThinkTime | None:
    """The pauses of each copy: it has one I/O in flight, so a pause is one of its slot."""
    pause_s = options.value("thinktime", think_time_s, 0.0)
    after_ios = options.number("thinktime_blocks", 1, 1, 1 << 31)
    if not pause_s:
        return None
    if depth > 1:
        reason = "with several I/Os in flight fio waits for all of them before a pause"
        options.refuse("thinktime", reason, "write iodepth=1, and numjobs= for more at the same time")
    if has_rate:
        reason = "a rate fixes when I/Os start, so nothing is left to a pause"
        options.refuse("thinktime", reason, "leave out thinktime= or the rate")
    if options.value("thinktime_iotime", think_time_s, 0.0):
        options.refuse("thinktime_iotime", "pauses come after a number of I/Os", "write thinktime_blocks=")
    return ThinkTime(pause_s=pause_s, after_ios=after_ios)


def _one_size(sizes: Sizes) -> int | None:
    return sizes.parts[0][0] if isinstance(sizes, SizeMix) and len(sizes.parts) == 1 else None


def smallest(sizes: Sizes) -> int:
    """Bytes of the smallest I/O."""
    return sizes.min_bytes if isinstance(sizes, SizeRange) else min(size for size, _ in sizes.parts)


def word_of(words: Mapping[str, bool]) -> Callable[[str], bool]:
    """A reader of one of a few words."""

    def read(text: str) -> bool:
        if text not in words:
            raise JobValueError("not one of " + ", ".join(words))
        return words[text]

    return read


def _process(text: str) -> Literal["deterministic", "poisson"]:
    if text not in ("linear", "poisson"):
        raise JobValueError("neither linear nor poisson")
    return "poisson" if text == "poisson" else "deterministic"
