"""What limited a run, in one sentence per step and one for the whole run.

The figures of a step are explained as those of a study are (`attribution.py`). In a laboratory the run's record of the
SAN has the rate of each link. Two things are known of a single run only: whether its load generator was full, and the
port of a real host, whose speed and traffic tell how full the line was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linerate.analysis.arrays import array_figures
from linerate.analysis.figures import BITS_PER_MBIT, LINE_RATES, figures_of
from linerate.analysis.limits.attribution import Limit, attribute
from linerate.analysis.limits.wire import HEADERS_BYTES, MTU_USUAL_BYTES, on_wire
from linerate.analysis.observation import Observation
from linerate.analysis.rules.base import pace_kept
from linerate.analysis.summary import StepSummary, measured
from linerate.plural import plural
from linerate.results import RunDirectory, StepRecord

WORKER_FULL = 0.95  # of a CPU per worker


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What limited a step, by name and in a sentence; `unknown` where no figure tells."""

    limit: Limit
    sentence: str


LIMIT_WORDS: Mapping[Limit, str] = {
    "fabric lag": "the virtual network's own computing time",
    "host CPU": "the CPUs of the host",
    "array CPU": "the CPUs of the array",
    "machine CPU": "the CPUs of the machine that carries the whole SAN",
    "receive window": "a TCP receive window",
    "send buffer": "a TCP send buffer",
    "link": "a link",
    "loss": "loss of frames",
    "disks": "the disks",
    "array service": "the time per I/O",
    "latency": "the latency of the network",
    "load": "the rate that was asked for",
    "unknown": "not known",
}
"""Each limit, after "the limit was"."""
UNKNOWN = Bottleneck("unknown", "No counter says what limited this run.")


def bottleneck(run: RunDirectory, summary: StepSummary) -> Bottleneck:
    """What limited one step."""
    if not summary.total.ios:
        return Bottleneck("unknown", "No I/O was completed, so nothing can be said about a limit.")
    record = run.step(summary.step)
    if record.given is not None:
        return UNKNOWN
    computed = record.facts.get("driver") == "virtual"
    if not computed and (full := _generator(summary, record.facts)):
        return full
    figures = figures_of_step(run, summary)
    if summary.paced and not pace_kept(summary):
        # In flight is an I/O from its submit on: what it waited before is no part of Little's law.
        figures["response_ms"] = measured(summary.total.mean_ms)
    (found,) = attribute([Observation(case="", workload=summary.step, block=0, values=figures)])
    if found.limit == "unknown":
        return UNKNOWN
    if found.limit == "array service" and (where := _without_network(record.facts, computed=computed)):
        return Bottleneck(found.limit, _time_per_io(figures, where))
    return Bottleneck(found.limit, found.sentence)


def figures_of_step(run: RunDirectory, summary: StepSummary) -> dict[str, float]:
    """All that is known of a step: of its load, laboratory and disks, and of the port of a real host."""
    record = run.step(summary.step)
    figures = figures_of(summary, record.counters, _line_rates(record)) | array_figures(run, summary.step)
    if ports := dict(_ports(run, summary)):
        shares = [share for name, share in ports.items() if name.startswith("link.")]
        figures |= ports | {"link_percent": max(shares)}
    return figures


def _line_rates(record: StepRecord) -> dict[str, float]:
    """Link -> bits per second, as the laboratory recorded them; empty for runs elsewhere and of older versions."""
    rates = record.san.get(LINE_RATES)
    if not isinstance(rates, Mapping):
        return {}
    return {name: float(rate) for name, rate in rates.items() if isinstance(rate, int | float) and rate > 0}


def _without_network(facts: Mapping[str, Any], *, computed: bool) -> str:
    """Where the time of an I/O is spent if no iSCSI session has a part in it; empty if one has."""
    if computed:
        return "on the modelled disks"
    kinds = {volume.get("kind") for volume in facts.get("volumes") or ()}
    if kinds == {"null"}:
        return "in this host, for null volumes do nothing"
    return "in files and block devices of this host" if kinds and kinds <= {"null", "file", "block"} else ""


def _time_per_io(figures: Mapping[str, float], where: str) -> str:
    """Nothing was full: by Little's law the queue depth over the time of one I/O is the rate."""
    busy = figures.get("disk_busy_percent")
    disks = f"; the disks were busy {min(busy, 100.0):.0f} % of the time" if busy is not None else ""
    return (
        f"The time per I/O was the limit: {figures['queue_depth']:.3g} I/Os in flight, {figures['response_ms']:.3g} ms "
        f"each {where}, give {figures['iops']:,.0f} IOPS{disks}."
    )


def limit_of(run: RunDirectory, summaries: Sequence[StepSummary]) -> str:
    """What limited a run, in one sentence."""
    return bottleneck_of_run([(summary, bottleneck(run, summary)) for summary in summaries])


def bottleneck_of_run(found: Sequence[tuple[StepSummary, Bottleneck]]) -> str:
    """One sentence about all steps: of one step its own, of several how many of them each limit had."""
    if len(found) == 1:
        return found[0][1].sentence
    limits = Counter(one.limit for _, one in found)
    if set(limits) <= {"unknown"}:
        return UNKNOWN.sentence
    (most, count), *others = limits.most_common()
    if not others:
        return f"In all {count} steps the limit was {LIMIT_WORDS[most]}."
    rest = ", ".join(f"{LIMIT_WORDS[limit]} in {number}" for limit, number in others)
    return f"The limit was {LIMIT_WORDS[most]} in {count} of {len(found)} steps, {rest}."


def _generator(summary: StepSummary, facts: Mapping[str, Any]) -> Bottleneck | None:
    """Workers that have no time left decide the rate, however fast the SAN is. A rate that was kept was not limited."""
    workers = facts.get("workers")
    cores = measured(summary.usage.load_cores)
    if not isinstance(workers, int) or not workers or cores < WORKER_FULL * workers:
        return None
    if pace_kept(summary):
        return None
    each = f", {summary.usage.cpu_us_per_io:.3g} us of CPU per I/O" if summary.usage.cpu_us_per_io else ""
    return Bottleneck(
        "host CPU",
        f"The load generator was the limit: its {plural(workers, 'worker')} kept {cores:.2f} CPUs busy{each}.",
    )


def _ports(run: RunDirectory, summary: StepSummary) -> Iterator[tuple[str, float]]:
    """Rate and use of the port of a real host; nothing where there are several ports, or where a laboratory counts."""
    facts = run.manifest.environment
    speeds = {
        key.removeprefix("port.").removesuffix(".speed_mbit_s"): float(value)
        for key, value in facts.items()
        if key.startswith("port.") and key.endswith(".speed_mbit_s") and isinstance(value, int) and value > 0
    }
    ports = [key for key in facts if key.startswith("port.") and key.endswith(".peers")]
    if len(speeds) != 1 or len(ports) != 1 or run.step(summary.step).counters or not summary.seconds:
        return
    ((port, speed_mbit_s),) = speeds.items()
    mtu = facts.get(f"port.{port}.mtu_bytes")
    mtu_bytes = mtu if isinstance(mtu, int) and mtu > HEADERS_BYTES else MTU_USUAL_BYTES
    yield f"line.{port}.mbit_s", speed_mbit_s
    usage = run.measured_usage(summary.step)
    for direction in ("sent", "received"):
        bits_per_s = 8 * float(usage[f"bytes_{direction}"].sum()) * on_wire(mtu_bytes) / summary.seconds
        yield f"link.{port}.{direction}_percent", 100 * bits_per_s / (speed_mbit_s * BITS_PER_MBIT)
