"""A study as it is watched: its comparisons narrow from block to block, and the page goes over to each new run."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.study import StudyDirectory
from linerate.study.directory import JOURNAL
from linerate.study.judge import judged
from linerate.watch.study import StudySource

from tests.support.samples.study_directory import make_study_directory
from tests.watch.conftest import kept, polled


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> StudyDirectory:
    return make_study_directory(tmp_path_factory.mktemp("watch") / "study", blocks=4)


def _shown(source: StudySource) -> dict[str, object]:
    return [data for kind, data in polled(source) if kind == "study"][-1]


@pytest.mark.long
def test_the_comparisons_are_those_of_the_verdicts(finished: StudyDirectory) -> None:
    shown = kept(StudySource(finished.path))
    comparisons = _shown(shown)["comparisons"]
    assert isinstance(comparisons, list)
    effects = list(judged(finished).judgement.primary())
    of = {
        (finished.study.workload(one.workload).title, finished.study.case(one.case).title): one
        for one in effects
    }
    assert len(comparisons) == len(effects)
    for one in comparisons:
        effect = of[one["workload"], one["case"]]
        assert (one["change"], one["low"], one["high"]) == (
            effect.change,
            effect.change_low,
            effect.change_high,
        )
        assert one["verdict"] == effect.verdict
        assert [past["block"] for past in one["history"]] == [1, 2, 3, 4]
        assert one["history"][-1]["change"] == effect.change


def test_a_block_that_is_under_way_is_not_judged(finished: StudyDirectory, tmp_path: Path) -> None:
    source = _cut(finished, tmp_path, lines=3 + 12 + 5)
    source.state = "running"
    shown = source._shown()
    assert [one["done"] for one in shown["blocks"]][:3] == [12, 5, 0]
    assert {one["blocks"] for one in shown["comparisons"]} == {1}


def test_what_is_left_gets_less_with_each_run(finished: StudyDirectory, tmp_path: Path) -> None:
    left = [_cut(finished, tmp_path / str(lines), lines)._shown()["left_most_s"] for lines in (3, 20, 45)]
    assert left == sorted(left, reverse=True)
    assert _shown(kept(StudySource(finished.path)))["left_most_s"] == 0.0


def test_cases_that_cannot_be_had_and_the_newest_run_are_shown(finished: StudyDirectory) -> None:
    updates = polled(kept(StudySource(finished.path)))
    study = next(data for kind, data in updates if kind == "study")
    assert [one["case"] for one in study["not_applicable"]] == ["isoe"]
    run = next(data for kind, data in updates if kind == "run")
    assert run["directory"] == finished.steps[-1].directory.rpartition("/")[2]


def test_a_new_run_replaces_the_one_before(finished: StudyDirectory, tmp_path: Path) -> None:
    source = _cut(finished, tmp_path, lines=10)
    polled(source)
    assert polled(source) == []
    newest = max((source.path / "runs").iterdir())
    newest.rename(newest.with_name("999-b02-8k-random-jumbo"))
    kinds = [kind for kind, _ in polled(source)]
    assert kinds[:3] == ["study", "clear", "run"]


def _cut(finished: StudyDirectory, place: Path, lines: int) -> StudySource:
    """The study as it was when its journal had so many lines."""
    path = place / "study"
    (path / "runs").mkdir(parents=True)
    (path / "study.json").write_bytes((finished.path / "study.json").read_bytes())
    journal = (finished.path / JOURNAL).read_bytes().splitlines(keepends=True)
    (path / JOURNAL).write_bytes(b"".join(journal[:lines]))
    newest = path / "runs" / Path(finished.steps[max(lines - 4, 0)].directory).name
    newest.mkdir()
    for file in (finished.path / finished.steps[max(lines - 4, 0)].directory).iterdir():
        (newest / file.name).write_bytes(file.read_bytes())
    return kept(StudySource(path))
