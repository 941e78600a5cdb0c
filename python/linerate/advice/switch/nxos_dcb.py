"""DCB of Cisco NX-OS: no-drop classes of the whole switch, a mode for each port, queuing policies.

Sources: Cisco Nexus 9000 Series NX-OS Quality of Service Configuration Guide (Configuring Priority Flow Control,
Configuring Queuing and Scheduling); Cisco Nexus 5000 Series NX-OS Quality of Service Configuration Guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from linerate.advice.switch.classes import PortPfc, SwitchDcb, percent, priorities
from linerate.advice.switch.config import ConfigBlock, SwitchConfig

_NETWORK, _QUEUING = "type network-qos", "type queuing"
_OWN_GROUP = re.compile(r"c-(?:\dq-nq|out-(?:\dq-)?q)(\d)")
"""Classes that the switch comes with, by the number of their group."""
_OF_THE_SWITCH = ("default-", "fcoe-default-")
"""Begin the names of policies that the switch comes with."""
_PAUSES = ("pause pfc-cos", "pause no-drop")
_BUILT_IN = {"fcoe-default-nq-policy": frozenset("3")}
"""No-drop priorities of policies that no configuration shows (Nexus 5000)."""


def nxos_dcb(config: SwitchConfig, ports: Mapping[str, ConfigBlock], priority: str) -> SwitchDcb:
    """DCB of these ports. `priority` is that of iSCSI."""
    applied = set(applied_policies(config, _NETWORK))
    no_drop = {name: _no_drop(config, block) for name, block in config.headed(f"policy-map {_NETWORK}")}
    known = {**_BUILT_IN, **no_drop}
    acting = frozenset(one for name in applied for one in known.get(name, ()))
    unused = [
        f"policy-map {_NETWORK} {name} (no service-policy below system qos)"
        for name, mine in no_drop.items()
        if mine and name not in applied
    ]
    queuing = {name: dict(_shares(block)) for name, block in config.headed(f"policy-map {_QUEUING}")}
    used = set(_queuing_in_use(config))
    unused += [
        f"policy-map {_QUEUING} {name} (no service-policy)"
        for name, mine in queuing.items()
        if any(mine.values()) and name not in used and not name.startswith(_OF_THE_SWITCH)
    ]
    schedules = {name: mine for name, mine in queuing.items() if name in used and any(mine.values())}
    return SwitchDcb(
        {name: _port(port, acting) for name, port in ports.items()},
        unused,
        {name: list(mine.values()) for name, mine in schedules.items()},
        _iscsi_share(config, schedules, priority),
    )


def applied_policies(config: SwitchConfig, kind: str) -> Iterator[str]:
    """Policies of the whole switch: those below `system qos`."""
    for _, block in config.headed("system qos"):
        yield from block.values(f"service-policy {kind}")


def _queuing_in_use(config: SwitchConfig) -> Iterator[str]:
    """Names of policies of the switch and of any port, for input and output."""
    for text in applied_policies(config, _QUEUING):
        yield text.rpartition(" ")[2]
    for port in config.interfaces.values():
        for text in port.values(f"service-policy {_QUEUING}"):
            yield text.rpartition(" ")[2]


def _port(port: ConfigBlock, acting: frozenset[str]) -> PortPfc:
    mode = (port.value("priority-flow-control mode") or "auto").partition(" ")[0]
    if mode == "off":
        return PortPfc("off")
    if mode == "on":
        missing = (
            "" if acting else "no network-qos policy below system qos has a no-drop class (pause pfc-cos)"
        )
        return PortPfc("on", acting, missing)
    return PortPfc("negotiated", acting) if acting else PortPfc("off")


def _no_drop(config: SwitchConfig, policy: ConfigBlock) -> frozenset[str]:
    """Priorities of its no-drop classes."""
    found: set[str] = set()
    name = ""
    for line in policy.lines:
        if line.startswith(f"class {_NETWORK} "):
            name = line.removeprefix(f"class {_NETWORK} ")
        elif line.startswith(_PAUSES):
            given = line.partition("pfc-cos")[2]
            found |= priorities(given) if given else _of_group(config, _group(config, _NETWORK, name))
    return frozenset(found)


def _group(config: SwitchConfig, kind: str, name: str) -> str:
    """The group of a class: in the name of a class that the switch comes with, else in its class map."""
    if own := _OWN_GROUP.fullmatch(name):
        return own[1]
    for head, block in config.headed(f"class-map {kind}"):
        if head.split()[-1] == name:
            return block.value("match qos-group") or ""
    return ""


def _of_group(config: SwitchConfig, group: str) -> frozenset[str]:
    """Priorities that policies of type qos put into a group."""
    found: set[str] = set()
    classes = {head.split()[-1]: block for head, block in config.headed("class-map type qos") if head}
    for _, policy in config.headed("policy-map type qos"):
        name = ""
        for line in policy.lines:
            if line.startswith("class "):
                name = line.split()[-1]
            elif group and line == f"set qos-group {group}" and name in classes:
                found |= priorities(classes[name].value("match cos") or "")
    return frozenset(found)


def _shares(policy: ConfigBlock) -> Iterator[tuple[str, int | None]]:
    """Class -> its share. A class with strict priority takes no part."""
    name, share, strict = "", None, False
    for line in (*policy.lines, f"class {_QUEUING} "):
        if line.startswith(f"class {_QUEUING} "):
            if name and not strict:
                yield name, share
            name, share, strict = line.removeprefix(f"class {_QUEUING} "), None, False
        elif line.startswith("bandwidth "):
            share = percent(line.rpartition("percent ")[2])
        elif line.startswith("priority"):
            strict = True


def _iscsi_share(
    config: SwitchConfig, schedules: Mapping[str, Mapping[str, int | None]], priority: str
) -> int | None:
    """The smallest share of a class that has the iSCSI priority, or iSCSI in its name."""
    found = [
        share
        for mine in schedules.values()
        for name, share in mine.items()
        if share is not None
        and ("iscsi" in name or priority in _of_group(config, _group(config, _QUEUING, name)))
    ]
    return min(found, default=None)
