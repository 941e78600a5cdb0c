"""Every form names every setting, and each text is read back by what it is meant for, or by our own reader of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from linerate.advice import judge, rules
from linerate.advice.audit import completed
from linerate.advice.switch.config import ConfigBlock
from linerate.advice.switch.dialect import DIALECTS
from linerate.advice.switch.read import read_switch
from linerate.errors import UserError
from linerate.host import catalogue as host_catalogue
from linerate.host.linux.sysctl import SysctlNumber
from linerate.recommend import FORMS, configuration_text
from linerate.setting import Choice, Number, OnOff, Setting, Value
from linerate.settings import PATHS, catalogue
from linerate.workload.multipath import parse_conf

from tests.host.conftest import Namespace
from tests.recommend.planted import configuration, recommendation
from tests.support import need

WRITTEN: dict[str, Value] = {
    PATHS: "mesh",
    "multipath.failback": "10s",
    "multipath.path_timeout": "5s",
    "multipath.checker_interval": "2s",
    "multipath.no_path_queue": "forever",
    "link.rate": "10gbit",
    "link.delay": "5us",
    "link.loss": "0.1%",
    "switch.buffer": "256k",
    "switch.schedule": "ets 3:50 0:50",
    "load.host": "h1",
    "faults": "cable h1.p0 at 3s for 4s",
}
"""Values of settings with a notation of their own."""
PORTS = {"switch": ("Ethernet1/1", "Ethernet1/2"), "powershell": ("SAN 1", "O'Neil")}


def _value(setting: Setting) -> Value:
    match setting.kind:
        case OnOff():
            return setting.default != "on"
        case Choice(options=options):
            return next(one for one in options if one != setting.default)
        case Number(most=most):
            return most
        case _:
            return WRITTEN.get(setting.name, "64k")


EVERYTHING: dict[str, Value] = {
    name: _value(setting)
    for name, setting in catalogue().items()
    if not name.startswith("array.") and name not in ("load.array", "load.rate", "load.lan")
}
"""A value that is not the default of each setting that a study can recommend."""


def _text(form: str, values: Mapping[str, Value]) -> str:
    ports = PORTS.get(form.partition(":")[0], ("p0", "p1"))
    return configuration_text(configuration(values), form, ports)


@pytest.mark.parametrize("form", FORMS)
def test_no_setting_is_dropped(form: str) -> None:
    text = _text(form, EVERYTHING)
    mark = "!" if form.startswith("switch") else "#"
    for name, value in EVERYTHING.items():
        setting = catalogue()[name]
        assert f" {name} = {setting.text(setting.parse(value))}" in text, name
    end = text[text.index(f"{mark} Not set here:\n") :].replace(f"\n{mark}     ", " ")
    for line in end.splitlines()[1:]:
        reason = re.fullmatch(rf"{mark}   ([a-z0-9_.]+) = .+?: (\S.{{15,}})", line)
        assert reason, line
        assert reason[1] in EVERYTHING


@pytest.mark.parametrize("form", FORMS)
def test_texts_of_a_study_stay_in_comments(form: str) -> None:
    evil = "x\nrm -rf /\r\n{{ lookup('pipe', 'id') }}\u2028$(id)`id`\x1b[2J"
    hostile = recommendation({"mtu": 9000}, evidence=(evil,))
    of_multipath = recommendation({"multipath.policy": "service_time"}, evidence=(evil,))
    study = configuration({"ecn": "on"}, hostile, of_multipath, title=evil, state="interrupted", reason=evil)
    text = configuration_text(study, form, PORTS.get(form.partition(":")[0], ("p0",)))
    assert "rm -rf /" in text
    mark = "!" if form.startswith("switch") else "#"
    for line in re.split(r"[\r\n\u2028]", text):
        assert "rm -rf" not in line or line.startswith(mark), line
        assert "lookup" not in line or line.startswith(mark), line
    assert "\x1b" not in text


@pytest.mark.parametrize("form", FORMS)
def test_a_doubt_is_said_once_at_the_top(form: str) -> None:
    study = configuration({"mtu": 9000}, state="interrupted", reason="stopped by the user")
    text = configuration_text(study, form, PORTS.get(form.partition(":")[0], ("p0",)))
    assert text.count("Doubt: the study is interrupted (stopped by the user)") == 1
    assert text.index("Doubt:") < text.index("mtu = 9000")
    assert "Doubt:" not in _text(form, {"mtu": 9000})


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_to_be_set_unasked_is_a_comment(form: str) -> None:
    mixed = recommendation({"mtu": 9000}, mixed=True, cost=("8K random: -3.0 % (-3.5 .. -2.5)",))
    values = [recommendation({"multipath.ios_per_path": number}) for number in (4, 8)]
    study = configuration({"ecn": "on"}, mixed, *values)
    text = configuration_text(study, form, ())
    mark = "!" if form.startswith("switch") else "#"
    assert f"{mark}   mtu: it depends on the load: 8K random: -3.0 % (-3.5 .. -2.5)" in text
    assert f"{mark}   multipath.ios_per_path: 4 and 8 were shown to help" in text
    code = "\n".join(line for line in text.splitlines() if not line.startswith(mark))
    assert not re.search(r"9000|9216|rr_min_io|JumboPacket", code)


@pytest.mark.parametrize("form", FORMS)
def test_a_study_that_recommends_nothing_says_so(form: str) -> None:
    text = configuration_text(configuration({}), form, ())
    assert "No setting was shown to help, so there is nothing to set." in text
    mark = "!" if form.startswith("switch") else "#"
    code = [line for line in text.splitlines() if not line.startswith(mark)]
    assert code == (["---", "[]"] if form == "ansible" else [])


def test_a_form_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UserError, match="switch: there is no such form") as error:
        configuration_text(configuration({}), "switch", ())
    assert error.value.hint == "write one of switch:ios, switch:nxos, switch:dell, switch:eos"


# ---- sysctl.d ----


def test_sysctl_takes_the_file(namespace: Namespace, tmp_path: Path) -> None:
    values: dict[str, Value] = {
        "receive_buffer_default_bytes": 65_536,
        "receive_buffer_max_bytes": 1 << 20,
        "send_buffer_max_bytes": 2 << 20,
        "congestion_control": "reno",
        "ecn": "on",
        "selective_ack": "off",
        "rto_min_us": 50_000,
    }
    path = tmp_path / "san.conf"
    path.write_text(_text("sysctl", values))
    namespace.run(need.tool("sysctl"), "--load", str(path))
    for name, text in (
        ("tcp_rmem", "4096 65536 1048576"),
        ("tcp_wmem", "4096 16384 2097152"),
        ("tcp_congestion_control", "reno"),
        ("tcp_ecn", "1"),
        ("tcp_sack", "0"),
        ("tcp_rto_min_us", "50000"),
    ):
        assert namespace.run("cat", f"/proc/sys/net/ipv4/{name}").split() == text.split(), name
    assert "net.ipv4.tcp_rmem has several numbers" in path.read_text()


def test_the_usual_line_of_a_sysctl_has_the_setting_s_default() -> None:
    for setting in host_catalogue().values():
        if isinstance(setting.linux, SysctlNumber) and setting.linux.whole_line:
            assert setting.linux.whole_line.split()[setting.linux.position] == setting.default


# ---- udev ----


def _rules(text: str) -> list[str]:
    """The shell commands of a file of udev rules, as udev runs them for p0."""
    rule = re.compile(r'ACTION=="add", SUBSYSTEM=="net", KERNEL=="p0\|p1", RUN\+="/bin/sh -c \'([^\'"]+)\'"')
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = [rule.fullmatch(line) for line in lines]
    assert all(found), lines
    special = {"%k": "p0", "%%": "%", "$$": "$"}
    return [re.sub(r"%k|%%|\$\$", lambda part: special[part[0]], one[1]) for one in found if one]


def test_udev_rules_hold_one_command_each(namespace: Namespace) -> None:
    commands = _rules(_text("udev", EVERYTHING))
    assert len(commands) == sum(one.where == "nic" and bool(one.linux) for one in host_catalogue().values())
    for command in commands:
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_udev_s_commands_work_on_a_port(namespace: Namespace) -> None:
    need.tool("ethtool")
    values: dict[str, Value] = {"mtu": 9000, "gso_max_segments": 1, "rsc": "on", "rss_queues": "max"}
    for command in _rules(_text("udev", values)):
        namespace.run("sh", "-c", command)
    shown = namespace.run("ip", "-d", "link", "show", "dev", "p0")
    assert " mtu 9000 " in shown
    assert " gso_max_segs 1 " in shown
    assert "generic-receive-offload: on" in namespace.run("ethtool", "-k", "p0")
    most, now = re.findall(r"RX:\s+(\d+)", namespace.run("ethtool", "-l", "p0"))
    assert now == most


def test_udev_rules_are_not_for_every_port() -> None:
    with pytest.raises(UserError, match="udev rules need the ports to the SAN"):
        configuration_text(configuration({"mtu": 9000}), "udev", ())


# ---- ansible ----


def _tasks(values: Mapping[str, Value], ports: tuple[str, ...]) -> list[dict[str, Any]]:
    found = yaml.safe_load(configuration_text(configuration(values), "ansible", ports))
    assert isinstance(found, list)
    return found


def test_ansible_s_tasks_are_those_of_the_other_forms() -> None:
    values: dict[str, Value] = {
        "mtu": 9000,
        "ecn": "on",
        "receive_buffer_max_bytes": "16m",
        "immediate_data": "off",
        "multipath.policy": "service_time",
    }
    tasks = _tasks(values, ("p0", "p1"))
    modules = [next(key for key in task if "." in key) for task in tasks]
    assert modules == [
        "ansible.builtin.set_fact",
        "ansible.builtin.copy",
        "ansible.builtin.command",
        "ansible.posix.sysctl",
        "ansible.posix.sysctl",
        "ansible.builtin.copy",
        "ansible.builtin.command",
        "ansible.builtin.command",
    ]
    assert tasks[0]["ansible.builtin.set_fact"] == {"san_ports": ["p0", "p1"]}
    content = tasks[1]["ansible.builtin.copy"]["content"]
    assert _rules(content.replace("{{ san_ports | join('|') }}", "p0|p1")) == ["ip link set dev p0 mtu 9000"]
    sysctls = {task["ansible.posix.sysctl"]["name"]: task["ansible.posix.sysctl"] for task in tasks[3:5]}
    assert sysctls["net.ipv4.tcp_rmem"]["value"] == "4096 131072 16777216"
    assert sysctls["net.ipv4.tcp_ecn"]["value"] == "1"
    spec, _ = parse_conf(tasks[5]["ansible.builtin.copy"]["content"], "task")
    assert spec.policy == "service_time"
    command = tasks[7]["ansible.builtin.command"]["cmd"]
    assert command == "iscsiadm -m node -o update -n 'node.session.iscsi.ImmediateData' -v No"


def test_ansible_asks_for_the_ports() -> None:
    first = _tasks({"mtu": 9000}, ())[0]
    assert first["ansible.builtin.assert"]["that"] == "san_ports is defined"


def test_every_setting_as_ansible_tasks_is_yaml() -> None:
    assert len(_tasks(EVERYTHING, ("p0",))) > 15


# ---- multipath.conf ----


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        (
            {"multipath.policy": "round_robin", "multipath.ios_per_path": 4},
            {"policy": "round_robin", "ios_per_path": 4},
        ),
        ({"multipath.policy": "failover_only"}, {"policy": "failover_only"}),
        ({"multipath.policy": "round_robin_subset"}, {"policy": "round_robin_subset"}),
        ({"multipath.policy": "least_queue_depth"}, {"policy": "least_queue_depth"}),
        ({"multipath.failback": "10s"}, {"failback": 10.0}),
        ({"multipath.failback": "manual"}, {"failback": "manual"}),
        ({"multipath.path_timeout": "5s"}, {"path_timeout_s": 5}),
        ({"multipath.checker_interval": "2s"}, {"checker_interval_s": 2}),
        ({"multipath.no_path_queue": "forever"}, {"no_path_queue_s": None}),
        ({"multipath.no_path_queue": "0s"}, {"no_path_queue_s": 0.0}),
        ({"multipath.no_path_queue": "30s"}, {"no_path_queue_s": 30.0}),
        (
            {"multipath.no_path_queue": "30s", "multipath.checker_interval": "3s"},
            {"no_path_queue_s": 30.0, "checker_interval_s": 3},
        ),
    ],
    ids=str,
)
def test_our_reader_of_multipath_conf_reads_the_same(
    values: dict[str, Value], fields: dict[str, Any]
) -> None:
    spec, notices = parse_conf(_text("multipath", values), "made.conf")
    assert {name: getattr(spec, name) for name in fields} == fields
    assert not [notice for notice in notices if "without effect" in str(notice)]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("multipath.policy", "weighted_paths", "multipath-tools has no such policy"),
        ("multipath.path_timeout", "500ms", "whole numbers here, and this would be 0.5 s"),
        ("multipath.no_path_queue", "7s", "this would be 1.4 times polling_interval (5 s)"),
        ("multipath.bytes_per_path", 65_536, "counts I/Os, not bytes"),
        (PATHS, "mesh", "paths come from the sessions that log in"),
    ],
)
def test_what_multipath_conf_cannot_say_has_a_reason(name: str, value: Value, why: str) -> None:
    text = _text("multipath", {name: value})
    assert why in " ".join(line.lstrip("# ") for line in text.splitlines())
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == []


# ---- switches ----


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.system)
def test_a_switch_with_these_lines_keeps_the_rules_about_them(dialect: Any, tmp_path: Path) -> None:
    names = {"ios": "GigabitEthernet1/0/1", "dell": "TenGigabitEthernet 0/1"}
    port = names.get(dialect.system, "Ethernet1/1")
    values: dict[str, Value] = {"mtu": 9000, "flow_control": "on"}
    path = tmp_path / "switch.txt"
    path.write_text(configuration_text(configuration(values), f"switch:{dialect.system}", [port]))
    sheet = read_switch(f"{dialect.system}:{path}")
    (found,) = sheet.of("switch_port")
    assert found.facts["mtu"] >= 9022
    assert found.facts["flow_control_receive"] == "on"
    assert found.facts["flow_control_send"] == ("off" if dialect.system == "ios" else "on")
    outcomes = judge(sheet, rules())
    kept = {one.rule.number for one in outcomes if one.subject is found and one.state == "kept"}
    assert {1, 2, 4} <= kept
    if dialect.system != "ios":
        assert "Rule flow-control-switch of `linerate advise` wants a switch" in path.read_text()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.system)
@pytest.mark.parametrize("receive", [True, False])
@pytest.mark.parametrize("send", [True, False])
def test_pause_lines_are_read_as_they_are_written(dialect: Any, receive: bool, send: bool) -> None:
    lines = list(dialect.pause(receive, send))
    words = {True: "on", False: "off"}
    sends = send and dialect.system != "ios"
    assert dialect.flow_control(ConfigBlock("", lines)) == (words[receive], words[sends])


def test_the_rule_about_pause_frames_has_the_lines_of_the_dialects() -> None:
    checks = [check for rule in rules() if rule.number == 4 for check in rule.checks]
    for dialect in DIALECTS:
        advised = {line for check in checks for line in check.commands.get(dialect.system, ())}
        assert advised <= set(dialect.pause(True, False)), dialect.system


def test_without_ports_a_word_stands_for_them() -> None:
    text = configuration_text(configuration({"mtu": 9000}), "switch:eos", ())
    assert "\ninterface PORT\n" in text
    assert "Put the names of the ports to hosts and arrays in place of PORT." in text
    with pytest.raises(UserError, match="is not the name of a switch port"):
        configuration_text(configuration({"mtu": 9000}), "switch:eos", ["Ethernet1\nreload"])


CLASSES: dict[str, Value] = {"switch.flow_control": "pfc", "switch.schedule": "ets 3:70 0:30"}


@pytest.mark.parametrize("kind", ["dell", "nxos", "eos"])
@pytest.mark.parametrize(
    "values", [CLASSES, {"mtu": 9000, **CLASSES}, {"switch.flow_control": "pfc"}], ids=str
)
def test_lines_for_classes_are_whole(kind: str, values: dict[str, Value], tmp_path: Path) -> None:
    """Our own reader finds one lossless class on all ports, shares of 100 %, and no pause frames beside it."""
    names = ["TenGigabitEthernet 0/1", "TenGigabitEthernet 0/2"] if kind == "dell" else PORTS["switch"]
    path = tmp_path / "switch.txt"
    path.write_text(configuration_text(configuration(values), f"switch:{kind}", names))
    priority = "3" if "switch.schedule" in values else "4"
    sheet = completed(
        [read_switch(f"{kind}:{path}", None, priority)], {"converged": "yes", "iscsi_priority": priority}
    )
    (switch,) = sheet.of("switch")
    assert switch.facts["pfc_priorities"] == priority
    assert {one.facts["pfc"] for one in sheet.of("switch_port")} == {True}
    outcomes = [one for one in judge(sheet, rules()) if one.rule.number in (47, 51) and one.subject]
    assert [f"{one.subject}: {one.text}" for one in outcomes if one.state == "broken"] == []
    assert sum(one.state == "kept" for one in outcomes) >= 6
    if "switch.schedule" in values:
        assert switch.facts["iscsi_share_percent"] == 70
        assert not [one.text for one in outcomes if one.state == "unknown"]


@pytest.mark.parametrize(
    ("values", "kind", "why"),
    [
        (CLASSES, "ios", "no classes with PFC or ETS"),
        ({"switch.schedule": "strict"}, "eos", "strict priority has no lines"),
        ({"switch.schedule": "ets 3:33.3 0:66.7"}, "dell", "whole percent"),
        ({"switch.schedule": "ets 2:30 3:30 0:40"}, "nxos", "do not say which priority is that of iSCSI"),
    ],
)
def test_classes_that_cannot_be_written_say_why(values: dict[str, Value], kind: str, why: str) -> None:
    text = configuration_text(configuration(values), f"switch:{kind}", PORTS["switch"])
    assert why in " ".join(line.lstrip("! ") for line in text.splitlines())
    assert [line for line in text.splitlines() if line and not line.startswith("!")] == []


def test_several_classes_beside_that_of_iscsi_keep_their_shares(tmp_path: Path) -> None:
    values: dict[str, Value] = {"switch.flow_control": "pfc", "switch.schedule": "ets 5:20 4:50 0:30"}
    dell = configuration_text(configuration(values), "switch:dell", ["Te 0/1"])
    assert "\n priority-group 2 bandwidth 50 pfc on\n" in dell
    assert "\n priority-pgid 0 0 0 0 2 1 0 0\n" in dell
    nexus = configuration_text(configuration(values), "switch:nxos", ["Ethernet1/1"])
    assert "c-out-8q-q5\n    bandwidth remaining percent 20\n" in nexus
    assert nexus.count("pause pfc-cos") == 1


# ---- PowerShell ----


def test_powershell_undoes_what_it_applies() -> None:
    """As text: nothing here has run on Windows."""
    values = {name: value for name, value in EVERYTHING.items() if name in host_catalogue()}
    text = _text("powershell", values)
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    bare = re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", "", code)
    assert bare.count("{") == bare.count("}")
    assert bare.count("(") == bare.count(")")
    assert code.startswith("param([switch]$Undo)")
    undo, _, apply = code.partition("    return\n}")
    key = re.compile(r"\$Saved\[(['\"].*?['\"])\]")
    saved = set(re.findall(r"\$Saved\[(['\"].*?['\"])\] = ", apply))
    assert set(key.findall(undo)) == saved
    assert len(saved) > 20
    before = apply[: apply.index("Export-Clixml")]
    assert not re.search(r"\b(Set|New|Remove)-", before)
    assert "$Ports = @('SAN 1', 'O''Neil')" in code
    assert "if (-not $Ports) { throw" in code
