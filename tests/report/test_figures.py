"""Doubts of several steps in one line."""

from __future__ import annotations

from linerate.report.figures import grouped_findings
from linerate.results import Finding


def _other_work(step: str, percent: int) -> Finding:
    return Finding(
        rule="other-work",
        severity="caution",
        reason=f"other programs took {percent} % of the CPUs",
        effect=f"up to {percent} % of the I/Os may have waited",
        step=step,
    )


def test_a_group_speaks_of_the_step_with_the_largest_effect() -> None:
    note = Finding(rule="too-short", severity="note", reason="short: 4 s", step="a")
    found = [note, _other_work("a", 9), _other_work("b", 78), _other_work("c", 12)]
    caution, short = grouped_findings(found, of=3)
    assert (caution.finding.step, caution.steps, caution.same) == ("b", ("b", "c", "a"), False)
    assert "78 %" in caution.finding.reason
    assert caution.where() == "b; likewise the other steps"
    assert short.where() == "a"


def test_findings_without_an_effect_keep_their_order() -> None:
    found = [
        Finding(rule="late", severity="note", reason=f"late by {n} ms", step=step)
        for step, n in (("a", 1), ("b", 9))
    ]
    assert grouped_findings(found)[0].steps == ("a", "b")
