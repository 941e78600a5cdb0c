"""The `check` verb: doubts a result, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linerate.analysis.rules import RUN_RULES, STEP_RULES, Doubt, StepView
from linerate.analysis.summary import StepSummary, summarise
from linerate.results import Finding, RunDirectory, Stamp, Validity

_STAMP: dict[str, Stamp] = {"note": "valid", "caution": "caution", "void": "void"}
_GRAVEST_FIRST: tuple[Stamp, ...] = ("void", "caution")
_NOT_OF_FILES = frozenset({"cache-sized-volume", "closed-loop", "depth-missed"})
"""Rules that mean nothing for a file system workload: its threads wait for shares, rates and files."""
_NOT_OF_FORMATS = frozenset({"not-steady", "thin-tail", "too-few-intervals", "too-short", "warmup-too-short"})
"""Rules about times, of a run that ends when it is done."""
_OF_IMPORTS = frozenset({"no-io", "io-errors", "thin-tail"})
"""The only rules whose figures an imported run may have."""
_NOT_OF_BACKUPS = _NOT_OF_FORMATS | {"closed-loop", "depth-missed", "tail-not-steady"}
"""A phase of a backup ends when it is done, waits for its flushes, and is no load of an application."""
_OF_FAILED_IO = frozenset({"no-io", "io-errors"})
_NOT_OF_FAILED_IO = frozenset(
    {"load-host-saturated", "generator-limited", "late-arrivals", "depth-missed", "skew-missed"}
)
"""Rules that say what the storage could do beyond its rate: where too much I/O fails, that rate means nothing."""


def check_run(run: RunDirectory, summaries: Sequence[StepSummary] | None = None) -> Validity:
    """Apply every rule to a run. The gravest finding decides the stamp; notes leave it valid.

    `summaries` saves the work of summing up again when the caller has them.
    """
    findings = [_finding(rule.id, doubt) for rule in RUN_RULES for doubt in rule.judge(run)]
    for summary in summaries if summaries is not None else summarise(run):
        view = StepView(run, run.step(summary.step), summary)
        left_out = _left_out(view)
        of_step = [
            _finding(rule.id, doubt, summary.step)
            for rule in STEP_RULES
            if rule.id not in left_out and (view.record.given is None or rule.id in _OF_IMPORTS)
            for doubt in rule.judge(view)
        ]
        has_failed = any(one.rule in _OF_FAILED_IO and one.severity == "void" for one in of_step)
        findings += [one for one in of_step if not (has_failed and one.rule in _NOT_OF_FAILED_IO)]
    return Validity(stamp=stamp_of(findings), findings=tuple(findings))


def stamp_of(findings: Iterable[Finding]) -> Stamp:
    """The stamp that the gravest of these findings gives."""
    stamps = {_STAMP[finding.severity] for finding in findings}
    return next((grave for grave in _GRAVEST_FIRST if grave in stamps), "valid")


def _left_out(step: StepView) -> frozenset[str]:
    """Rules that are not asked about a step."""
    if step.record.facts.get("backup"):
        return _NOT_OF_BACKUPS
    files = step.spec.get("files")
    if not files:
        return frozenset()
    # A format may find that all is as it should be.
    return _NOT_OF_FILES | _NOT_OF_FORMATS | {"no-io"} if files.get("format") else _NOT_OF_FILES


def _finding(rule: str, doubt: Doubt, step: str = "") -> Finding:
    return Finding(
        rule=rule,
        severity=doubt.severity,
        reason=doubt.reason,
        effect=doubt.effect,
        advice=doubt.advice,
        step=step,
    )
