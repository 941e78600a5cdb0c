"""The stages of a search as study directories: what they tell while they run, and which verbs refuse them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.study import StudyDirectory
from linerate.watch.study import StudySource

from tests.cli.conftest import linerate

pytestmark = pytest.mark.long
STUDY = """\
title = "Drives"

[[san]]
topology = "eleven-drives"
clock = "virtual"

[[workload]]
name = "writes"
file = "anvil.toml"
run = "write-4k"
metric = "iops"
elapsed = "1s"
warm_up = "0s"

[baseline]
settings = { array.disk_size = "12g" }

[factors]
"array.disks" = [10, 11]
outstanding = [1, 4]

[repeat]
settle = "0s"

[quick]
elapsed = "1s"
warm_up = "0s"
"""
VERDICTS = ("better", "worse", "no difference", "undecided")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory of a search that came to its end, and what it printed."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "drives.toml").write_text(STUDY)
    words = ("--blocks", "2", "--confirm", "5", "--spread", "3", "--quick", "--output", "out")
    done = linerate("tune", "drives.toml", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out", done.stdout


@pytest.fixture
def search(told: tuple[Path, str]) -> Path:
    return told[0]


def test_no_verdict_is_told_before_the_confirmation(told: tuple[Path, str]) -> None:
    _, text = told
    choosing, _, confirming = text.partition("confirmation: 10 runs")
    screening = choosing.partition("screening: 8 runs")[2]
    assert "after block 1: no verdicts: the runs of all blocks are evaluated together" in screening
    assert not any(verdict in screening for verdict in VERDICTS)
    assert "in 80 of 100 studies" not in screening  # what so many blocks show: of a study that is judged
    assert "after block 4: 1 better" in confirming


def test_its_result_can_be_shown_again(told: tuple[Path, str]) -> None:
    place, text = told
    again = linerate("report", place)
    assert again.returncode == 0, again.stderr
    result = again.stdout.partition("report: ")[0]
    assert "Change only: outstanding=4" in result
    assert result in text
    page = linerate("report", place, "--html", place / "page.html")
    assert page.returncode == 2
    assert "give the folder of its confirmation" in page.stderr


@pytest.mark.parametrize("verb", [("study", "verdict"), ("study", "recommend"), ("report",)])
def test_the_screening_is_not_judged(search: Path, verb: tuple[str, ...]) -> None:
    done = linerate(*verb, search / "1-screening")
    assert done.returncode == 2
    assert "its runs choose settings, so verdicts on them would be too good" in done.stderr
    assert f"linerate report {search}\n" in done.stderr
    assert not (search / "1-screening" / "verdicts.json").exists()
    inside = linerate(*verb, ".", cwd=search / "1-screening")
    assert f"linerate report {search.resolve()}\n" in inside.stderr


def test_a_stage_goes_on_only_with_its_search(search: Path) -> None:
    done = linerate("study", "resume", search / "1-screening")
    assert done.returncode == 2
    assert f"go on with: linerate tune {search}\n" in done.stderr


def test_other_verbs_read_the_screening_without_verdicts(search: Path, tmp_path: Path) -> None:
    screening = search / "1-screening"
    status = linerate("study", "status", screening)
    assert "block 2: 4 of 4 runs" in status.stdout
    assert "so far" not in status.stdout
    checked = linerate("study", "check", screening)
    assert checked.returncode == 0, checked.stdout
    assert not any(verdict in checked.stdout for verdict in VERDICTS)
    exported = linerate("export", screening, "--csv", "--out", tmp_path / "out")
    assert exported.returncode == 0, exported.stderr
    assert f"linerate report {search} shows the result" in exported.stdout + exported.stderr
    watched = next(StudySource(screening).poll()).data
    assert (watched["is_judged"], watched["comparisons"]) == (False, [])


def test_the_confirmation_is_judged_as_any_study(search: Path) -> None:
    place = search / "2-confirmation"
    done = linerate("study", "verdict", place)
    assert done.returncode == 0, done.stderr
    assert "better" in done.stdout
    assert next(StudySource(place).poll()).data["is_judged"]


def test_a_search_that_has_not_ended_is_not_shown_as_one(search: Path) -> None:
    journal = search / "2-confirmation" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:5]))
    try:
        done = linerate("report", search)
        assert StudyDirectory.open(search / "2-confirmation").state == "interrupted"
    finally:
        journal.write_bytes(whole)
    assert done.returncode == 2
    assert "its confirmation is not complete" in done.stderr
    assert f"go on with: linerate tune {search}\n" in done.stderr
