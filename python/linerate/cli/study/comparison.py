"""The comparison as far as it has come: of each case and workload the change, its interval and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linerate.analysis.verdict import Effect
from linerate.errors import UserError
from linerate.plural import plural
from linerate.quantity import duration_text, span_text
from linerate.report.study import words
from linerate.report.tables import aligned
from linerate.study import StudyDirectory
from linerate.study.judgement import judgement_of
from linerate.study.remaining import StudyProgress

Decided = dict[tuple[str, str], Effect]
"""(case, workload) -> what is known of it."""


def decided(directory: StudyDirectory) -> Decided:
    """Of the figures that decide, what the measured blocks show. Empty before there is anything to compare.

    Of a stage of `linerate tune` that only chooses settings, nothing.
    """
    if not directory.measured or directory.search is not None:
        return {}
    try:
        judgement = judgement_of(directory, directory.study.baseline.name)
    except UserError:
        return {}
    return {(one.case, one.workload): one for one in judgement.primary()}


def counted(directory: StudyDirectory, found: Decided) -> str:
    """How often each verdict was given: `3 better, 1 undecided`."""
    if directory.search is not None:
        return "no verdicts: the runs of all blocks are evaluated together, at the end of this stage"
    counts = Counter(effect.verdict for effect in found.values())
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing to compare yet"


def cell(effect: Effect) -> str:
    """A change and its verdict in few words."""
    return f"{words.change(effect)} {effect.verdict}"


def comparison_lines(found: Decided) -> list[str]:
    """A line for each case and workload, in columns."""
    rows = [
        [
            effect.workload,
            effect.case,
            words.change(effect),
            words.bounds(effect),
            plural(effect.blocks, "block"),
            effect.verdict,
        ]
        for effect in found.values()
    ]
    return aligned(rows, last_left=True) if rows else []


def progress_line(progress: StudyProgress) -> str:
    """Runs and times: `12 runs measured, 24 to 60 left; 5 min gone, 9 min to 20 min left`."""
    least, most = progress.left_least, progress.left_most
    runs = f"{most}" if least == most else f"{least} to {most}"
    gone = duration_text(progress.spent_s)
    if not most:
        return f"{plural(progress.measured, 'run')} measured in {gone}"
    return (
        f"{plural(progress.measured, 'run')} measured, {runs} left; {gone} gone, "
        f"{span_text(progress.left_s.least_s, progress.left_s.most_s)} left"
    )


def verdict_style(verdict: str) -> str:
    """The colour of a verdict on a terminal."""
    for part, style in (("better", "green"), ("worse", "red"), ("undecided", "yellow")):
        if part in verdict:
            return style
    return "dim"


def by_case(found: Decided, cases: Sequence[str], workloads: Sequence[str]) -> list[list[Effect | None]]:
    """A row for each case, a column for each workload."""
    return [[found.get((case, workload)) for workload in workloads] for case in cases]
