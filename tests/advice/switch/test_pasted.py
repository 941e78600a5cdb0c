"""Configurations as terminals and users leave them: paging, prompts, banners, ranges, short forms, defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.advice import SanFactSheet
from linerate.advice.switch.read import read_switch

from tests.advice.outcomes import broken, judged, of_rule

CONFIGS = Path(__file__).parents[1] / "configs"
_ERASE = "\b" * 9 + " " * 8 + "\b" * 9

IOS = """san-sw1#terminal length 40
san-sw1#show running-config
Building configuration...

Current configuration : 9120 bytes
!
version 15.2
hostname san-sw1
!
system mtu jumbo 9198
!
spanning-tree mode rapid-pvst
!
"""


def _sheet(folder: Path, text: str | bytes, given: str = "{}", vlan: int | None = None) -> SanFactSheet:
    path = folder / "pasted.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_switch(given.format(path), vlan)


def _ports(sheet: SanFactSheet) -> list[str]:
    return [one.name for one in sheet.of("switch_port")]


def _facts(sheet: SanFactSheet, name: str) -> dict[str, object]:
    (found,) = [one for one in sheet.subjects if one.name == name]
    return dict(found.facts)


@pytest.mark.parametrize(
    "paging",
    [
        f" --More-- {_ERASE}",
        " --More-- ",
        " --More--         ",
        "--More--\r        \r",
        "\x1b[7m--More--\x1b[m\r\x1b[K",
        "<--- More --->\r              \r",
        "--More-- or (q)uit",
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["ios", "nxos_dcb", "dell_dcb", "eos_dcb"])
def test_what_a_pager_leaves_changes_nothing(kind: str, paging: str, tmp_path: Path) -> None:
    lines = (CONFIGS / f"{kind}.txt").read_text().splitlines()
    heads = [at for at, line in enumerate(lines) if line.lower().startswith(("interface", "  priority-flow"))]
    for at in heads:
        lines[at] = f"{paging}{lines[at]}"
    pasted = _sheet(tmp_path, "\r\n".join(lines))
    whole = read_switch(str(CONFIGS / f"{kind}.txt"))
    assert pasted.subjects == whole.subjects


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n", "\n"], ids=repr)
@pytest.mark.parametrize("kind", ["ios", "nxos_dcb", "dell_dcb", "eos_dcb"])
def test_every_end_of_line_says_the_same(kind: str, end: str, tmp_path: Path) -> None:
    text = (CONFIGS / f"{kind}.txt").read_text().replace("\n", end)
    assert _sheet(tmp_path, text).subjects == read_switch(str(CONFIGS / f"{kind}.txt")).subjects


BANNER = """banner {}
 interface GigabitEthernet1/0/40
  shutdown
