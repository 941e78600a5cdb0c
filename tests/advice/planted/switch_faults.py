"""Faults of switches: lines of a clean configuration that are replaced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchFault:
    """`old` of the configuration of that kind becomes `new`."""

    rule: int
    kind: str
    old: str
    new: str
    subject: str
    found: str
    mend: str
    answers: tuple[str, ...] = ()


_CONVERGED = ("converged=yes",)
_DELL, _GIG, _NX, _EOS = "tengigabitethernet 0/1", "gigabitethernet1/0/1", "ethernet1/1", "ethernet2"

FAULTS = (
    SwitchFault(
        1, "dell", " mtu 12000\n switchport\n flow", " switchport\n flow", _DELL, "1554", "mtu 12000"
    ),
    SwitchFault(1, "ios", "system mtu jumbo 9198", "", _GIG, "1500", "system mtu jumbo 9198"),
    SwitchFault(1, "eos", "description hv1", "l2 mtu 1500", "ethernet1", "1500", "mtu 9214"),
    SwitchFault(2, "nxos", "edge\n  mtu 9216\n", "edge\n  mtu 9000\n", _NX, "at least 9022", "mtu 9216"),
    SwitchFault(
        2,
        "ios",
        "system mtu jumbo 9198",
        "system mtu jumbo 9000",
        _GIG,
        "at least 9022",
        "system mtu jumbo 9198",
    ),
    SwitchFault(
        4, "dell", "rx on tx off\n spanning", "rx on tx on\n spanning", _DELL, "send: on", "rx on tx off"
    ),
    SwitchFault(4, "ios", "flowcontrol receive desired", "", _GIG, "receive: off", "flowcontrol receive on"),
    SwitchFault(
        4,
        "nxos",
        "flowcontrol receive on",
        "flowcontrol send on",
        _NX,
        "receive: off",
        "flowcontrol receive on",
    ),
    SwitchFault(
        4,
        "nxos",
        "flowcontrol receive on",
        "flowcontrol receive on\n  flowcontrol send on",
        _NX,
        "send: on",
        "flowcontrol send off",
    ),
    SwitchFault(
        4,
        "eos",
        "10\n   flowcontrol receive on\n   spanning-tree portfast\n!",
        "10\n   spanning-tree portfast\n!",
        _EOS,
        "receive: off",
        "flowcontrol receive on",
    ),
    SwitchFault(
        29,
        "ios",
        "storage controller A",
        "storage controller A\n channel-group 2 mode active",
        "gigabitethernet1/0/2",
        "aggregate: yes",
        "out of the aggregate",
    ),
    SwitchFault(
        29,
        "dell",
        "array member 1\n",
        "array member 1\n port-channel-protocol LACP\n",
        "tengigabitethernet 0/2",
        "aggregate: yes",
        "out of the aggregate",
    ),
    SwitchFault(
        33,
        "ios",
        "esx1 iscsi\n switchport access vlan 10",
        "esx1 iscsi",
        _GIG,
        "default VLAN: yes",
        "switchport access vlan 10",
    ),
    SwitchFault(
        33,
        "dell",
        " tagged TenGigabitEthernet 0/1-2\n",
        " tagged TenGigabitEthernet 0/2\n",
        _DELL,
        "default VLAN: yes",
        "interface vlan 10",
    ),
    SwitchFault(
        47,
        "dell",
        "pfc priority 4",
        "pfc priority 3-4",
        "mxl-a1",
        "3,4; wanted: 4",
        "pfc priority 4",
        _CONVERGED,
    ),
    SwitchFault(
        47,
        "dell",
        "bandwidth-percentage 50\n!\nqos-policy-output OTHER",
        "bandwidth-percentage 20\n!\nqos-policy-output OTHER",
        "mxl-a1",
        "20 %",
        "bandwidth-percentage 50",
        _CONVERGED,
    ),
    SwitchFault(
        47, "nxos", "    pause pfc-cos 4\n", "", "n9k-san-1", "none; wanted: 4", "pause pfc-cos 4", _CONVERGED
    ),
    SwitchFault(
        47,
        "nxos",
        "iscsi\n    bandwidth percent 50",
        "iscsi\n    bandwidth percent 30",
        "n9k-san-1",
        "30 %",
        "bandwidth percent 50",
        _CONVERGED,
    ),
    SwitchFault(
        47,
        "eos",
        "priority 4 no-drop",
        "priority 3 no-drop",
        "arista-san-1",
        "3; wanted: 4",
        "priority 4 no-drop",
        _CONVERGED,
    ),
    SwitchFault(48, "dell", " spanning-tree rstp edge-port\n", "", _DELL, "edge port: no", "rstp edge-port"),
    SwitchFault(48, "ios", " spanning-tree portfast\n", "", _GIG, "edge port: no", "spanning-tree portfast"),
    SwitchFault(48, "nxos", "  spanning-tree port type edge\n", "", _NX, "edge port: no", "port type edge"),
    SwitchFault(
        48,
        "eos",
        "on\n   spanning-tree portfast\n!",
        "on\n!",
        _EOS,
        "edge port: no",
        "spanning-tree portfast",
    ),
    SwitchFault(
        48,
        "dell",
        "Port-channel 1\n no ip address\n mtu 12000",
        "Port-channel 1\n no ip address\n mtu 9216",
        "port-channel 1",
        "at least 12000",
        "mtu 12000",
    ),
    SwitchFault(
        48,
        "nxos",
        "trunk\n  mtu 9216\n\ninterface Ethernet1/1",
        "trunk\n  mtu 1500\n\ninterface Ethernet1/1",
        "port-channel1",
        "1500 bytes",
        "mtu 9216",
    ),
)
