"""WDs as streams: what each run's loops make of them, and how they share the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from linerate.workload.problems import Problems
from linerate.workload.spec import DedupSpec, HitArea, SizeMix, SizeRange, StreamSpec, VolumeRegion
from linerate.workload.url import Target
from linerate.workload.vdbench.settings import General, Rd, Sd, Seek, Wd
from linerate.workload.vdbench.values import CURVE_RATE, MAX_RATE

_SKEW_TOLERANCE = 1e-4
"""vdbench's: the skews of a run must add up to 100 this closely."""


@dataclass(frozen=True, slots=True)
class StreamContext:
    """What the streams of a run depend on beside their WDs."""

    general: General
    sds: Mapping[str, Sd]
    targets: Mapping[str, Target | None]
    loop_values: Mapping[str, float | Seek]
    problems: Problems

    def loop(self, keyword: str, otherwise: float) -> float:
        """The loop's value for this pass, or the WD's own."""
        return cast("float", self.loop_values.get(keyword, otherwise))


def make_streams(
    rd: Rd, wds: Sequence[Wd], per_wd: Sequence[Sequence[str]], context: StreamContext
) -> list[StreamSpec] | None:
    """The streams of one pass, or None after a problem was noted."""
    shares = _shares(rd, wds, context.problems)
    if shares is None:
        return None
    streams: list[StreamSpec] = []
    for wd, names, share in zip(wds, per_wd, shares, strict=True):
        groups = _by_range(wd, names, context)
        if len(groups) > 1 and (wd.rate_iops is not None or wd.priority is not None):
            what = f"wd={wd.name}: iorate= and priority= with SDs that differ in range= are not supported"
            context.problems.error(wd.place, what, "give them the same range, or a WD each")
            return None
        for number, group in enumerate(groups, start=1):
            part = None if share is None else share * len(group) / len(names)
            name = wd.name if len(groups) == 1 else f"{wd.name}.{number}"
            stream = _stream(wd, name, group, part, context)
            if stream is None:
                return None
            streams.append(stream)
    return streams


def _by_range(wd: Wd, names: Sequence[str], context: StreamContext) -> list[list[str]]:
    """The SDs of a WD by their range: each has a stream, and a part of the skew as vdbench divides it, over the
    SDs. One group if the WD has a range, which replaces theirs."""
    groups: dict[VolumeRegion | None, list[str]] = {}
    for name in names:
        groups.setdefault(None if wd.range is not None else context.sds[name].range, []).append(name)
    return list(groups.values())


def _shares(rd: Rd, wds: Sequence[Wd], problems: Problems) -> list[float | None] | None:
    """Percent for each WD: its skew, else an equal part of what the others leave; None where nothing is
    shared out."""
    free = all(wd.skew is None and wd.priority is None for wd in wds)
    if free and all(rate in (MAX_RATE, CURVE_RATE) for rate in rd.rates or (MAX_RATE,)):
        return [None] * len(wds)
    sharing = [wd for wd in wds if wd.rate_iops is None]
    given = sum(wd.skew for wd in sharing if wd.skew is not None)
    without = sum(wd.skew is None for wd in sharing)
    rest = (100 - given) / without if without else 0.0
    if sharing and (rest < -_SKEW_TOLERANCE or (not without and abs(given - 100) > _SKEW_TOLERANCE)):
        problems.error(
            rd.place, f"rd={rd.name}: the skews add up to {given:g}, not 100", "mend skew= in its WDs"
        )
        return None
    if without and rest <= _SKEW_TOLERANCE:
        problems.error(
            rd.place, f"rd={rd.name}: the skews leave nothing for the other WDs", "give every WD a skew"
        )
        return None
    return [None if wd.rate_iops is not None else wd.skew if wd.skew is not None else rest for wd in wds]