interface GigabitEthernet1/0/41
hostname not-mine
system mtu jumbo 1500
{}
"""


@pytest.mark.parametrize(
    ("start", "end"),
    [("motd ^C", "^C"), ("login #", "Unauthorized#"), ("motd", "EOF"), ("exec \x03", "\x03")],
)
def test_a_banner_is_no_configuration(start: str, end: str, tmp_path: Path) -> None:
    ports = "interface GigabitEthernet1/0/1\n switchport access vlan 10\n"
    sheet = _sheet(
        tmp_path, IOS.replace("hostname san-sw1\n!\nsystem", "system") + BANNER.format(start, end) + ports
    )
    assert _ports(sheet) == ["gigabitethernet1/0/1"]
    assert _facts(sheet, "gigabitethernet1/0/1")["mtu"] == 9198
    assert not [one for one in sheet.subjects if one.name == "not-mine"]


def test_a_banner_without_an_end_hides_nothing(tmp_path: Path) -> None:
    sheet = _sheet(
        tmp_path, f"{IOS}banner motd ^C\ninterface GigabitEthernet1/0/1\n shutdown\ninterface Gi1/0/2\n"
    )
    assert _ports(sheet) == ["gigabitethernet1/0/2"]


def test_a_range_is_its_ports_and_a_later_line_wins(tmp_path: Path) -> None:
    text = (
        "conf t\ninterface range GigabitEthernet1/0/1 - 3 , GigabitEthernet1/0/7\n switchport mode access\n"
        " switchport access vlan 10\n flowcontrol receive on\n spanning-tree portfast\n"
        "int gi1/0/2\n flow rec off\n sw acc vl 20\n"
    )
    sheet = _sheet(tmp_path, IOS + text)
    assert _ports(sheet) == [f"gigabitethernet1/0/{number}" for number in (1, 2, 3, 7)]
    assert _facts(sheet, "gigabitethernet1/0/1")["flow_control_receive"] == "on"
    assert _facts(sheet, "gigabitethernet1/0/2")["flow_control_receive"] == "off"
    assert _ports(_sheet(tmp_path, IOS + text, vlan=20)) == ["gigabitethernet1/0/2"]


def test_short_forms_say_the_same(tmp_path: Path) -> None:
    short = (
        "int gi1/0/1\n desc esx1 iscsi\n sw mo acc\n sw acc vl 10\n flow rec des\n span portf\n no sh\n"
        "int gi1/0/2\n desc storage\n sw acc vl 1\n sh\n"
    )
    sheet = _sheet(tmp_path, IOS + short)
    assert _ports(sheet) == ["gigabitethernet1/0/1"]
    result = judged(sheet, answers=("converged=no",))
    assert {one.rule.number for one in result.outcomes if one.state == "broken"} == set()
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= {1, 2, 4, 33, 48}


SESSION = """FTOS#show version
Dell Real Time Operating System Software
FTOS# configure
FTOS(conf)#dcb enable
FTOS(conf)#interface range tengigabitethernet 0/1 - 2 , tengigabitethernet 0/41 - 42
FTOS(conf-if-range-te-0/1-2,te-0/41-42)#switchport
FTOS(conf-if-range-te-0/1-2,te-0/41-42)#mtu 12000
FTOS(conf-if-range-te-0/1-2,te-0/41-42)#spanning-tree rstp edge-port
FTOS(conf-if-range-te-0/1-2,te-0/41-42)#no shutdown
FTOS(conf-if-range-te-0/1-2,te-0/41-42)#exit
FTOS(conf)# interface vlan 10
FTOS (conf-if-vl-10)# tagged tengigabitethernet 0/1-2
FTOS (conf-if-vl-10)# tagged tengigabitethernet 0/41-42
FTOS (conf-if-vl-10)# exit
FTOS(conf)# dcb-input pfc
FTOS(conf-dcb-in)# pfc priority 4
FTOS(conf-dcb-in)# exit
FTOS(conf)# priority-group iSCSI
FTOS(conf-pg)# priority-list 4
FTOS(conf-pg)# exit
FTOS(conf)# priority-group OTHER
FTOS(conf-pg)# priority-list 0-3,5-7
FTOS(conf-pg)# exit
FTOS(conf)# dcb-output ets
FTOS(conf-dcb-out)# priority-group iSCSI qos-policy iSCSI
FTOS(conf-dcb-out)# priority-group OTHER qos-policy OTHER
FTOS(conf-dcb-out)# exit
FTOS(conf)# interface range tengigabitethernet 0/1 - 2 , tengigabitethernet 0/41 - 42
FTOS(conf-if-range-te-0/1-2,te-0/41-42)# dcb-policy input pfc
FTOS(conf-if-range-te-0/1-2,te-0/41-42)# dcb-policy output ets
FTOS(conf-if-range-te-0/1-2,te-0/41-42)# exit
FTOS(conf)#qos-policy-output iSCSI ets
FTOS(conf-qos-policy-out)#bandwidth-percentage 50
FTOS(conf-qos-policy-out)#exit
FTOS(conf)#qos-policy-output OTHER ets
FTOS(conf-qos-policy-out)#bandwidth-percentage 50
FTOS(conf-qos-policy-out)#exit
"""


def test_a_session_with_prompts_is_read(tmp_path: Path) -> None:
    """The steps of a publication for the blade switch, typed into its terminal."""
    sheet = _sheet(tmp_path, SESSION, "dell:{}", vlan=10)
    assert _ports(sheet) == [f"tengigabitethernet 0/{number}" for number in (1, 2, 41, 42)]
    result = judged(sheet, answers=("converged=yes",))
    assert {one.rule.number for one in result.outcomes if one.state == "broken"} == set()
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= {1, 2, 33, 47, 48, 51}


PORT = "interface Ethernet1/1\n  switchport mode trunk\n  spanning-tree port type edge trunk\n  mtu 9216\n"
NXOS = "!Command: show running-config\nversion 9.3(8)\nfeature lldp\n\n"


@pytest.mark.parametrize(
    ("lines", "carried"),
    [
        ("", True),
        ("  switchport trunk allowed vlan 10,20\n", True),
        ("  switchport trunk allowed vlan 1-9,11\n  switchport trunk allowed vlan add 10\n", True),
        ("  switchport trunk allowed vlan except 10\n", False),
        ("  switchport trunk allowed vlan none\n", False),
        ("  switchport trunk allowed vlan 20\n", False),
    ],
)
def test_a_trunk_carries_all_vlans_unless_it_says_otherwise(
    lines: str, carried: bool, tmp_path: Path
) -> None:
    other = "interface Ethernet1/2\n  switchport access vlan 10\n"
    sheet = _sheet(tmp_path, f"{NXOS}{PORT}{lines}{other}", vlan=10)
    assert ("ethernet1/1" in _ports(sheet)) == carried


@pytest.mark.parametrize(
    ("kind", "text", "member"),
    [
        (
            "nxos",
            "interface port-channel5\n  switchport access vlan 10\n"
            "interface Ethernet1/5\n  channel-group 5 mode active\n",
            "ethernet1/5",
        ),
        (
            "eos",
            "interface Port-Channel5\n   switchport access vlan 10\n"
            "interface Ethernet5\n   channel-group 5 mode active\n",
            "ethernet5",
        ),
        (
            "dell",
            "interface TenGigabitEthernet 0/5\n no shutdown\n!\ninterface Port-channel 5\n switchport\n"
            " channel-member TenGigabitEthernet 0/5\n!\ninterface Vlan 10\n tagged Port-channel 5\n!\n",
            "tengigabitethernet 0/5",
        ),
    ],
)
def test_a_member_of_an_aggregate_is_in_its_vlans(kind: str, text: str, member: str, tmp_path: Path) -> None:
    described = text.replace(" no shutdown", " description array 1\n no shutdown").replace(
        "  channel-group", "  description array 1\n   channel-group"
    )
    sheet = _sheet(tmp_path, described, f"{kind}:{{}}", vlan=10)
    assert _ports(sheet) == [member]
    assert broken(judged(sheet), 29)


@pytest.mark.parametrize(
    ("kind", "lines", "edge"),
    [
        ("ios", " spanning-tree portfast edge\n", True),
        ("ios", " spanning-tree portfast network\n", False),
        ("ios", " spanning-tree portfast disable\n", False),
        ("ios", " switchport mode trunk\n spanning-tree portfast\n", False),
        ("ios", " switchport mode trunk\n spanning-tree portfast edge trunk\n", True),
        ("nxos", " switchport mode trunk\n spanning-tree port type edge\n", False),
        ("nxos", " switchport mode trunk\n spanning-tree port type edge trunk\n", True),
        ("nxos", " spanning-tree port type network\n", False),
        ("nxos", " spanning-tree port type normal\n", False),
        ("eos", " switchport mode trunk\n spanning-tree portfast\n", True),
        ("eos", " spanning-tree portfast network\n", False),
    ],
)
def test_edge_ports_of_each_grammar(kind: str, lines: str, edge: bool, tmp_path: Path) -> None:
    sheet = _sheet(tmp_path, f"interface Ethernet1/1\n{lines}", f"{kind}:{{}}")
    assert _facts(sheet, "ethernet1/1")["edge"] == edge


@pytest.mark.parametrize(
    ("description", "state"),
    [
        ("esx1 vmnic4", "broken"),
        ("storage array 1", "broken"),
        ("uplink to san-sw2", "not needed"),
        ("Core switch", "not needed"),
        ("", "unknown"),
        ("to storage switch", "unknown"),
    ],
)
def test_a_trunk_without_an_edge_line_is_judged_by_what_is_behind_it(
    description: str, state: str, tmp_path: Path
) -> None:
    lines = f" description {description}\n" if description else ""
    sheet = _sheet(tmp_path, f"{IOS}interface GigabitEthernet1/0/1\n{lines} switchport mode trunk\n")
    edge = [one for one in of_rule(judged(sheet), 48) if one.subject and one.subject.kind == "switch_port"]
    assert [one.state for one in edge] == [state]


@pytest.mark.parametrize(
    ("description", "state"),
    [
        ("SAN array port 1", "broken"),
        ("netapp-01 e0c", "broken"),
        ("domain controller 1", "not needed"),
        ("wireless controller 1 storage", "unknown"),
        ("ISL to storage-sw-2", "unknown"),
        ("esx host 4", "not needed"),
    ],
)
def test_an_aggregate_is_an_array_s_only_if_it_says_so(description: str, state: str, tmp_path: Path) -> None:
    text = f"interface GigabitEthernet1/0/1\n description {description}\n channel-group 3 mode active\n"
    result = judged(_sheet(tmp_path, IOS + text))
    found = [one for one in of_rule(result, 29) if one.subject and one.subject.kind == "switch_port"]
    assert [one.state for one in found] == [state]


def test_ports_for_management_and_subinterfaces_are_no_ports_of_the_san(tmp_path: Path) -> None:
    text = (
        "interface GigabitEthernet0/0\n vrf forwarding Mgmt-vrf\n ip address 192.0.2.1 255.255.255.0\n"
        "interface FastEthernet0\n no ip address\ninterface TenGigabitEthernet1/1/1.20\n encapsulation dot1Q 20\n"
        "interface AppGigabitEthernet1/0/1\ninterface TwentyFiveGigE1/0/1\ninterface HundredGigE1/0/49\n"
    )
    assert _ports(_sheet(tmp_path, IOS + text)) == ["twentyfivegige1/0/1", "hundredgige1/0/49"]


def test_ports_that_are_down_by_default_need_a_line_to_be_up(tmp_path: Path) -> None:
    text = "system default switchport shutdown\ninterface Ethernet1/1\n  no shutdown\ninterface Ethernet1/2\n"
    assert _ports(_sheet(tmp_path, f"{NXOS}{text}")) == ["ethernet1/1"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "nxos",
            "port-profile type ethernet SAN\n  switchport access vlan 10\n  mtu 9216\n  flowcontrol receive on\n"
            "  spanning-tree port type edge\ninterface Ethernet1/1\n  inherit port-profile SAN\n",
        ),
        (
            "ios",
            "system mtu 9198\ntemplate SAN\n switchport access vlan 10\n flowcontrol receive on\n"
            " spanning-tree portfast\ninterface Ethernet1/1\n source template SAN\n",
        ),
    ],
)
def test_a_port_has_the_lines_of_its_profile(kind: str, text: str, tmp_path: Path) -> None:
    result = judged(_sheet(tmp_path, text, f"{kind}:{{}}"))
    assert [one.rule.id for one in result.outcomes if one.state == "broken"] == []
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= {1, 2, 4, 33, 48}


N5K = """policy-map type network-qos jumbo
  class type network-qos class-default
    mtu 9216
{}interface Ethernet1/1
  switchport access vlan 10
