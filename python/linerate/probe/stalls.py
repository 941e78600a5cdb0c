"""Delayed acknowledgements: I/Os at depth 1 that wait 40 ms or 200 ms longer than the network needs."""

from __future__ import annotations

from linerate.probe.evidence import Evidence, SizeTimes

DELAYED_ACK_MS = (38.0, 55.0)  # Linux and BSD wait 40 ms; one round trip comes on top
LATE_ACK_MS = (190.0, 225.0)  # Windows and older stacks wait 200 ms
SOME_IOS_MIN = 40  # at least two values are above the 95th percentile
_WHO = {
    False: "The array holds the last segment back (Nagle's algorithm) until this host acknowledges the one before.",
    True: "This host holds the last segment back (Nagle's algorithm) until the array acknowledges the one before.",
}


def delayed_ack(seen: Evidence) -> str:
    """The sizes that wait, else the 4K or 8K trial that does; nothing on a path that is as slow itself."""
    if seen.rtt_ms > DELAYED_ACK_MS[0] / 4:
        return ""
    return _of_sizes(seen, is_write=False) or _of_sizes(seen, is_write=True) or _of_trials(seen)


def _of_sizes(seen: Evidence, *, is_write: bool) -> str:
    times = [one for one in seen.sizes if one.is_write == is_write]
    late = [one for one in times if _is_delay(one.p50_ms - _expected_ms(seen, one))]
    quantile = "at the median"
    if not late and not seen.is_host_busy:
        late = [one for one in times if _waits_at_times(seen, one)]
        quantile = "at the 95th percentile"
    quickest_ms = min((one.p50_ms for one in times if one not in late), default=0.0)
    if not late or not 0 < quickest_ms < DELAYED_ACK_MS[0] / 2:
        return ""  # a slow disk takes as long for each size
    verb = "writes" if is_write else "reads"
    longest_ms = max(one.p50_ms if quantile.endswith("median") else one.p95_ms for one in late)
    return (
        f"I/Os wait for a delayed acknowledgement: {verb} of {_joined(late)} bytes at depth 1 take {longest_ms:.0f} ms "
        f"{quantile}, others {quickest_ms:.3g} ms, on a path with a round trip of {seen.rtt_ms:.2g} ms. "
        f"{_WHO[is_write]}"
    )


def _waits_at_times(seen: Evidence, one: SizeTimes) -> bool:
    return one.ios >= SOME_IOS_MIN and _is_delay(one.p95_ms - _expected_ms(seen, one))


def _expected_ms(seen: Evidence, one: SizeTimes) -> float:
    """A round trip, and the time of the bytes at the best rate of that direction."""
    best_mb_s = max((bulk.mb_s for bulk in seen.bulk if bulk.trial.is_write == one.is_write), default=0.0)
    return seen.rtt_ms + (one.size_bytes / best_mb_s / 1000 if best_mb_s else 0.0)


def _of_trials(seen: Evidence) -> str:
    for name in ("write_floor", "floor"):
        one = seen.measured.get(name)
        if one is None:
            continue
        # without CPUs left, a few I/Os are that late for other reasons
        for time_ms in (one.p50_ms,) if seen.is_host_busy else (one.p50_ms, one.p99_ms):
            if _is_delay(time_ms - seen.rtt_ms):
                return (
                    f"I/Os wait {time_ms:.0f} ms for a delayed acknowledgement: {one.trial.title} take "
                    f"{one.p50_ms:.3g} ms at the median and {one.p99_ms:.3g} ms at the 99th percentile, on a path "
                    f"with a round trip of {seen.rtt_ms:.2g} ms. One side holds small segments back (Nagle's "
                    "algorithm)."
                )
    return ""


def _is_delay(late_ms: float) -> bool:
    return any(least <= late_ms <= most for least, most in (DELAYED_ACK_MS, LATE_ACK_MS))


def _joined(late: list[SizeTimes]) -> str:
    numbers = [f"{one.size_bytes}" for one in late]
    return numbers[0] if len(numbers) == 1 else f"{', '.join(numbers[:-1])} and {numbers[-1]}"
