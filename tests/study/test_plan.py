"""The plan follows from the study and its seed, blocks are shuffled on their own, and durations are added up."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from linerate.study import Plan, Study, parse_study

from tests.study.conftest import TEXT


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(study: Study) -> None:
    again = Plan(Study.model_validate_json(study.model_dump_json()))
    assert list(Plan(study).blocks()) == list(again.blocks())
    other = parse_study(TEXT, seed=8)
    assert other.seed == 8
    assert list(Plan(other).blocks()) != list(again.blocks())


def test_every_block_holds_each_case_once_and_the_baseline_twice(study: Study) -> None:
    for block in Plan(study).blocks():
        runs = Counter((step.case, step.workload) for step in block)
        for case in study.cases:
            for workload in study.workloads:
                expected = (2 if case is study.baseline else 1) if workload.name in case.workloads else 0
                assert runs[case.name, workload.name] == expected
        assert [step.position for step in block] == list(range(len(block)))
        assert len({step.key for step in block}) == len(block)


def test_blocks_are_shuffled_but_a_case_stays_together(study: Study) -> None:
    plan = Plan(study)
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
    assert Plan(longer).block(4) == Plan(study).block(4)


def test_durations_grow_with_blocks_and_stop_at_the_budget(study: Study) -> None:
    duration = Plan(study).duration()
    assert duration.most_s == duration.least_s * 5 / 3
    runs_s = sum(study.workload(step.workload).run_s for step in Plan(study).block(1))
    assert duration.least_s > 3 * runs_s
    tight = study.model_copy(update={"repeat": study.repeat.model_copy(update={"budget_s": 200.0})})
    assert Plan(tight).duration().most_s == 200.0
