"""Rules about the data: errors, caches, content, and whether the recorded distributions are whole."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note, void
from linerate.analysis.rules.hosts import CLOCK, LOST
from linerate.analysis.summary import GIB, NS_PER_MS, measured

ERROR_PERCENT_VOID = 1.0
CACHE_BYTES = 4 * GIB
_CLIP_SLACK = 1.01  # a bucket is up to 0.1 % wide


def _errors(step: StepView) -> Iterator[Doubt]:
    total = step.summary.total
    if not total.errors:
        return
    percent = 100 * total.errors / max(total.ios + total.errors, 1)
    reason = f"{total.errors} I/Os failed ({percent:.2g} %)"
    advice = "look at the events for the reasons; failed I/Os can be faster or slower than good ones"
    if percent > ERROR_PERCENT_VOID:
        yield void(reason, advice)
    else:
        yield caution(
            reason,
            f"the rate leaves them out and may be {percent:.2g} % too low; percentiles above p{100 - percent:.5g} "
            "may be too low",
            advice,
        )


def _incidents(step: StepView) -> Iterator[Doubt]:
    events = [
        event
        for event in step.run.events
        if event.step == step.record.key and event.blame and event.kind not in (LOST, CLOCK)
    ]
    if events:
        first = events[0]
        yield note(
            f"events during the step: {len(events)}, the first at {first.at_s:.1f} s: {first.message}",
            "read them in the report and decide whether they explain the figures",
        )


def _no_io(step: StepView) -> Iterator[Doubt]:
    if (step.summary.intervals or step.record.given) and not step.summary.total.ios:
        yield void("no I/O completed", "check the volumes, the rate and the events")


def _cache_sized(step: StepView) -> Iterator[Doubt]:
    volumes = [volume for volume in step.volume_facts if volume.get("kind") != "null"]
    used = sum(int(volume.get("size_bytes") or 0) for volume in volumes)
    if not volumes or not used:
        return
    if used < CACHE_BYTES and not step.computed:
        is_remote = any(volume.get("kind") not in ("file", "block") for volume in volumes)
        measured = "the network" if is_remote else "a cache"
        yield note(
            f"{used / GIB:.2f} GiB in all volumes fit in a cache: this measures {measured}, not disks",
            "use volumes several times as large as the caches on the way to measure the disks",
        )
    memory = step.run.manifest.environment.get("memory.total_bytes")
    specs = {volume.get("name"): volume for volume in step.spec.get("volumes", ())}
    cached = [
        v
        for v in volumes
        if specs.get(v.get("name"), {}).get("direct") is False and v.get("kind") in ("file", "block")
    ]
    if cached and isinstance(memory, int) and used < memory:
        yield caution(
            f"files go through this host's page cache: {used / GIB:.2f} GiB of data, {memory / GIB:.0f} GiB of memory",
            "up to 100 % of the reads may come from memory: rates and times are then those of the memory",
            "open them past the page cache (vdbench openflags=o_direct, fio direct=1, TOML direct = true), "
            "or use more data than the host has memory",
        )


def _compressible(step: StepView) -> Iterator[Doubt]:
    ratios = [
        float(stream["compression_ratio"]) for stream in step.streams if stream.get("compression_ratio")
    ]
    writes = step.summary.write is not None and step.summary.write.ios > 0
    if writes and any(ratio > 1 for ratio in ratios):
        yield note(
            f"written data compress up to {max(ratios):g}:1",
            "an array that compresses stores less than it is sent; use incompressible data to exclude that",
        )


def _verifying(step: StepView) -> Iterator[Doubt]:
    if step.spec.get("verify", "off") != "off":
        cost = f" (in all {cpu:.3g} us of CPU per I/O)" if (cpu := step.summary.usage.cpu_us_per_io) else ""
        yield note(
            f"verify was on: the check of the data costs CPU{cost}",
            "turn verify off to measure the largest rate",
        )


def _clipped(step: StepView) -> Iterator[Doubt]:
    histogram = step.run.latency(step.record.key)
    total = step.summary.total
    if histogram is None:
        if total.ios:
            yield note(
                "no latency distribution was recorded: there are no percentiles", "run it again to have them"
            )
        return
    longest_ms, max_ms = histogram.max / NS_PER_MS, measured(total.max_ms)
    if max_ms > longest_ms * _CLIP_SLACK:
        yield caution(
            f"the distribution ends at {longest_ms:.0f} ms; one I/O took {max_ms:.0f} ms",
            f"the last percentiles may be up to {max_ms - longest_ms:.0f} ms too low",
            "quote the maximum, not the last percentiles",
        )
    lost = abs(total.ios - histogram.count) / max(total.ios, 1)
    if lost:
        reason = f"the distribution holds {histogram.count} I/Os of {total.ios}"
        low, high = (
            histogram.quantile(min(max(0.99 + side, 0.0), 1.0)) / NS_PER_MS for side in (-lost, lost)
        )
        if low == high:
            yield note(f"{reason}; p99 is {high:.3g} ms with and without them", "nothing has to be done")
        else:
            yield caution(reason, f"p99 may be anything from {low:.3g} to {high:.3g} ms", "run it again")


def _thin_tail(step: StepView) -> Iterator[Doubt]:
    thin = [item.name for item in step.summary.total.quantiles if not item.reliable]
    if thin:
        yield note(
            f"too few I/Os for {', '.join(thin)}: fewer than 100 were slower",
            "run longer before quoting them; the report shows them greyed",
        )


RULES = (
    StepRule("no-io", _no_io),
    StepRule("io-errors", _errors),
    StepRule("events", _incidents),
    StepRule("cache-sized-volume", _cache_sized),
    StepRule("compressible-data", _compressible),
    StepRule("verify-on", _verifying),
    StepRule("clipped-histogram", _clipped),
    StepRule("thin-tail", _thin_tail),
)
