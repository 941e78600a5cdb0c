"""Rules about the run as a whole: how it ended, whether its files are sound, whether the host was quiet."""

from __future__ import annotations

from collections.abc import Iterator

from linerate.analysis.rules.base import Doubt, RunRule, caution, note, void
from linerate.results import RunDirectory

BUSY_HOST_LOAD_PER_CPU = 0.25


def _ended_badly(run: RunDirectory) -> Iterator[Doubt]:
    reason = f": {run.manifest.reason}" if run.manifest.reason else ""
    if run.state == "failed":
        yield void(f"the run failed{reason}", "correct the cause and run it again")
    elif run.state == "interrupted":
        yield caution(f"the run was interrupted{reason}", _measured_so_far(run), "run it to the end")
    elif run.state == "running":
        yield caution("the run is still going on", _measured_so_far(run), "judge it when it has ended")


def _measured_so_far(run: RunDirectory) -> str:
    """What the last step has of its time; the steps after it have nothing."""
    if not run.manifest.steps:
        return "nothing is measured yet"
    last = run.manifest.steps[-1]
    usage = run.measured_usage(last.key)
    seconds = float((usage["end_s"] - usage["start_s"]).sum()) if usage.height else 0.0
    asked_s = float(last.spec.get("elapsed_s") or 0.0)
    whole = f" of {asked_s:g} s" if asked_s else ""
    return f"the averages of {last.key} are of {seconds:.3g} s{whole}; later steps have none"


def _damaged(run: RunDirectory) -> Iterator[Doubt]:
    for damage in run.damage():
        yield void(damage, "take the run directory from a backup")


def _nothing_measured(run: RunDirectory) -> Iterator[Doubt]:
    if not run.manifest.steps:
        yield void("the run has no step", "look at the reason why it ended")


def _busy_host(run: RunDirectory) -> Iterator[Doubt]:
    load = run.manifest.environment.get("host.load_average_1m")
    cpus = run.manifest.environment.get("cpu.count")
    computed = bool(run.manifest.steps) and all(
        step.facts.get("driver") == "virtual" for step in run.manifest.steps
    )
    if (
        not computed
        and isinstance(load, float)
        and isinstance(cpus, int)
        and load > BUSY_HOST_LOAD_PER_CPU * cpus
    ):
        yield note(
            f"the host was busy before the run: load average {load:.2f} on {cpus} CPUs",
            "stop other work on this host, or pin the load to CPUs of its own",
        )


def _slow_governor(run: RunDirectory) -> Iterator[Doubt]:
    governor = run.manifest.environment.get("cpu.governor")
    if governor in ("powersave", "schedutil", "ondemand", "conservative"):
        yield note(
            f"the CPU frequency governor is {governor}: light load may see longer latencies than heavy load",
            "set the governor to performance while measuring",
        )


def _imported(run: RunDirectory) -> Iterator[Doubt]:
    record = run.manifest.imported
    if record is not None:
        known = (
            f"percentiles other than {', '.join(f'p{percent}' for percent in record.percentiles)} are unknown"
            if record.percentiles
            else "not every step has percentiles"
        )
        yield caution(
            f"imported from {record.words}: no histograms",
            f"{known}; whether the rate was steady, and what limited it, is unknown",
            "run the workload with Linerate to have them",
        )


RULES = (
    RunRule("imported", _imported),
    RunRule("run-ended-badly", _ended_badly),
    RunRule("files-damaged", _damaged),
    RunRule("nothing-measured", _nothing_measured),
    RunRule("busy-host", _busy_host),
    RunRule("slow-governor", _slow_governor),
)
