"""A Windows host: planted faults in the facts of its script, clean twins, missing parts, and the script itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from linerate.advice import AuditResult, facts_script
from linerate.advice.documents.facts_file import read_facts

from tests.advice.outcomes import all_broken, broken, judged, mends, of_rule
from tests.advice.planted.windows_faults import FAULTS, WindowsFault
from tests.advice.windows_host import windows_facts


def _audit(facts: dict[str, Any], folder: Path, *answers: str, encoding: str = "utf-8") -> AuditResult:
    folder.mkdir(exist_ok=True)
    path = folder / "facts.json"
    path.write_text(json.dumps(facts), encoding=encoding)
    return judged(read_facts(path), answers=answers)


def test_a_clean_host_breaks_no_rule(tmp_path: Path) -> None:
    result = _audit(
        windows_facts(), tmp_path, "ups=yes", "converged=yes", "replication=none", "load_percent=10"
    )
    assert all_broken(result) == []
    kept = {one.rule.number for one in result.outcomes if one.state == "kept"}
    assert kept >= {
        1,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        16,
        18,
        19,
        20,
        21,
        22,
        23,
        24,
        25,
        26,
        27,
        28,
        30,
        31,
        33,
    }
    assert kept >= {32, 34, 35, 38, 39, 40, 42, 47, 49}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.found[:24]}")
def test_a_planted_fault_is_found_and_its_twin_is_silent(fault: WindowsFault, tmp_path: Path) -> None:
    clean, faulty = windows_facts(), windows_facts()
    for facts in (clean, faulty):
        if fault.healthy:
            fault.healthy(facts)
    fault.plant(faulty)
    twin = _audit(clean, tmp_path / "clean", *fault.answers)
    assert broken(twin, fault.rule) == []
    assert any(one.state in ("kept", "not needed") for one in of_rule(twin, fault.rule))
    result = _audit(faulty, tmp_path / "faulty", *fault.answers)
    assert any(fault.found in text for text in broken(result, fault.rule)), broken(result, fault.rule)
    assert fault.mend in mends(result, fault.rule)


@pytest.mark.parametrize("part", [key for key in windows_facts() if key not in ("schema", "missing", "time")])
def test_a_part_that_could_not_be_read_breaks_and_pleases_no_further_rule(part: str, tmp_path: Path) -> None:
    """The script leaves null and the reason."""
    facts = windows_facts()
    whole = _audit(facts, tmp_path / "whole")
    facts |= {part: [None], "missing": {part: "Access is denied."}}
    result = _audit(facts, tmp_path / "less")
    assert all_broken(result) == []
    kept = {(one.rule.number, one.check.what) for one in whole.outcomes if one.state == "kept"}
    now = {(one.rule.number, one.check.what) for one in result.outcomes if one.state == "kept"}
    assert now <= kept


def test_sessions_over_a_virtual_adapter_are_said_to_be_out_of_sight(tmp_path: Path) -> None:
    facts = windows_facts()
    facts["sessions"][1]["own"] = "10.0.7.21"
    result = _audit(facts, tmp_path)
    assert "sessions from 10.0.7.21 are over no physical adapter" in result.sheet.notes[-1]
    assert {one.state for one in of_rule(result, 21) if one.subject} == {"unknown"}


def test_facts_of_an_older_script_do_not_tell_of_teams(tmp_path: Path) -> None:
    facts = windows_facts()
    del facts["switch_team_members"]
    assert {one.state for one in of_rule(_audit(facts, tmp_path), 18)} == {"unknown"}


def test_windows_powershell_writes_utf_16(tmp_path: Path) -> None:
    assert all_broken(_audit(windows_facts(), tmp_path, encoding="utf-16")) == []


def test_an_object_alone_counts_as_a_list_of_one(tmp_path: Path) -> None:
    facts = windows_facts()
    facts |= {key: rows[0] for key, rows in facts.items() if isinstance(rows, list) and len(rows) == 1}
    assert all_broken(_audit(facts, tmp_path)) == []


def test_the_script_only_reads() -> None:
    """Every cmdlet has a verb that shows something, and nothing is redirected into a file."""
    code = "\n".join(line for line in facts_script().splitlines() if not line.startswith("#"))
    verbs = set(re.findall(r"\b([A-Z][a-z]+)-[A-Z]\w+", code))
    assert verbs <= {"Get", "Select", "Where", "Find", "ConvertTo", "ForEach", "Read"}
    assert "function Read-Part" in code
    assert ">" not in re.sub(r"-gt|->", "", code)
    for secret in ("Chap", "Secret", "Password", "Credential"):
        assert secret.lower() not in code.lower()


def test_the_script_collects_every_part_that_is_read() -> None:
    parts = set(re.findall(r"^    (\w+) = ", facts_script(), re.MULTILINE))
    assert parts | {"missing"} == set(windows_facts())
