"""Priorities with PFC, and the share of the iSCSI class, in a switch configuration."""

from __future__ import annotations

import re

from linerate.advice.facts import FactValue
from linerate.advice.switch.config import ConfigBlock, SwitchConfig

ISCSI_PRIORITY = "4"
"""What DCB tools give to iSCSI where nothing else is agreed (seed 001, line 437)."""
_NUMBERS = re.compile(r"(\d)(?:\s*-\s*(\d))?")


def lossless_facts(system: str, config: SwitchConfig) -> tuple[dict[str, FactValue], dict[str, str]]:
    """`pfc_priorities` (a text such as 4 or 3,4 or none) and `iscsi_share_percent`, and what cannot be known."""
    facts: dict[str, FactValue] = {"iscsi_priority": ISCSI_PRIORITY}
    if system == "ios":
        reason = "IOS has no priority flow control; a converged SAN needs another switch or ports of its own"
        return facts, {"pfc_priorities": reason, "iscsi_share_percent": reason}
    priorities, share = {"dell": _dell, "nxos": _nxos, "eos": _eos}[system](config)
    facts["pfc_priorities"] = ",".join(sorted(priorities)) or "none"
    if share is None:
        return facts, {"iscsi_share_percent": "no class of the configuration can be told to be that of iSCSI"}
    return {**facts, "iscsi_share_percent": share}, {}


def _priorities(text: str) -> set[str]:
    """The digits of a list such as `0-3,5-7`."""
    found: set[str] = set()
    for first, last in _NUMBERS.findall(text):
        found |= {str(number) for number in range(int(first), int(last or first) + 1)}
    return found


def _percent(text: str | None) -> int | None:
    match = re.match(r"\d{1,3}\b", text or "")
    return int(match[0]) if match else None


def _dell(config: SwitchConfig) -> tuple[set[str], int | None]:
    priorities: set[str] = set()
    for _, block in config.headed("dcb-input"):
        for text in block.values("pfc priority"):
            priorities |= _priorities(text)
    share = _dell_share(config)
    for _, block in config.headed("dcb-map"):
        groups = (block.value("priority-pgid") or "").split()
        for text in block.values("priority-group"):
            number, _, rest = text.partition(" ")
            mine = {str(at) for at, group in enumerate(groups) if group == number}
            if "pfc on" in rest:
                priorities |= mine
            if ISCSI_PRIORITY in mine and (match := re.search(r"bandwidth (\d{1,3})\b", rest)):
                share = int(match[1])
    return priorities, share


def _dell_share(config: SwitchConfig) -> int | None:
    """The group with the iSCSI priority -> its policy -> its bandwidth."""
    for group, block in config.headed("priority-group"):
        if ISCSI_PRIORITY not in _priorities(block.value("priority-list") or ""):
            continue
        for _, output in config.headed("dcb-output"):
            policy = (output.value(f"priority-group {group} qos-policy") or "").partition(" ")[0]
            for name, qos in config.headed("qos-policy-output"):
                if policy and name.partition(" ")[0] == policy:
                    return _percent(qos.value("bandwidth-percentage"))
    return None


def _nxos(config: SwitchConfig) -> tuple[set[str], int | None]:
    priorities: set[str] = set()
    share = None
    for _, block in config.headed("policy-map type network-qos"):
        for text in block.values("pause pfc-cos"):
            priorities |= _priorities(text)
    for _, block in config.headed("policy-map type queuing"):
        inside = False
        for line in block.lines:
            if line.startswith("class type queuing "):
                inside = "iscsi" in line
            elif inside and line.startswith("bandwidth percent "):
                share = _percent(line.removeprefix("bandwidth percent "))
    return priorities, share


def _eos(config: SwitchConfig) -> tuple[set[str], int | None]:
    priorities: set[str] = set()
    shares: set[int] = set()
    for block in (*config.interfaces().values(), ConfigBlock("", [one.head for one in config.blocks])):
        for text in block.values("priority-flow-control priority"):
            if text.endswith("no-drop"):
                priorities |= _priorities(text)
        inside = False
        for line in block.lines:
            if line.startswith(("tx-queue ", "uc-tx-queue ")):
                inside = line.split()[1] == ISCSI_PRIORITY
            elif inside and line.startswith("bandwidth percent "):
                shares |= (
                    {percent} if (percent := _percent(line.removeprefix("bandwidth percent "))) else set()
                )
    return priorities, min(shares, default=None)
