"""The tables of guards fit the code."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.mutants import ROOT, Mutant, mutants
from tests.mutants.__main__ import SUITES, stop


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_guard_stands_where_the_table_says(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.old != mutant.new


def test_each_table_has_its_tests() -> None:
    assert {mutant.table for mutant in mutants()} == set(SUITES)


def test_names_are_given_once() -> None:
    names = [mutant.name for mutant in mutants()]
    assert len(names) == len(set(names))


def _packages() -> dict[str, Path]:
    manifests = ((path, tomllib.loads(path.read_text())) for path in (ROOT / "crates").glob("*/Cargo.toml"))
    return {manifest["package"]["name"]: path.parent for path, manifest in manifests}


@pytest.mark.parametrize("table", [name for name, suite in SUITES.items() if not suite.is_python])
def test_the_tests_of_a_table_exist(table: str) -> None:
    packages = _packages()
    for package, *tests in SUITES[table].runs:
        folder = packages[package.removeprefix("-p=")] / "tests"
        for name in (word.removeprefix("--test=") for word in tests if word.startswith("--test=")):
            assert (folder / f"{name}.rs").is_file() or (folder / name / "main.rs").is_file()


def test_a_stop_ends_servers_in_process_groups_of_their_own() -> None:
    command = ["sh", "-c", "setsid sleep 60 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        stop(process)
        assert process.wait() == -9
        assert process.stdout.read() == "", "its end has the pipe open no more"
    assert not Path(f"/proc/{server}").exists() or " Z " in Path(f"/proc/{server}/stat").read_text()
