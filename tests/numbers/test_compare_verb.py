"""`linerate compare --fail-if` in a script: exit codes, JUnit XML, files that are not replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from linerate.analysis.condition import ConditionResult
from linerate.report import junit_xml
from linerate.results import RunWriter, Validity, WorkloadSource

from tests.cli.conftest import linerate
from tests.support.samples.synthetic import Load, make_run

LOAD = Load(intervals=4, warmup=0, volumes=1, points=20, jitter=0.002)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a0 to a2 and b0 to b2: the candidate does 10 % fewer I/Os."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        make_run(folder / f"a{seed}", [LOAD], seed=seed)
        make_run(folder / f"b{seed}", [replace(LOAD, iops=36_000)], seed=10 + seed)
    return folder


@pytest.mark.long
def test_exit_code_3_when_a_condition_holds(runs: Path) -> None:
    repeats = ("--base", "a1", "--base", "a2", "--with", "b1", "--with", "b2")
    done = linerate("compare", "a0", "b0", *repeats, "--fail-if", "iops < -5%", cwd=runs)
    assert done.returncode == 3
    assert "holds" in done.stdout
    assert "95 % interval -1" in done.stdout
    assert linerate("compare", "a0", "b0", *repeats, "--fail-if", "iops < -15%", cwd=runs).returncode == 0
    assert linerate("compare", "a0", "b0", *repeats, cwd=runs).returncode == 0


def test_one_run_on_a_side_decides_by_the_ratio_and_says_so(runs: Path) -> None:
    done = linerate("compare", "a0", "b0", "--fail-if", "iops < -5%", cwd=runs)
    assert done.returncode == 3
    assert "the ratio alone decided" in done.stdout


def test_a_metric_that_was_not_measured_does_not_pass(runs: Path) -> None:
    bare = replace(LOAD, iops=8)
    for seed, name in enumerate(("few", "fewer")):
        make_run(runs / name, [bare], seed=seed)
    done = linerate("compare", "few", "fewer", "--fail-if", "p999_ms > 10%", cwd=runs)
    assert "not judged     p999_ms > 10%  [rd1]" in done.stdout
    assert done.returncode == 1


def test_junit_has_one_case_per_condition_and_step(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "junit.xml"
    words = ("compare", "a0", "b0", "--fail-if", "iops < -5%", "--fail-if", "mib_s < -50%", "--junit", file)
    assert linerate(*words, cwd=runs).returncode == 3
    root = ElementTree.parse(file).getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"iops < -5%": ["failure"], "mib_s < -50%": ["system-out"]}
    before = file.read_bytes()
    refused = linerate(*words, cwd=runs)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert file.read_bytes() == before
    assert linerate(*words, "--overwrite", cwd=runs).returncode == 3


def test_hostile_names_make_sound_xml() -> None:
    name = "rd<1>\x00\x1b]]>&\"'\ud800"
    result = ConditionResult(name, name, "iops", "holds", "%", -5.0, -7.0, None, None, name)
    root = ElementTree.fromstring(junit_xml([result]))
    assert root[0][0].get("classname") == "rd<1>??]]>&\"'?"


def test_void_and_unfinished_runs_judge_nothing(runs: Path) -> None:
    void = Validity(stamp="void")
    make_run(runs / "void", [LOAD], judge=lambda _: void)
    make_run(runs / "failed", [LOAD], state="failed", reason="the array went away")
    for name, word in (("void", "is void"), ("failed", "is failed")):
        done = linerate("compare", "a0", name, "--fail-if", "iops < -5%", cwd=runs)
        assert done.returncode == 2
        assert word in done.stderr
        assert linerate("compare", "a0", name, cwd=runs).returncode == 0


def test_wrong_words(runs: Path) -> None:
    assert "use one of iops" in linerate("compare", "a0", "b0", "--fail-if", "x < 1%", cwd=runs).stderr
    assert linerate("compare", "a0", "b0", "--junit", "j.xml", cwd=runs).returncode == 2


@pytest.mark.parametrize(
    "words", [("a0", "a0"), ("a0", "./a0"), ("a0", "b0", "--with", "b0"), ("a0", "link")]
)
def test_a_run_is_not_compared_with_itself(runs: Path, words: tuple[str, ...]) -> None:
    if not (runs / "link").exists():
        (runs / "link").symlink_to("a0")
    done = linerate("compare", *words, cwd=runs)
    assert done.returncode == 2
    assert f"{words[-1].removeprefix('./')} is given twice" in done.stderr
    assert ("once as a0" in done.stderr) == (words[-1] == "link")
    assert "BASELINE CANDIDATE" in done.stderr
    assert not done.stdout


def test_a_baseline_without_steps_judges_nothing(runs: Path) -> None:
    RunWriter.create(runs / "empty", name="empty", workload=WorkloadSource(name="w")).close("complete")
    done = linerate("compare", "empty", "b0", "--fail-if", "iops < -5%", cwd=runs)
    assert (done.returncode, "no step" in done.stderr) == (2, True)


def test_json_has_the_conditions(runs: Path) -> None:
    done = linerate("compare", "a0", "b0", "--fail-if", "iops < -5%", "--json", cwd=runs)
    (condition,) = json.loads(done.stdout)["conditions"]
    assert condition["outcome"] == "holds"
    assert condition["change"] == pytest.approx(-10, abs=1)
