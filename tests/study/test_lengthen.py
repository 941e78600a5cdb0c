"""A study is lengthened by blocks, without a change to those that were run, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.study import StudyDirectory, lengthen
from linerate.study.conduct import conduct
from linerate.study.judge import judged
from linerate.study.plan import Plan

from tests.study.simulated import SimulatedLaboratory


def conducted(place: Path) -> StudyDirectory:
    return conduct(place, SimulatedLaboratory(), lambda event: None, settle=lambda seconds: None)


def blocks_of(directory: StudyDirectory) -> int:
    return max(step.block for step in directory.steps)


def test_a_complete_study_goes_on_with_more_blocks(place: Path) -> None:
    before = conducted(place)
    assert before.is_complete
    measured = blocks_of(before)
    longer = lengthen(place, measured + 2)
    assert not longer.is_complete
    assert [Plan(longer.study).block(1 + n) for n in range(measured)] == [
        before.plan.block(1 + n) for n in range(measured)
    ]
    after = conducted(place)
    assert (after.is_complete, blocks_of(after)) == (True, measured + 2)
    assert after.steps[: len(before.steps)] == before.steps
    assert {effect.blocks for effect in judged(after).judgement.effects if effect.case != "offload"} == {
        measured + 2
    }


def test_the_verdicts_say_that_someone_looked_before(place: Path) -> None:
    measured = blocks_of(conducted(place))
    assert not any(
        "lengthened" in warning for warning in judged(StudyDirectory.open(place)).judgement.warnings
    )
    lengthen(place, measured + 1)
    warnings = judged(conducted(place)).judgement.warnings
    expected = f"lengthened to {measured + 1} blocks after {measured} were measured"
    assert any(warning.startswith(expected) for warning in warnings)


def test_blocks_that_were_run_are_not_taken_away(place: Path) -> None:
    measured = blocks_of(conducted(place))
    with pytest.raises(UserError, match=f"{measured} blocks of .* have been measured"):
        lengthen(place, measured)
    assert StudyDirectory.open(place).is_complete


def test_what_is_no_study_gets_no_journal(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a study directory"):
        lengthen(tmp_path, 5)
    assert not list(tmp_path.iterdir())