"""


@pytest.mark.parametrize(
    ("applied", "mtu"), [("system qos\n  service-policy type network-qos jumbo\n", 9216), ("", 1500)]
)
def test_a_policy_counts_when_it_is_applied(applied: str, mtu: int, tmp_path: Path) -> None:
    sheet = _sheet(tmp_path, N5K.format(applied), "nxos:{}")
    assert _facts(sheet, "ethernet1/1")["mtu"] == mtu


@pytest.mark.parametrize(
    ("kind", "lines", "state"),
    [
        ("ios", "system mtu 9000\n", "kept"),
        ("ios", "system mtu routing 1500\nsystem mtu 9198\n", "kept"),
        ("ios", "system mtu 2000\n", "broken"),
        ("ios", "", "not needed"),
        ("nxos", "  mtu 9000\n", "kept"),
        ("nxos", "  mtu 4000\n", "broken"),
        ("dell", " mtu 9000\n switchport\n", "broken"),
        ("dell", " mtu 9216\n switchport\n", "kept"),
        ("dell", " switchport\n", "not needed"),
    ],
)
def test_an_mtu_is_judged_by_what_it_counts(kind: str, lines: str, state: str, tmp_path: Path) -> None:
    """Cisco counts the payload of a frame, Dell the whole frame; a default is not meant for jumbo frames."""
    text = f"{lines if kind == 'ios' else ''}interface Ethernet1/1\n{'' if kind == 'ios' else lines} no shutdown\n"
    result = judged(_sheet(tmp_path, text, f"{kind}:{{}}"))
    assert [one.state for one in of_rule(result, 2) if one.subject] == [state]


@pytest.mark.parametrize(
    ("mode", "pauses", "state"),
    [("auto", "  flowcontrol receive on\n", "unknown"), ("off", "  flowcontrol receive on\n", "kept")],
)
def test_pfc_that_is_negotiated_is_not_known_to_be_on(
    mode: str, pauses: str, state: str, tmp_path: Path
) -> None:
    text = (CONFIGS / "nxos_dcb.txt").read_text()
    text = text.replace("  priority-flow-control mode on\n", f"  priority-flow-control mode {mode}\n{pauses}")
    result = judged(_sheet(tmp_path, text))
    assert {one.state for one in of_rule(result, 4) if one.subject} == {state}


def test_a_dcb_map_that_is_whole_is_silent(tmp_path: Path) -> None:
    text = (
        "dcb enable\n!\ndcb-map SAN\n priority-group 0 bandwidth 50 pfc off\n priority-group 1 bandwidth 50 pfc on\n"
        " priority-pgid 0 0 0 0 1 0 0 0\n!\ninterface TenGigabitEthernet 0/1\n mtu 12000\n portmode hybrid\n"
        " switchport\n dcb-map SAN\n no shutdown\n!\ninterface Vlan 10\n tagged TenGigabitEthernet 0/1\n!\n"
    )
    result = judged(_sheet(tmp_path, text, "dell:{}"), answers=("converged=yes",))
    assert [one.text for one in result.outcomes if one.state == "broken"] == []
    assert {one.rule.number for one in result.outcomes if one.state == "kept"} >= {47, 51}
    half = judged(
        _sheet(tmp_path, text.replace("1 bandwidth 50 pfc on", "1 bandwidth 40 pfc off"), "dell:{}")
    )
    assert any("san has no priority with PFC" in text for text in broken(half, 51))
    assert any("san: 90 %" in text for text in broken(half, 51))


@pytest.mark.parametrize("kind", ["nxos_dcb", "dell_dcb"])
def test_a_policy_of_ports_that_are_left_out_is_in_use(kind: str, tmp_path: Path) -> None:
    text = (CONFIGS / f"{kind}.txt").read_text()
    more = {
        "nxos_dcb": "policy-map type queuing LAN\n  class type queuing c-out-8q-q-default\n    bandwidth percent 100\n"
        "policy-map type queuing LAN-IN\n  class type queuing c-in-q3\n    pause buffer-size 90000\n"
        "interface Ethernet1/9\n  service-policy type queuing output LAN\n  switchport access vlan 20\n",
        "dell_dcb": "dcb-map LAN\n priority-group 0 bandwidth 100 pfc off\n!\ninterface TenGigabitEthernet 0/9\n"
        " switchport\n dcb-map LAN\n shutdown\n!\n",
    }[kind]
    assert broken(judged(_sheet(tmp_path, f"{text}\n{more}", vlan=10)), 51) == []
