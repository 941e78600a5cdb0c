"""DCB at both ends of a link: a host beside the configurations of its switches, and switches beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.advice import SanFactSheet
from linerate.advice.documents.facts_file import read_facts
from linerate.advice.linux.read import read_linux
from linerate.advice.switch.read import read_switch

from tests.advice.linux_host import LinuxHost
from tests.advice.outcomes import broken, judged, of_rule
from tests.advice.windows_host import windows_facts

CONFIGS = Path(__file__).parents[1] / "configs"
PFC = "dcb -j pfc show dev eth2"


def _switch(folder: Path, name: str, priority: int = 4) -> SanFactSheet:
    text = (CONFIGS / "eos_dcb.txt").read_text().replace("arista-san-1", name)
    path = folder / f"{name}.txt"
    path.write_text(text.replace("priority 4 no-drop", f"priority {priority} no-drop"))
    return read_switch(str(path))


def _host(folder: Path, flags: list[int] | None = None) -> SanFactSheet:
    host = LinuxHost()
    if flags is not None:
        host.commands[PFC] = {"prio_pfc": flags}
    return read_linux(host.source(folder / "host"))


def test_pfc_at_both_ends_is_silent(tmp_path: Path) -> None:
    result = judged(_host(tmp_path), _switch(tmp_path, "sw1"), _switch(tmp_path, "sw2"))
    assert broken(result, 51) == []
    of_ports = [one for one in of_rule(result, 51) if one.subject and one.subject.kind == "port"]
    assert {one.state for one in of_ports} == {"kept"}


@pytest.mark.parametrize(("flags", "found"), [([0] * 8, "none"), ([0, 0, 0, 1, 0, 0, 0, 0], "3")])
def test_pfc_at_the_switch_and_not_at_the_host_is_named(flags: list[int], found: str, tmp_path: Path) -> None:
    result = judged(_host(tmp_path, flags), _switch(tmp_path, "sw1"))
    assert broken(result, 51) == [
        f"eth2: priorities with PFC: {found}; wanted: 4, as the other end or the system has it"
    ]


def test_a_windows_host_is_held_against_the_switch(tmp_path: Path) -> None:
    facts = windows_facts() | {"pfc": []}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts))
    assert len(broken(judged(read_facts(path), _switch(tmp_path, "sw1")), 51)) == 2
    assert broken(judged(read_facts(path)), 51) == []


def test_pfc_at_the_host_and_not_at_the_switch_is_named(tmp_path: Path) -> None:
    result = judged(_host(tmp_path), read_switch(str(CONFIGS / "eos.txt")))
    assert [text.partition(":")[0] for text in broken(result, 51)] == ["eth2", "eth3"]


def test_switches_that_differ_are_told_apart_by_their_announced_names(tmp_path: Path) -> None:
    """eth2 leads to sw1 and eth3 to sw2, by LLDP."""
    result = judged(_host(tmp_path), _switch(tmp_path, "sw1"), _switch(tmp_path, "sw2", 3))
    found = broken(result, 51)
    assert "sw1: no-drop priorities that differ: 4 on sw1; 3 on sw2; wanted: none" in found
    assert [text for text in found if text.startswith("eth")] == [
        "eth3: priorities with PFC: 4; wanted: 3, as the other end or the system has it"
    ]
    unnamed = judged(_host(tmp_path), _switch(tmp_path, "sw8"), _switch(tmp_path, "sw9", 3))
    of_ports = [one for one in of_rule(unnamed, 51) if one.check.test.same_as and one.subject]
    assert {one.state for one in of_ports} == {"unknown"}
    assert "which of them the port leads to is not known" in of_ports[0].text


def test_a_driver_without_dcb_has_no_pfc_and_a_missing_command_leaves_it_open(tmp_path: Path) -> None:
    host = LinuxHost()
    del host.commands[PFC]
    host.refused[PFC] = "Attribute read: Operation not supported"
    del host.commands[PFC.replace("eth2", "eth3")]
    ports = {one.name: one for one in read_linux(host.source(tmp_path)).of("port")}
    assert ports["eth2"].facts["pfc_priorities"] == "none"
    assert "pfc_priorities" not in ports["eth3"].facts
    states = {
        one.subject.name: one.state
        for one in of_rule(judged(read_linux(host.source(tmp_path))), 3)
        if one.subject
    }
    assert states == {"eth2": "broken", "eth3": "unknown"}
