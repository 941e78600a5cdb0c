"""What users see before any I/O: help, examples, schemas, and mistakes with a way out, never a traceback."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from linerate import _core
from linerate.array import ArrayConfig, example_text

from tests.cli.conftest import linerate

VERBS = ("run", "demo", "array", "discover", "report", "check", "compare", "settings", "schema")


def test_help_names_every_verb() -> None:
    done = linerate("--help")
    assert done.returncode == 0
    for verb in VERBS:
        assert f" {verb} " in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    done = linerate(verb, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_version_is_the_crates_version() -> None:
    cargo = tomllib.loads(Path("Cargo.toml").read_text("ascii"))
    version = cargo["workspace"]["package"]["version"]
    assert linerate("--version").stdout == f"linerate {version}\n"
    assert _core.__version__ == version


def test_array_example_is_printed() -> None:
    assert linerate("array", "serve", "--example").stdout == example_text()


@pytest.mark.parametrize("subject", ["workload", "run", "array", "events", "manifest"])
def test_schemas_are_json(subject: str) -> None:
    schema = json.loads(linerate("schema", subject).stdout)
    Draft202012Validator.check_schema(schema)
    assert schema.get("properties") or schema.get("oneOf")


def test_array_schema_is_the_models() -> None:
    assert json.loads(linerate("schema", "array").stdout) == ArrayConfig.model_json_schema()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["run"], "nothing to run", "--preset dell-nic"),
        (["run", "none.vdb"], "none.vdb", ""),
        (["run", "--preset", "nonesuch", "--target", "null:1g"], "nonesuch", "dell-nic"),
        (["run", "--preset", "dell-nic", "--set", "colour=1"], "--set colour=1", "iscsi.header_digest"),
        (["run", "--preset", "dell-nic", "--set", "iscsi.colour=1"], "iscsi.colour=1", "header_digest"),
        (["run", "--preset", "dlink", "--path", "a b c"], "--path: 'a b c' is not a path", "10.1.0.1 -> "),
        (["run", "--preset", "dlink", "--set", "multipath.colour=1"], "multipath.colour=1", "policy"),
        (["run", "--preset", "dlink", "--import-multipath", "none.conf"], "none.conf: No such file", ""),
        (["run", "--preset", "dell-nic", "--size", "big"], "--size big", "k, m, g"),
        (["run", "--preset", "dell-nic", "--cpus", "0-"], "--cpus 0-", "0,2-3"),
        (
            ["run", "--preset", "dell-nic", "--cpus", "9999"],
            "this process may not use CPU 9999",
            "it may use ",
        ),
        (["run", "--preset", "dell-nic", "--cpus", "0-99999999"], "no host has a CPU 0-99999999", "0,2-3"),
        (["array", "serve"], "needs a file", "--example"),
        (["array", "serve", "none.toml"], "none.toml: No such file", "--example"),
        (["report", "none"], "none", ""),
        (["check", "none"], "none", ""),
        (["compare", "none"], "two runs", "BASELINE"),
        (["discover", "host:port"], "host:port", ""),
    ],
)
def test_mistakes_end_with_2_and_a_way_out(words: list[str], message: str, hint: str, tmp_path: Path) -> None:
    done = linerate(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("linerate: ")
    assert message in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir()), "a mistake found before the run leaves nothing behind"


@pytest.mark.parametrize("words", [["--colour"], ["run", "--colour"], ["nonesuch"], ["schema", "nonesuch"]])
def test_misspelt_options_end_with_2(words: list[str]) -> None:
    done = linerate(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = linerate("array", "serve", "none.toml", cwd=tmp_path, LINERATE_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
