"""Extends a study by blocks, where verdicts are undecided."""

from __future__ import annotations

from pathlib import Path

from linerate.errors import UserError
from linerate.study.directory import JOURNAL, StudyDirectory
from linerate.study.journal import BlocksAdded, StudyJournal


def extend(path: Path, blocks: int) -> StudyDirectory:
    """Asks for `blocks` blocks in all. The plan of those that were run stays as it was: blocks are drawn one by one.

    Raises UserError when so many were measured already, or while another process runs the study.
    """
    StudyDirectory.open(path)  # a directory that is no study gets no journal
    with StudyJournal(path / JOURNAL) as journal:
        directory = StudyDirectory.open(path)
        if directory.study.scale is not None:
            raise UserError(
                f"--blocks {blocks}: {path} searches each case once",
                "a search repeats its own loads: give [scale] more repeats in a new study",
            )
        measured = max((step.block for step in directory.steps), default=0)
        if blocks <= measured:
            raise UserError(
                f"--blocks {blocks}: {measured} blocks of {path} have been measured or begun already",
                f"give at least {measured + 1}; without --blocks the study goes on as planned",
            )
        if (what := directory.plan.too_long(blocks)) is not None:
            raise UserError(f"--blocks {blocks}: {what}", "ask for fewer blocks")
        journal.add(BlocksAdded(blocks=blocks, measured=measured))
    return StudyDirectory.open(path)
