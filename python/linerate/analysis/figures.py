"""The figures of one step that a study compares, that rules doubt it by, and that tell what limited it.

They come from three places: the summary of the step (load side), the laboratory's counters over the measured time
(CPU per side, TCP per side, bytes per link), and the rates of the links. Figures that were not counted are left out; a
missing figure is never a zero.

Figures beyond `verdict.METRICS`, and what these mean, all over the measured time:

    ios, queue_depth, io_bytes, read_percent, rtt_us    from the load
    asked_iops                                      that a load was paced at; absent where it went as fast as it could
    response_ms, p50_ms, p95_ms, p99_ms             of a paced load both from the intended start, else service times
    host_cores, array_cores, fabric_cores           CPUs kept busy by a side
    array_page_faults_per_io                        pages that the kernel gave to the arrays or fetched for them
    machine_busy_percent                            of all CPUs of the machine
    foreign_percent                                 of these, what certainly no part of the laboratory used
    stolen_percent                                  of these, CPU steal: what the hypervisor kept
    host_rwnd_limited_percent, host_sndbuf_...      of the time in which the host had data to send (TCP_INFO)
    array_rwnd_limited_percent, array_sndbuf_...    the same of the array, where the laboratory counts it
    host_retransmit_percent, array_...              of the segments that the side sent
    link.NAME.sent_percent, .received_percent       of the line rate, as the node at the link's end sees it
    line.NAME.mbit_s                                that line rate, in 10^6 bits per second
    link_percent                                    of the busiest link and direction
    dropped_frames                                  in adapters and switches
    fabric_lag_ms                                   how far the user fabric fell behind at worst
    fabric_late_percent                             of the time that it settled more than 1 ms too late
    fabric_given_up_percent                         of the time, that it could not make up for
    replication_s_per_gib                           the time that an array took to copy so much to its partner
    iscsi_share_percent                             of storage and LAN throughput together

What the disks behind an array did is `linerate.analysis.arrays`' to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linerate.analysis.summary import GIB, StepSummary, measured

WIRE_BYTES_PER_FRAME = (
    24  # check sequence, preamble, gap: a line is busy with them, a counter does not see them
)
UNCERTAIN_S = 0.05
"""The kernel rounds each of the five kinds of busy time down to 10 ms (proc_stat(5)). In a short step that is much."""
LATE_S = 1e-3  # from which the fabric counts a turn as late
LINE_RATES = "line_rates_bits_per_s"
"""Under this name a run's record of its SAN has the rate of each link (port -> bits per second) during the run."""
BITS_PER_MBIT = 1e6
SIDES = ("host", "array")
ONE_WAY_PERCENT = 95
"""More of the I/Os than this are reads, or writes: the data goes one way."""


def figures_of(
    summary: StepSummary,
    counters: Mapping[str, float] | None = None,
    line_rates_bits_per_s: Mapping[str, float] | None = None,
    lan_mib_s: float | None = None,
) -> dict[str, float]:
    """The figures of one step of a run of Linerate.

    Args:
        summary: the step, warm-up left out.
        counters: what the laboratory counted in the measured time, under its flat names: differences, save for
            `fabric.lag_ns_max`, which is the maximum.
        line_rates_bits_per_s: link name -> rate, as it was during the run.
        lan_mib_s: what LAN streams moved beside the storage load.
    """
    counters = counters or {}
    counted_s = counters.get(
        "machine.clock_s", summary.seconds
    )  # counters are read a little before and after
    figures = dict(_load(summary))
    figures.update(_cpu(counters, counted_s))
    figures.update(_tcp(counters, lan=lan_mib_s is not None))
    if (again := _retransmits(figures, measured(summary.read_percent))) is not None:
        figures["retransmit_percent"] = again
    figures.update(_links(counters, line_rates_bits_per_s or {}, counted_s))
    figures.update(_fabric(counters, counted_s))
    faults = _sum_of(counters, "array", "page_faults")
    if faults is not None and summary.total.ios:
        figures["array_page_faults_per_io"] = faults / summary.total.ios
    if copied := counters.get("replication.sent_bytes"):
        figures["replication_s_per_gib"] = counters["replication.busy_s"] / (copied / GIB)
    if lan_mib_s is not None:
        figures["lan_mib_s"] = lan_mib_s
        both = lan_mib_s + summary.total.mib_s
        if both > 0:
            figures["iscsi_share_percent"] = 100 * summary.total.mib_s / both
    return figures


def _retransmits(figures: Mapping[str, float], read_percent: float) -> float | None:
    """Of the side that sends the data: four commands sent twice are many of few segments, and no loss of data.

    Of a mixed load, or where only one side is counted, that of the side that repeats most.
    """
    sides = {side: figures[name] for side in SIDES if (name := f"{side}_retransmit_percent") in figures}
    sender = (
        "array" if read_percent > ONE_WAY_PERCENT else "host" if read_percent < 100 - ONE_WAY_PERCENT else ""
    )
    return sides.get(sender, max(sides.values(), default=None))


