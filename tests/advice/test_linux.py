"""A Linux host: each planted fault is found, with what mends it; clean twins are silent; what is missing is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.advice import AuditResult
from linerate.advice.linux.read import read_linux
from linerate.errors import UserError

from tests.advice.linux_host import PORTS, LinuxHost
from tests.advice.outcomes import all_broken, broken, judged, mends, of_rule
from tests.advice.planted.linux_faults import FAULTS, LinuxFault

_ANSWERS = ("ups=yes", "converged=no", "replication=quiet", "load_percent=60", "load=random")


def _audit(host: LinuxHost, root: Path, *answers: str) -> AuditResult:
    return judged(read_linux(host.source(root)), answers=answers)


def test_a_clean_host_breaks_no_rule(tmp_path: Path) -> None:
    result = _audit(LinuxHost(), tmp_path, *_ANSWERS)
    assert all_broken(result) == []
    kept = {one.rule.number for one in result.outcomes if one.state == "kept"}
    wanted = {
        1,
        2,
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
        32,
        33,
    }
    assert kept >= wanted | {34, 36, 38, 39, 40, 42, 43, 49}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.found[:24]}")
def test_a_planted_fault_is_found_and_its_twin_is_silent(fault: LinuxFault, tmp_path: Path) -> None:
    clean, faulty = LinuxHost(), LinuxHost()
    for host in (clean, faulty):
        if fault.healthy:
            fault.healthy(host)
    fault.plant(faulty)
    twin = _audit(clean, tmp_path / "clean", *fault.answers)
    assert broken(twin, fault.rule) == []
    assert any(one.state in ("kept", "not needed") for one in of_rule(twin, fault.rule))
    result = _audit(faulty, tmp_path / "faulty", *fault.answers)
    assert any(fault.found in text for text in broken(result, fault.rule)), broken(result, fault.rule)
    assert fault.mend in mends(result, fault.rule)


@pytest.mark.parametrize("command", ["ip", "ss", "ethtool", "lldpctl", "multipathd", "iscsiadm", "dcb"])
def test_a_command_that_is_missing_makes_rules_unknown_and_none_right(command: str, tmp_path: Path) -> None:
    host = LinuxHost()
    whole = _audit(host, tmp_path / "whole", "converged=yes")
    host.commands = {words: answer for words, answer in host.commands.items() if words.split()[0] != command}
    result = _audit(host, tmp_path / "less", "converged=yes")
    lost = [
        one for one in result.outcomes if one.state == "unknown" and f"{command} is not installed" in one.text
    ]
    assert lost
    assert all_broken(result) == all_broken(whole)


@pytest.mark.parametrize("setting", ["mtu", "flow_control", "rss", "rx_ring_frames"])
def test_a_setting_that_the_driver_lacks_is_unknown(setting: str, tmp_path: Path) -> None:
    host = LinuxHost()
    for port in PORTS:
        host.settings[setting, port] = None
    result = _audit(host, tmp_path)
    texts = [one.text for one in result.outcomes if one.state == "unknown"]
    assert "the driver has no such setting" in texts or "the MTU of the port is not known" in texts


def test_a_write_cache_without_an_answer_is_unknown(tmp_path: Path) -> None:
    host = LinuxHost()
    host.files |= {path: "write back" for path in host.files if path.endswith("write_cache")}
    (outcome,) = of_rule(_audit(host, tmp_path), 37)
    assert outcome.state == "unknown"
    assert "--answer ups=yes|no" in outcome.text


def test_nagle_is_off_in_the_sessions_of_open_iscsi_and_a_drivers_age_is_unknown(tmp_path: Path) -> None:
    result = _audit(LinuxHost(), tmp_path)
    assert {one.state for one in of_rule(result, 14)} == {"kept"}
    assert {(one.check.what, one.state) for one in of_rule(result, 34)} == {
        ("age of the driver", "unknown"),
        ("firmware", "kept"),
    }


def test_paths_without_a_multipath_map_are_unknown(tmp_path: Path) -> None:
    host = LinuxHost()
    host.commands["multipathd show maps json"] = {"maps": []}
    result = _audit(host, tmp_path)
    for number in (24, 25, 26):
        assert {one.state for one in of_rule(result, number)} == {"unknown"}, number


def test_standby_paths_are_not_active_ones(tmp_path: Path) -> None:
    host = LinuxHost()
    host.session(3, 5, "sdd", "10.0.1.11", "10.0.2.101")
    host.session(4, 6, "sde", "10.0.2.11", "10.0.1.101")
    host.map(("active", ("sdb", "sdc")), ("enabled", ("sdd", "sde")))
    result = _audit(host, tmp_path)
    assert {one.state for number in (24, 25, 26) for one in of_rule(result, number)} == {"kept"}


def test_a_port_that_is_named_is_looked_at_without_a_session(tmp_path: Path) -> None:
    host = LinuxHost()
    host.files = {path: text for path, text in host.files.items() if "iscsi" not in path}
    host.links = {path: target for path, target in host.links.items() if "iscsi" not in path}
    sheet = read_linux(host.source(tmp_path), ("eth3",))
    assert [one.name for one in sheet.of("port")] == ["eth3"]
    with pytest.raises(UserError, match="there is no device eth9"):
        read_linux(host.source(tmp_path), ("eth9",))


def test_without_sessions_the_report_says_that_it_guesses_the_ports(tmp_path: Path) -> None:
    host = LinuxHost()
    host.links = {path: target for path, target in host.links.items() if "iscsi_session" not in path}
    host.files = {path: text for path, text in host.files.items() if "iscsi_session" not in path}
    sheet = read_linux(host.source(tmp_path))
    assert "every adapter is looked at: eth2, eth3" in sheet.notes[0]


def test_only_commands_that_show_something_are_run(tmp_path: Path) -> None:
    host = LinuxHost()
    read_linux(host.source(tmp_path))
    shows = ("show", "get", "ss ", "ping ", "ethtool eth", "ethtool -i eth", "lldpctl -f", "iscsiadm -m node")
    assert host.asked
    assert [words for words in host.asked if not any(part in words for part in shows)] == []
