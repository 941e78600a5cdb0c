"""`--fio-json`, `--iometer-csv` and `--diskspd-xml`: replaced with consent only, asked for first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, linerate

WORKLOAD = (
    "sd=sd1,lun=x\nwd=wd1,sd=sd1,xfersize=4k,rdpct=100\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n"
)
OPTIONS = ("--fio-json", "--iometer-csv", "--diskspd-xml")
MINE = "mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w.vdb").write_text(WORKLOAD)
    (tmp_path / "out").write_text(MINE)
    return tmp_path


def run(folder: Path, *words: str) -> Done:
    quick = ("--elapsed", "0.2", "--no-report", "--output", "run")
    return linerate("run", "w.vdb", "--map", "sd1=null:64m", *quick, *words, cwd=folder)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("words", [(), ("--overwrite", "all"), ("--overwrite", "other"), ("--json",)])
def test_a_run_does_not_begin_if_its_file_is_there(folder: Path, option: str, words: tuple[str, ...]) -> None:
    done = run(folder, option, "out", *words)
    assert done.returncode == 2
    assert "out: exists already" in done.stderr
    assert "add --overwrite out to replace, or name another place" in done.stderr
    assert (folder / "out").read_text() == MINE
    assert not (folder / "run").exists()


@pytest.mark.parametrize("option", OPTIONS)
def test_a_run_replaces_the_file_that_overwrite_names(folder: Path, option: str) -> None:
    done = run(folder, option, "out", "--overwrite", "./out")
    assert done.returncode == 0, done.stderr
    assert (folder / "out").read_text() != MINE


@pytest.mark.parametrize("option", OPTIONS)
def test_a_dry_run_writes_nothing_and_asks_nothing(folder: Path, option: str) -> None:
    done = run(folder, option, "out", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (folder / "out").read_text() == MINE


@pytest.mark.long
@pytest.mark.parametrize("option", OPTIONS)
def test_a_report_replaces_a_file_with_consent_only(folder: Path, option: str) -> None:
    assert run(folder).returncode == 0
    done = linerate("report", "run", option, "out", cwd=folder)
    assert done.returncode == 2
    assert "out: exists already" in done.stderr
    assert "add --overwrite to replace" in done.stderr
    assert (folder / "out").read_text() == MINE
    done = linerate("report", "run", option, "out", "--overwrite", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out").read_text() != MINE


@pytest.mark.parametrize("option", OPTIONS)
def test_a_folder_is_no_file(folder: Path, option: str) -> None:
    done = run(folder, option, ".")
    assert done.returncode == 2
    assert f"{option} .: this is a folder" in done.stderr


def test_both_forms_do_not_go_into_one_file(folder: Path) -> None:
    done = run(folder, "--fio-json", "new", "--iometer-csv", "new")
    assert done.returncode == 2
    assert "--fio-json and --iometer-csv are both new" in done.stderr


def test_a_study_has_no_csv_of_iometer(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    done = linerate("report", ".", "--iometer-csv", "out.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "a study has no CSV of Iometer" in done.stderr