def _load(summary: StepSummary) -> Iterator[tuple[str, float]]:
    total, usage = summary.total, summary.usage
    if total.ios:
        yield "ios", total.ios
        yield "iops", total.iops
        yield "mib_s", total.mib_s
        yield "response_ms", measured(summary.answer_mean_ms)
        yield "queue_depth", measured(total.queue_depth)
        yield "io_bytes", total.bytes / total.ios
        yield "read_percent", measured(summary.read_percent)
        if summary.rate_asked_iops is not None:
            yield "asked_iops", summary.rate_asked_iops
        for name, q in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)):
            found = summary.answer_quantile(q)
            if found is not None and found.reliable:
                yield name, found.value_ms
    optional = {
        "host_cpu_percent": usage.cpu_busy_percent,
        "cycles_per_byte": usage.cycles_per_byte,
        "host_rwnd_limited_percent": usage.rwnd_limited_percent,
        "host_sndbuf_limited_percent": usage.sndbuf_limited_percent,
        "host_retransmit_percent": usage.retransmits_percent,
        "rtt_us": usage.rtt_us_mean or None,
    }
    yield from ((name, value) for name, value in optional.items() if value is not None)


def _cpu(counters: Mapping[str, float], seconds: float) -> Iterator[tuple[str, float]]:
    """On one machine, percentages are of all its CPUs; a side's namespace counts, not the machine."""
    busy_s, idle_s = counters.get("machine.busy_s"), counters.get("machine.idle_s")
    stolen_s = counters.get("machine.stolen_s", 0.0)
    machine_s = busy_s + idle_s + stolen_s if busy_s is not None and idle_s is not None else 0.0
    if machine_s > 0 and busy_s is not None:
        yield "machine_busy_percent", 100 * busy_s / machine_s
        yield "stolen_percent", 100 * stolen_s / machine_s
        ours_s = sum(value for name, value in counters.items() if name.endswith(".cpu_s"))
        yield "foreign_percent", max(100 * (busy_s - ours_s - UNCERTAIN_S) / machine_s, 0.0)
    for side in SIDES:
        used_s = _sum_of(counters, side, "cpu_s")
        if used_s is None:
            continue
        if seconds > 0:
            yield f"{side}_cores", used_s / seconds
        if machine_s > 0:
            yield f"{side}_cpu_percent", 100 * used_s / machine_s
    if "fabric.cpu_s" in counters and seconds > 0:
        yield "fabric_cores", counters["fabric.cpu_s"] / seconds


def _fabric(counters: Mapping[str, float], seconds: float) -> Iterator[tuple[str, float]]:
    """The user fabric's own lag; the kernel's has no clock of its own."""
    if "fabric.lag_ns_max" in counters:
        yield "fabric_lag_ms", counters["fabric.lag_ns_max"] / 1e6
    if "fabric.late_ns" in counters and seconds > 0:
        yield "fabric_late_percent", 100 * counters["fabric.late_ns"] / 1e9 / seconds
    elif "fabric.late_turns" in counters and seconds > 0:  # runs of versions without the time
        yield "fabric_late_percent", min(100 * counters["fabric.late_turns"] * LATE_S / seconds, 100.0)
    if "fabric.given_up_ns" in counters and seconds > 0:
        yield "fabric_given_up_percent", 100 * counters["fabric.given_up_ns"] / 1e9 / seconds


def _tcp(counters: Mapping[str, float], *, lan: bool) -> Iterator[tuple[str, float]]:
    """Segments of whole nodes. Beside LAN streams a host's are not the storage's: its sessions' own figures stay."""
    for side in SIDES:
        sent = _sum_of(counters, side, "tcp_segments_sent")
        again = _sum_of(counters, side, "tcp_segments_retransmitted")
        if sent and again is not None and not (lan and side == "host"):
            yield f"{side}_retransmit_percent", 100 * again / sent
        busy_us = _sum_of(counters, side, "tcp_busy_us")
        for limit in ("rwnd", "sndbuf"):
            limited_us = _sum_of(counters, side, f"tcp_{limit}_limited_us")
            if busy_us and limited_us is not None:
                yield f"{side}_{limit}_limited_percent", 100 * limited_us / busy_us


def _links(
    counters: Mapping[str, float], rates: Mapping[str, float], seconds: float
) -> Iterator[tuple[str, float]]:
    busiest = None
    for name, rate in rates.items():
        if any(f"port.{name}.bytes_{direction}" in counters for direction in ("sent", "received")):
            yield f"line.{name}.mbit_s", rate / BITS_PER_MBIT
        for direction in ("sent", "received"):
            data = counters.get(f"port.{name}.bytes_{direction}")
            if data is None or seconds <= 0:
                continue
            frames = counters.get(f"port.{name}.frames_{direction}", 0.0)
            percent = 100 * 8 * (data + WIRE_BYTES_PER_FRAME * frames) / seconds / rate
            yield f"link.{name}.{direction}_percent", percent
            busiest = percent if busiest is None else max(busiest, percent)
    if busiest is not None:
        yield "link_percent", busiest
    drops = [
        value
        for name, value in counters.items()
        if name.startswith("port.") and name.endswith((".drops", ".switch_drops"))
    ]
    if drops:
        yield "dropped_frames", sum(drops)


def _sum_of(counters: Mapping[str, float], side: str, what: str) -> float | None:
    """The sum over all nodes of a side; None where nothing was counted. Names of nodes hold no dot."""
    found = [
        value
        for name, value in counters.items()
        if name.startswith(f"{side}.") and name.partition(".")[2].partition(".")[2] == what
    ]
    return sum(found) if found else None
