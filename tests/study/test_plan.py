"""The plan follows from the study and its seed, blocks are shuffled on their own, and durations are added up.

A study is extended by blocks, without a change to those that were run, and says so.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.study import Study, StudyDirectory, StudyPlan, extend, parse_study
from linerate.study.conduct import conduct
from linerate.study.judge import judged

from tests.study.conftest import TEXT
from tests.support.simulated import SimulatedLaboratory


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(study: Study) -> None:
    again = StudyPlan(Study.model_validate_json(study.model_dump_json()))
    assert list(StudyPlan(study).blocks()) == list(again.blocks())
    other = parse_study(TEXT, seed=8)
    assert other.seed == 8
    assert list(StudyPlan(other).blocks()) != list(again.blocks())


def test_every_run_draws_other_ios_and_a_resumed_study_the_same(study: Study) -> None:
    plan, again = StudyPlan(study), StudyPlan(Study.model_validate_json(study.model_dump_json()))
    steps = [step for block in plan.blocks() for step in block]
    seeds = [plan.io_seed(step) for step in steps]
    assert len(set(seeds)) == len(seeds)
    assert [again.io_seed(step) for step in steps] == seeds
    assert StudyPlan(parse_study(TEXT, seed=8)).io_seed(steps[0]) != seeds[0]


def test_every_block_holds_each_case_once_and_the_baseline_twice(study: Study) -> None:
    for block in StudyPlan(study).blocks():
        runs = Counter((step.case, step.workload) for step in block)
        for case in study.cases:
            for workload in study.workloads:
                expected = (2 if case is study.baseline else 1) if workload.name in case.workloads else 0
                assert runs[case.name, workload.name] == expected
        assert [step.position for step in block] == list(range(len(block)))
        assert len({step.key for step in block}) == len(block)


def test_blocks_are_shuffled_but_a_case_stays_together(study: Study) -> None:
    plan = StudyPlan(study)
    orders = {tuple((step.case, step.replica, step.workload) for step in plan.block(n)) for n in range(1, 30)}
    assert len(orders) > 20
    first = Counter(
        next(step.case for step in plan.block(n) if step.san == "base-san") for n in range(1, 200)
    )
    assert set(first) == {case.name for case in study.cases}
    for number in range(1, 30):
        visits = [(step.san, step.case, step.replica) for step in plan.block(number)]
        changes = sum(1 for one, other in pairwise(visits) if one != other)
        assert changes == len(set(visits)) - 1


def test_a_block_does_not_depend_on_how_many_there_are(study: Study) -> None:
    longer = study.model_copy(update={"repeat": study.repeat.model_copy(update={"blocks_max": 50})})
    assert StudyPlan(longer).block(4) == StudyPlan(study).block(4)


def test_durations_grow_with_blocks_and_stop_at_the_budget(study: Study) -> None:
    duration = StudyPlan(study).duration()
    assert duration.most_s == duration.least_s * 5 / 3
    runs_s = sum(study.workload(step.workload).run_s for step in StudyPlan(study).block(1))
    assert duration.least_s > 3 * runs_s
    tight = study.model_copy(update={"repeat": study.repeat.model_copy(update={"budget_s": 200.0})})
    assert StudyPlan(tight).duration().most_s == 200.0


def conducted(place: Path, noise: float = 0.1) -> StudyDirectory:
    """So much noise leaves every comparison undecided."""
    laboratory = SimulatedLaboratory(noise=noise)
    return conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)


def blocks_of(directory: StudyDirectory) -> int:
    return max(step.block for step in directory.steps)


@pytest.mark.long
def test_a_complete_study_goes_on_with_more_blocks(place: Path) -> None:
    before = conducted(place)
    assert before.is_complete
    measured = blocks_of(before)
    longer = extend(place, measured + 2)
    assert not longer.is_complete
    assert [StudyPlan(longer.study).block(1 + n) for n in range(measured)] == [
        before.plan.block(1 + n) for n in range(measured)
    ]
    after = conducted(place)
    assert (after.is_complete, blocks_of(after)) == (True, measured + 2)
    assert after.steps[: len(before.steps)] == before.steps
    assert {effect.blocks for effect in judged(after).judgement.primary()} == {measured + 2}


def test_what_is_decided_is_not_run_again_when_a_study_is_extended(place: Path) -> None:
    """More blocks would divide its error rate further, and could only make it undecided again."""
    before = conducted(place, noise=0.001)
    assert blocks_of(before) == 3
    extend(place, 6)
    after = conducted(place, noise=0.001)
    assert after.is_complete
    assert after.steps == before.steps


@pytest.mark.long
def test_an_extended_study_divides_its_error_rate_among_its_looks(place: Path) -> None:
    measured = blocks_of(conducted(place))
    planned = judged(StudyDirectory.open(place)).judgement.looks
    assert (planned.blocks[-1], sum(planned.shares)) == (5, pytest.approx(0.8))
    extend(place, measured + 4)
    looks = judged(conducted(place)).judgement.looks
    assert looks.blocks[-1] == measured + 4
    assert sum(looks.shares) < 1


@pytest.mark.long
def test_blocks_that_were_run_are_not_taken_away(place: Path) -> None:
    measured = blocks_of(conducted(place))
    with pytest.raises(UserError, match=f"{measured} blocks of .* have been measured"):
        extend(place, measured)
    assert StudyDirectory.open(place).is_complete


def test_what_is_no_study_gets_no_journal(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a study directory"):
        extend(tmp_path, 5)
    assert not list(tmp_path.iterdir())
