"""The first sentence of a run's report: what was reached, in figures."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.analysis import StepSummary
from linerate.analysis.paths import FaultOutcome
from linerate.analysis.rules.base import pace_kept
from linerate.report import figures
from linerate.results.manifest import State


def headline(summaries: Sequence[StepSummary], state: State) -> str:
    """What the run reached: of one step its rate and times, of several the range of them."""
    done = [step for step in summaries if step.total.ios]
    if not done:
        return {
            "failed": "The run failed before any I/O was measured",
            "running": "Nothing is measured yet",
        }.get(state, "No I/O was measured")
    early = {"failed": " (the run failed)", "interrupted": " (interrupted)", "running": " so far"}.get(
        state, ""
    )
    if len(done) == 1:
        return f"{_of_step(done[0])}{_failed(done)}{early}"
    lowest = min(done, key=lambda step: step.total.iops)
    highest = max(done, key=lambda step: step.total.iops)
    widest = max(done, key=lambda step: step.total.mib_s)
    rates = f"{figures.rate(lowest.total.iops)} to {figures.rate(highest.total.iops)} IOPS"
    return (
        f"{len(done)} steps: {rates}, the most in {highest.step}; up to {figures.mib_s(widest.total.mib_s)} MB/s"
        f"{'' if widest is highest else f' in {widest.step}'}{_failed(done)}{early}"
    )


def _failed(steps: Sequence[StepSummary]) -> str:
    errors = sum(step.total.errors or 0 for step in steps)
    return f"; {figures.count(errors)} I/Os failed" if errors else ""


def _of_step(step: StepSummary) -> str:
    total = step.total
    tail = step.answer_quantile(0.99)
    slowest = f", 99 % within {figures.ms(tail.value_ms)} ms" if tail is not None and tail.reliable else ""
    asked = step.rate_asked_iops
    missed = f" of {figures.rate(asked)} asked for" if asked and not pace_kept(step) else ""
    wait = " with wait" if step.paced else ""
    mean = "" if step.answer_mean_ms is None else f", {figures.ms(step.answer_mean_ms)} ms per I/O{wait}"
    return f"{figures.rate(total.iops)} IOPS{missed}, {figures.mib_s(total.mib_s)} MB/s{mean}{slowest}"


def faults_said(faults: Sequence[FaultOutcome]) -> str:
    """What the faults of a run did to the application; of several the worst. Empty without faults."""
    if not faults:
        return ""
    what = faults[0].what if len(faults) == 1 else f"{len(faults)} faults, at worst"
    waits = [fault.failover_s for fault in faults if fault.failover_s is not None]
    longest = [fault.response_max_ms for fault in faults if fault.response_max_ms is not None]
    errors = sum(fault.errors for fault in faults)
    parts = [
        *([f"first I/O elsewhere after {max(waits):.3g} s"] if waits else ["no I/O went over another path"]),
        *([f"longest I/O {figures.ms(max(longest))} ms"] if longest else []),
        f"{figures.count(errors)} errors" if errors else "no errors",
    ]
    return f"{what}: {', '.join(parts)}"
