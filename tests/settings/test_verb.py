"""`linerate settings`: all settings in a table of 80 columns, one with everything about it, and JSON."""

from __future__ import annotations

import json

import pytest
from linerate.cli.app import main
from linerate.settings import catalogue


def test_the_table_has_every_setting_and_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {*catalogue(), "name"}


def test_every_setting_can_be_explained_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["settings", *catalogue()]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_an_explanation_says_who_applies_a_setting_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "mtu", "link.delay"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "range 576 to 16110 bytes unit bytes default 1500" in text
    assert "applied by fabric on a virtual SAN, host on real hosts" in text
    assert 'range a time, for example "50us" default as in the topology' in text
    assert "fabric user fabric only, except to turn it off" in text


def test_programs_get_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "linerate.settings/1"
    assert [one["name"] for one in found["settings"]] == list(catalogue())
    policy = next(one for one in found["settings"] if one["name"] == "multipath.policy")
    assert policy["applier"] == "multipath"
    assert policy["names"]["Windows MPIO"] == "Load balance policy"


@pytest.mark.parametrize(
    ("name", "hint"), [("link.dealy", "did you mean link.delay"), ("xyzzy", "`linerate settings` lists")]
)
def test_an_unknown_name_is_an_error_of_the_user(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings", name]) == 2
    assert hint in capsys.readouterr().err
