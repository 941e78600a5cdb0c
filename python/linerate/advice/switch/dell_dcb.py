"""DCB of Dell OS9 (FTOS): a DCB map on a port, or policies for input and output, or priorities of the port itself.

Source: Dell Networking OS 9 Configuration Guides for the S4048-ON, S4820T and S6000 (Data Center Bridging).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from linerate.advice.switch.classes import PortPfc, SwitchDcb, percent, priorities
from linerate.advice.switch.config import ConfigBlock, SwitchConfig

_OFF = PortPfc("off")


def dell_dcb(config: SwitchConfig, ports: Mapping[str, ConfigBlock], priority: str) -> SwitchDcb:
    """DCB of these ports. `priority` is that of iSCSI."""
    maps = dict(config.headed("dcb-map"))
    inputs = dict(config.headed("dcb-input"))
    outputs = dict(config.headed("dcb-output"))
    off = config.says("no dcb enable")
    everywhere = config.interfaces.values()
    found = {name: _port(port, maps, inputs, off) for name, port in ports.items()}
    unused = [
        f"{line} {name}"
        for kind, line in ((maps, "dcb-map"), (inputs, "dcb-policy input"), (outputs, "dcb-policy output"))
        for name in kind
        if not any(port.value(line) == name for port in everywhere)
    ]
    shares = {name: list(_shares_of_map(block)) for name, block in maps.items()}
    shares |= {name: list(_shares_of_output(config, block)) for name, block in outputs.items()}
    of_iscsi = [
        share for mine in shares.values() for group, share in mine if priority in group and share is not None
    ]
    return SwitchDcb(
        found,
        unused,
        {name: [share for _, share in mine] for name, mine in shares.items() if mine},
        min(of_iscsi, default=None),
    )


def _port(
    port: ConfigBlock, maps: Mapping[str, ConfigBlock], inputs: Mapping[str, ConfigBlock], off: bool
) -> PortPfc:
    name = port.value("dcb-map") or port.value("dcb-policy input")
    if name is not None:
        kind = maps if port.has("dcb-map") else inputs
        if name not in kind:
            return PortPfc("on", missing=f"the policy {name} is not in this configuration")
        block = kind[name]
        if block.has("no pfc mode"):
            return _OFF
        no_drop = _no_drop_of_map(block) if kind is maps else _no_drop(block)
        found = PortPfc("on", no_drop, "" if no_drop else f"{name} has no priority with PFC")
    elif no_drop := _no_drop(port):
        found = PortPfc("on", no_drop)
    else:
        return _OFF
    return PortPfc("on", found.no_drop, "DCB is off for the whole switch (no dcb enable)") if off else found


def _no_drop(block: ConfigBlock) -> frozenset[str]:
    return frozenset(one for text in block.values("pfc priority") for one in priorities(text))


def _groups(block: ConfigBlock) -> Iterator[tuple[str, str]]:
    """Priorities of each group of a DCB map as digits, and what the group's line says."""
    numbers = (block.value("priority-pgid") or "").split()
    for text in block.values("priority-group"):
        number, _, rest = text.partition(" ")
        yield "".join(str(at) for at, group in enumerate(numbers) if group == number), rest


def _no_drop_of_map(block: ConfigBlock) -> frozenset[str]:
    return frozenset(one for group, rest in _groups(block) if "pfc on" in rest for one in group)


def _shares_of_map(block: ConfigBlock) -> Iterator[tuple[str, int | None]]:
    """Priorities of each group, and its share. A group with strict priority takes no part."""
    for group, rest in _groups(block):
        if "strict-priority" not in rest:
            match = re.search(r"bandwidth (\d{1,3})\b", rest)
            yield group, int(match[1]) if match else None


def _shares_of_output(config: SwitchConfig, block: ConfigBlock) -> Iterator[tuple[str, int | None]]:
    """Group -> its policy -> its share."""
    lists = {name: one.value("priority-list") or "" for name, one in config.headed("priority-group")}
    policies = {
        name.partition(" ")[0]: percent(one.value("bandwidth-percentage"))
        for name, one in config.headed("qos-policy-output")
    }
    for text in block.values("priority-group"):
        group, _, rest = text.partition(" qos-policy ")
        yield "".join(sorted(priorities(lists.get(group, "")))), policies.get(rest.partition(" ")[0])
