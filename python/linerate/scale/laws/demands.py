"""Service demands of a run: for each station that counts its busy time, the seconds of it per I/O of a host."""

from __future__ import annotations

from linerate.analysis import StepSummary
from linerate.analysis.arrays import array_use
from linerate.analysis.limits.bottleneck import figures_of_step
from linerate.analysis.summary import measured
from linerate.results import RunDirectory


def demands_s(run: RunDirectory, summary: StepSummary) -> dict[str, float]:
    """Station -> seconds per I/O, by the utilisation law D = U / X.

    Disks have their own busy time, links their share of the line rate. The CPU is that of the machine in a laboratory,
    which carries all sides, else that of the load's threads; in virtual time there is none. A station with several
    CPUs counts as one that is so many times as fast. Empty for a run without an I/O.
    """
    rate = summary.total.iops
    if not rate:
        return {}
    use = array_use(run, summary.step)
    busy = {
        f"disk {disk.row.array}/{disk.row.name}": disk.busy_percent / 100
        for disk in (use.working if use else ())
        if disk.row.seconds
    }
    figures = figures_of_step(run, summary)
    for name, percent in figures.items():
        if name.startswith("link.") and name.endswith("_percent"):
            busy[name.removesuffix("_percent").replace(".", " ", 1)] = percent / 100
    facts = run.step(summary.step).facts
    workers = facts.get("workers")
    if "machine_busy_percent" in figures:
        busy["CPU machine"] = figures["machine_busy_percent"] / 100
    elif facts.get("driver") != "virtual" and isinstance(workers, int) and workers:
        busy["CPU load"] = measured(summary.usage.load_cores) / workers
    return {name: share / rate for name, share in busy.items() if share > 0}
