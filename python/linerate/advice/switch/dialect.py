"""What the configuration of a port means, by maker: Cisco IOS and NX-OS, Dell OS9 (FTOS), Arista EOS.

Sources: the command references of Catalyst IOS 15, Nexus NX-OS 9, Dell Networking OS 9.14, Arista EOS 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from linerate.advice.facts import System
from linerate.advice.switch.config import ConfigBlock, SwitchConfig
from linerate.advice.switch.nxos_dcb import applied_policies


@dataclass(frozen=True, slots=True)
class SwitchDialect:
    """How one kind of configuration says what the rules ask. Lines are in lower case.

    `marks` are patterns that such a configuration has, each in a line of its own. `mtu_wanted` is the MTU in bytes that
    a link aggregate should have there, `mtu_default` that of a port as it comes. `header_bytes` are those of headers
    and check sequence that an MTU counts there. `pause` writes the lines of a port that obeys pause frames (first
    argument) and sends them (second).
    """

    system: System
    name: str
    marks: tuple[str, ...]
    mtu_wanted: int
    mtu_default: int
    header_bytes: int
    mtu: Callable[[SwitchConfig, ConfigBlock], int]
    flow_control: Callable[[ConfigBlock], tuple[str, str]]
    edge: Callable[[SwitchConfig, ConfigBlock], bool]
    pause: Callable[[bool, bool], tuple[str, ...]]


def _number(text: str | None) -> int | None:
    match = re.match(r"\d{1,6}", text or "")
    return int(match[0]) if match else None


def _ios_mtu(config: SwitchConfig, port: ConfigBlock) -> int:
    """Per port on some models; else one value for the whole switch, which the last start has applied."""
    of_switch = [*_values(config, "system mtu jumbo"), *_values(config, "system mtu")]
    found = [mtu for text in (port.value("mtu"), *of_switch) if (mtu := _number(text)) is not None]
    return next(iter(found), 1500)


def _values(config: SwitchConfig, start: str) -> Iterator[str]:
    return (rest for rest, _ in config.headed(start))


def _nxos_mtu(config: SwitchConfig, port: ConfigBlock) -> int:
    """Per port. Nexus 3000 and 5000 have it in the default class of the network-qos policy of the switch."""
    if (mtu := _number(port.value("mtu"))) is not None:
        return mtu
    applied = set(applied_policies(config, "type network-qos"))
    policies = [block for name, block in config.headed("policy-map type network-qos") if name in applied]
    found = [mtu for policy in policies if (mtu := _default_class_mtu(policy)) is not None]
    return max(found, default=1500)


def _default_class_mtu(policy: ConfigBlock) -> int | None:
    inside = False
    for line in policy.lines:
        if line.startswith("class "):
            inside = line.endswith(" class-default")
        elif inside and line.startswith("mtu "):
            return _number(line.removeprefix("mtu "))
    return None


def _dell_mtu(config: SwitchConfig, port: ConfigBlock) -> int:
    """Per port; it counts the Ethernet header, a VLAN tag and the check sequence, and is 1554 by default."""
    del config
    return _number(port.value("mtu")) or 1554


def _eos_mtu(config: SwitchConfig, port: ConfigBlock) -> int:
    """`mtu` is of the IP interface; a port that switches carries 9214 bytes unless `l2 mtu` says less."""
    if port.has("no switchport"):
        return _number(port.value("mtu")) or 1500
    return _number(port.value("l2 mtu")) or _number(config.value("default l2 mtu")) or 9214


def _receive_and_send(port: ConfigBlock) -> tuple[str, str]:
    receive, send = (port.value(f"flowcontrol {way}") or "off" for way in ("receive", "send"))
    return ("off" if receive == "off" else "on"), ("off" if send == "off" else "on")


def _rx_and_tx(port: ConfigBlock) -> tuple[str, str]:
    words = (port.value("flowcontrol") or "rx off tx off").split()
    given = dict(zip(words[::2], words[1::2], strict=False))
    return given.get("rx", "off"), given.get("tx", "off")


def _on_off(value: bool) -> str:
    return "on" if value else "off"


def _write_receive(receive: bool, send: bool) -> tuple[str, ...]:
    """Catalyst switches do not send pause frames."""
    del send
    return (f"flowcontrol receive {_on_off(receive)}",)


def _write_receive_and_send(receive: bool, send: bool) -> tuple[str, ...]:
    return (*_write_receive(receive, send), f"flowcontrol send {_on_off(send)}")


def _write_rx_and_tx(receive: bool, send: bool) -> tuple[str, ...]:
    return (f"flowcontrol rx {_on_off(receive)} tx {_on_off(send)}",)


def _portfast(config: SwitchConfig, port: ConfigBlock) -> bool:
    """A trunk needs the word trunk; without it the line is without effect there."""
    default = config.says("spanning-tree portfast default") or config.says(
        "spanning-tree portfast edge default"
    )
    trunk = port.has("switchport mode trunk")
    said = port.value("spanning-tree portfast")
    if port.has("no spanning-tree portfast"):
        return False
    if said is None:
        return default and not trunk
    return said not in ("disable", "network") and (not trunk or "trunk" in said)


def _eos_edge(config: SwitchConfig, port: ConfigBlock) -> bool:
    off = config.says("spanning-tree mode none") or config.says("no spanning-tree")
    said = port.value("spanning-tree portfast")
    if off or said is not None:
        return off or said != "network"
    return config.says("spanning-tree edge-port default") and not port.has("no spanning-tree portfast")


def _port_type_edge(config: SwitchConfig, port: ConfigBlock) -> bool:
    """A trunk needs the word trunk, as with Cisco IOS."""
    trunk = port.has("switchport mode trunk")
    said = port.value("spanning-tree port type")
    if said is None:
        return config.says("spanning-tree port type edge default") and not trunk
    return said == "edge trunk" or (said == "edge" and not trunk)


def _dell_edge(config: SwitchConfig, port: ConfigBlock) -> bool:
    """Spanning tree is off unless a protocol block turns it on; then the port needs a word."""
    on = [block for _, block in config.headed("protocol spanning-tree") if block.has("no disable")]
    kinds = ("rstp", "mstp", "pvst")
    return (
        not on
        or any(port.has(f"spanning-tree {kind} edge-port") for kind in kinds)
        or any(text.endswith("portfast") for text in port.values("spanning-tree"))
    )


IOS = SwitchDialect(
    "ios",
    "Cisco IOS",
    (
        r"building configuration",
        r"interface (?:ten)?gigabitethernet\d+/\d+",
        r"system mtu",
        r"service timestamps",
        r"switchport mode access",
    ),
    9000,
    1500,
    0,
    _ios_mtu,
    _receive_and_send,
    _portfast,
    _write_receive,
)
NXOS = SwitchDialect(
    "nxos",
    "Cisco NX-OS",
    (
        r"!command: show running-config",
        r"feature [\w-]+$",
        r"vdc .*id \d",
        r"interface ethernet\d+/\d+",
        r"spanning-tree port type",
        r"policy-map type ",
    ),
    9216,
    1500,
    0,
    _nxos_mtu,
    _receive_and_send,
    _port_type_edge,
    _write_receive_and_send,
)
DELL = SwitchDialect(
    "dell",
    "Dell OS9 (FTOS)",
    (
        r"current configuration \.\.\.",
        r"! version \d+[.(]",
        r"interface (?:range )?(?:tengigabitethernet|fortygige|gigabitethernet|port-channel) \d",
        r"stack-unit \d",
        r"flowcontrol rx",
        r"dcb",
    ),
    12000,
    1554,
    22,
    _dell_mtu,
    _rx_and_tx,
    _dell_edge,
    _write_rx_and_tx,
)
EOS = SwitchDialect(
    "eos",
    "Arista EOS",
    (
        r"! device: .*eos",
        r"! boot system flash:",
        r"interface ethernet\d+$",
        r"transceiver qsfp",
        r"management api",
        r"spanning-tree mode mstp",
    ),
    9214,
    1500,
    22,
    _eos_mtu,
    _receive_and_send,
    _eos_edge,
    _write_receive_and_send,
)
DIALECTS = (IOS, NXOS, DELL, EOS)
