"""Measures the loads that the search asks for: each one is a run of its own, with a directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from linerate.analysis import StepSummary, summarise
from linerate.errors import UserError
from linerate.results import WorkloadSource
from linerate.run import Execution, Loader, RunEvent, Watcher, carry_out
from linerate.scale.search import Capacity, Search, SearchLimits
from linerate.scale.threshold import Threshold
from linerate.volumes import Consent, clear
from linerate.workload import Overrides, PlannedRun, RunPlan
from linerate.workload.fewer import on_first_volumes, volume_names
from linerate.workload.spec import OpenArrival

Axis = Literal["threads", "volumes", "rate"]
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Climb:
    """What is scaled, along which axis, up to which threshold, and where the runs are kept."""

    plan: RunPlan
    source: WorkloadSource
    axis: Axis
    threshold: Threshold
    limits: SearchLimits
    directory: Path
    consent: Consent
    loader: Loader
    arrays: Watcher | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """One run: its load, response time by the threshold's metric in ms, and rate in I/Os per second."""

    load: int
    response_ms: float
    iops: float
    directory: Path


def check(asked: Climb) -> None:
    """Raises UserError for a plan or limits that cannot be scaled along this axis."""
    steps = asked.plan.plain_steps
    if len(steps) != 1:
        raise UserError(
            f"{asked.plan.name} has {len(steps)} steps",
            "scale a workload of one run, without a sweep or a curve",
        )
    if steps[0].rate.kind != "max" or steps[0].run.spec.arrival.kind != "closed":
        raise UserError(
            f"{asked.plan.name} has a rate of its own",
            "leave the rate out: --over rate changes it, others need none",
        )
    there = len(volume_names(asked.plan))
    if asked.axis == "volumes" and asked.limits.most > there:
        raise UserError(f"up to {asked.limits.most} volumes, and the workload has {there}", f"--most {there}")


def climb(asked: Climb, tell: Callable[[Reached], None], watch: Callable[[RunEvent], None]) -> Search:
    """Measures until the answer is known. Calls `tell` after each run, `watch` with the events of each. Raises
    LinerateError if a run fails.

    What is asked has passed `check`. What the largest load writes to is looked at first, and agreed to once.
    """
    largest = at_load(asked, asked.limits.most, 0)
    looks = clear([run.spec for run in largest.steps()], asked.loader.look, asked.consent).looks
    consent = asked.consent.once(looks)
    search = Search(asked.limits)
    while (load := search.next()) is not None:
        reached = _measure(asked, consent, load, search.runs, watch)
        search.record(load, reached.response_ms)
        tell(reached)
    return search


def at_load(asked: Climb, load: int, number: int) -> RunPlan:
    """The plan at a load. Each run has a seed of its own: a modelled array would repeat itself to the last digit."""
    plan = asked.plan
    if asked.axis == "volumes":
        plan, _ = on_first_volumes(plan, load)
    elif asked.axis == "threads":
        plan = Overrides(outstanding=load).apply(plan)

    def change(run: PlannedRun) -> PlannedRun:
        update: dict[str, object] = {"seed": run.spec.seed + number}
        if asked.axis == "rate":
            update["arrival"] = OpenArrival(rate_iops=float(load))
        return replace(run, spec=run.spec.model_copy(update=update))

    return plan.changed(change)


def _measure(
    asked: Climb, consent: Consent, load: int, number: int, watch: Callable[[RunEvent], None]
) -> Reached:
    outcome = carry_out(
        Execution(
            at_load(asked, load, number),
            asked.source,
            asked.directory / f"{number + 1:03d}-{asked.axis}-{load}",
            consent,
            loader=asked.loader,
            arrays=asked.arrays,
        ),
        watch,
    )
    if outcome.state == "interrupted":
        raise KeyboardInterrupt
    if outcome.error is not None:
        raise outcome.error
    (summary,) = summarise(outcome.run)
    return Reached(load, response_ms(summary, asked.threshold), summary.total.iops, outcome.run.path)


def response_ms(summary: StepSummary, threshold: Threshold) -> float:
    """The threshold's metric of response time, which in a closed loop is service time.

    Raises UserError for a run that was too short for it.
    """
    ios = summary.total.ios
    if threshold.metric == "mean" and ios:
        return summary.answer_mean_ms
    found = summary.answer_quantile(_QUANTILES.get(threshold.metric, 0.0))
    if found is None:
        raise UserError(f"{ios} I/Os were completed: too few for a {threshold}", "give more time: --elapsed")
    return found.value_ms


def lines(asked: Climb, runs: list[Reached], found: Capacity) -> Iterator[str]:
    """The response curve and the answer, for people."""
    by_load: dict[int, list[Reached]] = {}
    for run in runs:
        by_load.setdefault(run.load, []).append(run)
    title = f"{asked.threshold.metric} ms"
    yield f"{asked.axis:>8}  {'I/Os per s':>12}  {title:>10}  runs"
    for load, reached in sorted(by_load.items()):
        iops = sum(one.iops for one in reached) / len(reached)
        time_ms = sum(one.response_ms for one in reached) / len(reached)
        mark = "" if load not in found.undecided else "  too close to the threshold"
        yield f"{load:>8,}  {iops:>12,.0f}  {time_ms:>10.3g}  {len(reached):>4}{mark}"
    yield answer(asked, found)


def answer(asked: Climb, found: Capacity) -> str:
    """The answer in a sentence."""
    kept, missed, close = found.kept, found.missed, found.undecided
    what = f"{asked.axis} with a {asked.threshold}"
    if missed is None and not close:
        return f"The largest load that was allowed keeps it: at least {kept:,} {what}."
    if missed == asked.limits.least:
        return f"Even the smallest load, {missed:,} {asked.axis}, misses a {asked.threshold}."
    if missed is None:
        least = f"at least {kept:,} {what}" if kept is not None else f"no number of {what} is sure"
        return (
            f"Largest load: {least}; larger ones are too close to the threshold. More repeats or time help."
        )
    if kept is None:
        return f"Largest load: at most {missed - 1:,} {what} (95 % confidence); none is surely below it."
    if missed == kept + 1:
        return f"Largest load: {kept:,} {what} (95 % confidence)."
    return f"Largest load: between {kept:,} and {missed - 1:,} {what} (95 % confidence)."
