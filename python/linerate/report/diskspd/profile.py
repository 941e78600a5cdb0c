"""The profile: what each step was asked for, in the order and with the names of diskspd's own profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from linerate.report.diskspd.elements import Queue, add, queues_of
from linerate.results import StepRecord

_MS_PER_S = 1000
_NORMAL_PRIORITY = 3


def add_profile(root: Element, steps: Iterable[StepRecord]) -> None:
    """Add the profile of all steps."""
    profile = add(root, "Profile")
    add(profile, "Progress", 0)
    add(profile, "ResultFormat", "xml")
    add(profile, "Verbose", False)
    spans = add(profile, "TimeSpans")
    for step in steps:
        _add_span(spans, step)


def bucket_ms(step: StepRecord) -> int:
    """Length of an interval."""
    return round(float(step.spec.get("interval_s") or 1.0) * _MS_PER_S)


def _add_span(spans: Element, step: StepRecord) -> None:
    span, spec = add(spans, "TimeSpan"), step.spec
    add(span, "CompletionRoutines", False)
    for name in ("MeasureLatency", "CalculateIopsStdDev", "DisableAffinity"):
        add(span, name, True)
    add(span, "Duration", round(float(spec.get("elapsed_s") or 0)))
    add(span, "Warmup", round(float(spec.get("warmup_s") or 0)))
    for name in ("Cooldown", "ThreadCount", "RequestCount"):
        add(span, name, 0)
    add(span, "IoBucketDuration", bucket_ms(step))
    add(span, "RandSeed", spec.get("seed") or 0)
    targets = add(span, "Targets")
    queues = list(queues_of(step))
    for queue in queues:
        _add_target(targets, queue, _rate_iops(spec, queue, len(queues)))


def _rate_iops(spec: Mapping[str, Any], queue: Queue, queues: int) -> int:
    """Rate of one queue; 0: none."""
    own = queue.stream.get("rate_iops")
    if own:
        return round(float(own) / len(queue.stream["volumes"]))
    return round(float(spec.get("arrival", {}).get("rate_iops") or 0) / queues)


def _add_target(targets: Element, queue: Queue, rate_iops: int) -> None:
    target, volume, stream = add(targets, "Target"), queue.volume, queue.stream
    block = _mean_bytes(stream.get("sizes", {}))
    first = int(volume.get("first_byte") or 0)
    size = int(volume.get("size_bytes") or 0)
    add(target, "Path", queue.path)
    add(target, "BlockSize", block)
    add(target, "BaseFileOffset", first)
    for name in ("SequentialScan", "RandomAccess", "TemporaryFile", "UseLargePages"):
        add(target, name, False)
    for name, key in (("DisableOSCache", "direct"), ("WriteThrough", "durable_writes")):
        if volume.get(key):
            add(target, name, True)
    content = add(target, "WriteBufferContent")
    if stream.get("compression_ratio"):
        add(content, "Pattern", "sequential")
    else:
        add(content, "Pattern", "random")
        add(add(content, "RandomDataSource"), "SizeInBytes", block)
    add(target, "ParallelAsyncIO", False)
    if pause := stream.get("think_time"):
        add(target, "BurstSize", pause["after_ios"])
        add(target, "ThinkTime", round(pause["pause_s"] * _MS_PER_S))
    if volume.get("create") and size:
        add(target, "FileSize", first + size)
    _add_places(target, stream, block)
    add(target, "ThreadStride", 0)
    add(target, "MaxFileSize", first + size if size else 0)
    add(target, "RequestCount", queue.outstanding)
    add(target, "WriteRatio", round(100 - float(stream.get("read_percent", 100))))
    throughput = add(target, "Throughput", rate_iops)
    if rate_iops:
        throughput.set("unit", "IOPS")
    add(target, "ThreadsPerFile", 1)
    add(target, "IOPriority", _NORMAL_PRIORITY)
    add(target, "Weight", 1)


def _add_places(target: Element, stream: Mapping[str, Any], block: int) -> None:
    jump = round(float(stream.get("random_percent", 100)))
    if jump:
        add(target, "Random", stream.get("align_bytes") or block)
        if jump < 100:
            add(target, "RandomRatio", jump)
        if uneven := stream.get("distribution"):
            kind = "Percent" if uneven["unit"] == "percent" else "Absolute"
            ranges = add(add(target, "Distribution"), kind)
            for share, length in uneven["parts"]:
                add(ranges, "Range", round(length)).set("IO", f"{share:.0f}")
    else:
        add(target, "StrideSize", block)
        add(target, "InterlockedSequential", False)


def _mean_bytes(sizes: Mapping[str, Any]) -> int:
    """Size of an I/O; of several sizes their mean."""
    parts: Sequence[tuple[int, float]] = sizes.get("parts") or ()
    if not parts:
        return (int(sizes.get("min_bytes", 0)) + int(sizes.get("max_bytes", 0))) // 2
    total = sum(share for _, share in parts)
    return round(sum(size * share for size, share in parts) / total)