def _stream(
    wd: Wd, title: str, names: Sequence[str], share: float | None, context: StreamContext
) -> StreamSpec | None:
    sds = [context.sds[name] for name in names]
    seek = cast("Seek | None", context.loop_values.get("seekpct", wd.seek))
    seek = seek or Seek(0.0 if wd.streams > 1 else 100.0, stop_at_end=False)
    problems = context.problems
    if wd.streams > 1 and seek.random_percent:
        problems.error(wd.place, f"wd={wd.name}: streams= are sequential", "write seekpct=seq")
        return None
    for sd in sds:
        threads = int(context.loop("threads", sd.threads))
        if wd.streams > 1 and threads % wd.streams:
            what = (
                f"wd={wd.name}: threads={threads} of sd={sd.name} is not a multiple of streams={wd.streams}"
            )
            problems.error(wd.place, what, "make it one")
            return None
    if not _same(wd, sds, "align", lambda sd: sd.align_bytes, problems):
        return None
    size_bytes = context.loop_values.get("xfersize")
    ratio = context.loop_values.get("compratio", context.general.compression_ratio)
    return StreamSpec(
        name=title,
        volumes=tuple(names),
        share_percent=share,
        rate_iops=wd.rate_iops,
        priority=wd.priority,
        sizes=wd.sizes if size_bytes is None else SizeMix.one(int(cast("float", size_bytes))),
        read_percent=context.loop("rdpct", wd.read_percent),
        random_percent=seek.random_percent,
        stride=wd.stride,
        range=wd.range or sds[0].range,
        hotband=wd.hotband,
        align_bytes=sds[0].align_bytes,
        hit_area=_hit_area(wd, sds, context),
        skip_first_block=any(target.is_raw for sd in sds if (target := context.targets[sd.name])),
        stop_at_end=seek.stop_at_end,
        cursors=wd.streams,
        compression_ratio=cast("float | None", ratio),
        dedup=dedup_of(context.general, len(context.sds))
        if context.loop("rdpct", wd.read_percent) < 100
        else None,
    )


def dedup_of(general: General, sds: int) -> DedupSpec | None:
    """The duplicates in the data of one SD; a number of sets is divided among all of the file."""
    asked = general.dedup
    if asked is None:
        return None
    sets = max(asked.sets // sds, 1) if asked.sets else None
    return DedupSpec(
        ratio=asked.ratio, unit_bytes=asked.unit_bytes, sets_percent=asked.sets_percent, sets=sets
    )


def _hit_area(wd: Wd, sds: Sequence[Sd], context: StreamContext) -> HitArea | None:
    read = context.loop("rhpct", wd.read_hit_percent)
    write = context.loop("whpct", wd.write_hit_percent)
    if not (read or write) or wd.streams > 1:
        return None
    area_bytes = int(context.loop("hitarea", max(sd.hit_area_bytes for sd in sds)))
    if not area_bytes:
        context.problems.error(wd.place, f"wd={wd.name}: hits are asked for, but hitarea is 0", "hitarea=1m")
        return None
    largest_bytes = _largest_bytes(wd, context)
    if area_bytes < largest_bytes:
        what = f"wd={wd.name}: hitarea is smaller than xfersize={largest_bytes}"
        context.problems.error(wd.place, what, "make hitarea= larger")
    for sd in sds:
        if sd.size_bytes is not None and sd.size_bytes < 4 * area_bytes:
            what = f"wd={wd.name}: hits need a volume of four hit areas, and sd={sd.name} is smaller"
            context.problems.error(wd.place, what, "make size= larger or hitarea= smaller")
    return HitArea(bytes=area_bytes, read_percent=read, write_percent=write)


def _largest_bytes(wd: Wd, context: StreamContext) -> int:
    own = wd.sizes.max_bytes if isinstance(wd.sizes, SizeRange) else max(size for size, _ in wd.sizes.parts)
    return int(context.loop("xfersize", own))


def _same(
    wd: Wd,
    sds: Sequence[Sd],
    keyword: str,
    value: Callable[[Sd], VolumeRegion | int | None],
    problems: Problems,
) -> bool:
    """Whether the SDs of a WD agree on a keyword that a stream has once."""
    for sd in sds[1:]:
        if value(sd) != value(sds[0]):
            what = f"wd={wd.name}: sd={sds[0].name} and sd={sd.name} differ in {keyword}="
            problems.error(wd.place, what, f"give them the same {keyword}, or a WD each")
            return False
    return True
