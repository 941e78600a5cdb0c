"""Switch configurations: planted faults, clean twins, the kind of switch, the SAN's VLAN, no secret in any output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.advice import AuditResult, advice_lines, advice_object, facts_object
from linerate.advice.switch.names import members
from linerate.advice.switch.read import read_switch
from linerate.errors import UserError

from tests.advice.outcomes import all_broken, broken, judged, mends, of_rule
from tests.advice.planted.switch_faults import FAULTS, SwitchFault

CONFIGS = Path(__file__).parents[1] / "configs"
KINDS = ("dell", "ios", "nxos", "eos")
CONVERGED = ("dell_dcb", "nxos_dcb", "eos_dcb")


def _audit(text: str, folder: Path, *answers: str) -> AuditResult:
    folder.mkdir(exist_ok=True)
    path = folder / "switch.txt"
    path.write_text(text)
    return judged(read_switch(str(path)), answers=answers)


@pytest.mark.parametrize("kind", [*KINDS, *CONVERGED])
def test_a_clean_switch_breaks_no_rule_and_its_kind_is_told(kind: str) -> None:
    sheet = read_switch(str(CONFIGS / f"{kind}.txt"))
    assert {one.system for one in sheet.subjects} == {kind.removesuffix("_dcb")}
    result = judged(sheet, answers=(f"converged={'yes' if kind in CONVERGED else 'no'}",))
    assert all_broken(result) == []
    wanted = {1, 2, 29, 33, 48} | ({47, 51} if kind in CONVERGED else {4})
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= wanted
    assert {one.rule.number for one in result.outcomes if one.state == "unknown"} <= {29}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.kind}-{fault.found[:12]}")
def test_a_planted_fault_is_found_and_its_twin_is_silent(fault: SwitchFault, tmp_path: Path) -> None:
    text = (CONFIGS / f"{fault.kind}.txt").read_text()
    assert fault.old in text
    twin = _audit(text, tmp_path / "clean", *fault.answers)
    assert broken(twin, fault.rule) == []
    assert any(one.state == "kept" for one in of_rule(twin, fault.rule))
    result = _audit(text.replace(fault.old, fault.new, 1), tmp_path / "faulty", *fault.answers)
    found = broken(result, fault.rule)
    assert any(text.startswith(f"{fault.subject}:") and fault.found in text for text in found), found
    assert fault.mend in mends(result, fault.rule)


def test_ports_that_are_shut_down_and_members_of_aggregates_are_no_edge_ports() -> None:
    result = judged(read_switch(str(CONFIGS / "ios.txt")))
    names = {one.subject.name for one in of_rule(result, 48) if one.subject and one.state == "kept"}
    assert "gigabitethernet1/0/3" not in names
    assert "gigabitethernet1/0/24" not in names


def test_only_ports_of_the_named_vlan_are_checked() -> None:
    sheet = read_switch(str(CONFIGS / "dell.txt"), vlan=10)
    assert [one.name for one in sheet.of("switch_port")] == [
        "tengigabitethernet 0/1",
        "tengigabitethernet 0/2",
        "fortygige 0/33",
    ]
    with pytest.raises(UserError, match="no port that is up is in VLAN 30"):
        read_switch(str(CONFIGS / "dell.txt"), vlan=30)


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_without_indentation_says_the_same(kind: str, tmp_path: Path) -> None:
    text = (CONFIGS / f"{kind}.txt").read_text()
    flat = "\n".join(line.strip() or "!" for line in text.splitlines())
    path = tmp_path / "flat.txt"
    path.write_text(flat)
    whole, pasted = (read_switch(f"{kind}:{place}") for place in (CONFIGS / f"{kind}.txt", path))
    wanted = {one.name: dict(one.facts) for one in whole.of("switch_port")}
    assert {one.name: dict(one.facts) for one in pasted.of("switch_port")} == wanted


def test_windows_line_ends_and_tabs_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "crlf.txt"
    path.write_bytes((CONFIGS / "ios.txt").read_bytes().replace(b"\n ", b"\n\t").replace(b"\n", b"\r\n"))
    assert read_switch(str(path)).subjects[2:] == read_switch(str(CONFIGS / "ios.txt")).subjects[2:]


def test_a_kind_that_cannot_be_told_must_be_said(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("interface X\n mtu 9000\n")
    with pytest.raises(UserError, match="the kind of switch cannot be told") as error:
        read_switch(str(path))
    assert "--switch KIND:FILE" in error.value.hint
    with pytest.raises(UserError, match="no port is in this configuration"):
        read_switch(f"ios:{path}")


@pytest.mark.parametrize("kind", KINDS)
def test_no_line_with_a_secret_is_shown(kind: str) -> None:
    result = judged(read_switch(str(CONFIGS / f"{kind}.txt")))
    shown = json.dumps([facts_object(result.sheet), advice_object(result)]) + str(advice_lines(result))
    for secret in ("b125455cf679b208", "$1$mERr", "HBKJGP", "$6$v1"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("tengigabitethernet 0/1-3", {f"tengigabitethernet 0/{number}" for number in (1, 2, 3)}),
        ("tengigabitethernet 0/1,0/7-8", {f"tengigabitethernet 0/{number}" for number in (1, 7, 8)}),
        ("port-channel 1", {"port-channel 1"}),
        ("tengigabitethernet 1/0/1 - 2", {"tengigabitethernet 1/0/1", "tengigabitethernet 1/0/2"}),
        ("te 0/1 - 2 , fo 0/33", {"tengigabitethernet 0/1", "tengigabitethernet 0/2", "fortygige 0/33"}),
        ("gi1/0/1-1/0/2", {"gigabitethernet1/0/1", "gigabitethernet1/0/2"}),
        ("ethernet1-2,7", {"ethernet1", "ethernet2", "ethernet7"}),
        ("tengigabitethernet 0/1,3", {"tengigabitethernet 0/1", "tengigabitethernet 0/3"}),
        ("ethernet1/1-2/4", {"ethernet1/1-2/4"}),
    ],
)
def test_lists_of_ports(text: str, ports: set[str]) -> None:
    assert members(text) == {one.replace(" ", "") for one in ports}


def test_a_list_of_a_million_ports_is_cut() -> None:
    assert len(members("tengigabitethernet 0/1-999999999")) <= 600
