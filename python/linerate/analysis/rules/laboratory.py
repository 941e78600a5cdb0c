"""Rules about a virtual SAN: it shares one machine with everything else, and its links are made of that machine's time.

The figures are the laboratory's counters over the measured time; on real hosts there are none and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from linerate.analysis.figures import figures_of
from linerate.analysis.rules.base import Doubt, StepRule, StepView, caution, note, short_ms, void
from linerate.analysis.summary import measured

IDLE_PERCENT_MIN = 10.0
FOREIGN_PERCENT_MAX = 5.0
STOLEN_PERCENT_MAX = 5.0
FABRIC_LATE_PERCENT_DOUBTED = 1.0  # beyond, the 99th percentile is the machine's and not the link's
FABRIC_LATE_PERCENT_MAX = 5.0  # beyond, more frames were late than a study's margin forgives
FABRIC_PEAK_MS_MAX = 200.0  # TCP's shortest retransmission timeout: a longer silence counts as loss
FABRIC_GIVEN_UP_PERCENT_MAX = 1.0  # beyond, rates are off by more than a study resolves
FIRST_TOUCH_PERCENT_MAX = 1.0  # beyond, the 99th percentile may be the kernel's work and not the array's
FABRIC_GIVEN_UP_PERCENT_DOUBTED = 0.1  # beyond, a run can see it


def _fabric_late(step: StepView) -> Iterator[Doubt]:
    """A run in which the fabric fell behind is void; a few late turns are this machine's scheduler."""
    figures = figures_of(step.summary, step.record.counters)
    lag_ms = figures.get("fabric_lag_ms", 0.0)
    late, given_up = figures.get("fabric_late_percent", 0.0), figures.get("fabric_given_up_percent", 0.0)
    if (
        late <= FABRIC_LATE_PERCENT_DOUBTED
        and given_up <= FABRIC_GIVEN_UP_PERCENT_DOUBTED
        and lag_ms < FABRIC_PEAK_MS_MAX
    ):
        return
    reason = f"the virtual network was late: by more than 1 ms in {late:.1f} % of the time, by {lag_ms:.1f} ms at most"
    advice = "use a lower line rate or larger frames, or stop other work on this machine"
    if (
        late > FABRIC_LATE_PERCENT_MAX
        or given_up > FABRIC_GIVEN_UP_PERCENT_MAX
        or lag_ms >= FABRIC_PEAK_MS_MAX
    ):
        lost = f"; {given_up:.1f} % of the time could not be made up for" if given_up else ""
        yield void(f"{reason}{lost}", advice)
    else:
        yield caution(
            reason,
            f"the slowest {late:.1f} % of the I/Os may be up to {lag_ms:.1f} ms too slow, and the rate up to "
            f"{late + given_up:.1f} % too low",
            advice,
        )


def _machine_full(step: StepView) -> Iterator[Doubt]:
    figures = figures_of(step.summary, step.record.counters)
    busy = figures.get("machine_busy_percent", 0.0)
    idle = 100 - busy - figures.get("stolen_percent", 0.0)
    others = figures.get("foreign_percent", 0.0)
    if idle + (others if others > FOREIGN_PERCENT_MAX else 0.0) >= IDLE_PERCENT_MIN:
        return  # idle, or it would be without the other programs, which have a rule of their own
    total = step.summary.total
    yield caution(
        f"the machine that carries the whole SAN was {busy:.0f} % busy: it may be what limits, not the SAN",
        f"the rate was kept; up to {short_ms(measured(total.response_mean_ms))} of the response time may be waits "
        "for a CPU"
        if step.rate_kept
        else f"the modelled SAN may do more than {total.iops:,.0f} IOPS; this machine has CPUs for "
        f"{100 * max(idle, 0.0) / max(busy, 1.0):.0f} % more",
        "use a lower line rate, larger frames, or a machine with more CPUs",
    )


def _other_work(step: StepView) -> Iterator[Doubt]:
    foreign = figures_of(step.summary, step.record.counters).get("foreign_percent", 0.0)
    if foreign > FOREIGN_PERCENT_MAX:
        yield caution(
            f"other programs took {foreign:.0f} % of the machine's CPUs while the virtual SAN was measured",
            _without_these_cpus(step, foreign),
            "stop other work on this machine",
        )


def _stolen(step: StepView) -> Iterator[Doubt]:
    """Time that a virtual machine does not get passes all the same, and every timer in it is late."""
    stolen = figures_of(step.summary, step.record.counters).get("stolen_percent", 0.0)
    if stolen > STOLEN_PERCENT_MAX:
        awake = (step.record.san.get("facts") or {}).get("idle_cpus") == "polling"
        yield caution(
            f"CPU steal: the hypervisor gave {stolen:.0f} % of the CPU time to others",
            _without_these_cpus(step, stolen),
            "measure when the other guests are quiet, or on a machine with CPUs of its own"
            if awake
            else "run as root: idle CPUs are then kept awake, and the hypervisor has none to wake",
        )


def _without_these_cpus(step: StepView, percent: float) -> str:
    """What a load lost that had to do without this share of the CPUs: all of it where it needs CPUs, no more."""
    late = f"up to {percent:.0f} % of the I/Os may have waited for a CPU"
    if step.rate_kept:
        return f"the rate was kept; {late}"
    times = 100 / max(100 - percent, 1.0)
    if times >= 2:
        return f"with all CPUs the rate may be up to {times:.0f} times as high; {late}"
    return f"with all CPUs the rate may be up to {100 * (times - 1):.0f} % higher; {late}"


def _first_touch(step: StepView) -> Iterator[Doubt]:
    """The kernel finds and clears a page at its first use, in the middle of an I/O: up to 2 MiB, which takes long."""
    figures = figures_of(step.summary, step.record.counters)
    percent = 100 * figures.get("array_page_faults_per_io", 0.0)
    if percent <= FIRST_TOUCH_PERCENT_MAX:
        return
    total = step.summary.total
    percent = min(percent, 100.0)
    yield caution(
        f"the array used new memory while it was measured: {percent:.2g} page faults per 100 I/Os",
        f"up to {percent:.2g} % of the I/Os waited for the kernel to clear memory: the mean of "
        f"{short_ms(measured(total.response_mean_ms))} and percentiles above p{100 - percent:.3g} may be too high",
        "write the volumes once before, or use a longer warm-up",
    )


def _virtual_time(step: StepView) -> Iterator[Doubt]:
    """What was computed must not be taken for what was measured."""
    if step.computed:
        yield note(
            "computed in virtual time on modelled disks: network, initiator, target and host have no part in it",
            "run the same workload over the network of a lab or a real SAN to see their part",
        )


RULES = (
    StepRule("fabric-late", _fabric_late),
    StepRule("machine-full", _machine_full),
    StepRule("other-work", _other_work),
    StepRule("stolen-time", _stolen),
    StepRule("first-touch", _first_touch),
    StepRule("virtual-time", _virtual_time),
)
