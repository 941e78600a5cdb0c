"""DCB of Arista EOS: priority flow control and queues, both of a port.

Source: Arista EOS User Manual, chapters DCBX and Flow Control, and Quality of Service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linerate.advice.switch.classes import PortPfc, SwitchDcb, percent, priorities
from linerate.advice.switch.config import ConfigBlock, SwitchConfig

_ON = ("priority-flow-control on", "priority-flow-control mode on")
_QUEUES = ("tx-queue ", "uc-tx-queue ")
_SHARE = "bandwidth percent "
_QUEUE_COUNT = 8


def eos_dcb(config: SwitchConfig, ports: Mapping[str, ConfigBlock], priority: str) -> SwitchDcb:
    """DCB of these ports. `priority` is that of iSCSI."""
    del config
    shares = {name: dict(_shares(port)) for name, port in ports.items()}
    of_iscsi = [mine[priority] for mine in shares.values() if priority in mine]
    return SwitchDcb(
        {name: _port(port) for name, port in ports.items()},
        schedules={name: _all_queues(mine) for name, mine in shares.items() if mine},
        iscsi_share_percent=min(of_iscsi, default=None),
    )


def _port(port: ConfigBlock) -> PortPfc:
    texts = [text for text in port.values("priority-flow-control priority") if text.endswith("no-drop")]
    no_drop = frozenset(one for text in texts for one in priorities(text))
    on = any(port.has(line) for line in _ON)
    if on and not no_drop:
        return PortPfc("on", missing="no priority is no-drop (priority-flow-control priority N no-drop)")
    if no_drop and not on:
        return PortPfc("off", no_drop, "it is off (priority-flow-control on)")
    return PortPfc("on", no_drop) if on else PortPfc("off")


def _shares(port: ConfigBlock) -> Iterator[tuple[str, int]]:
    """Queue -> its share. The default maps send priority 2 and more to the queue of that number."""
    queue = ""
    for line in port.lines:
        if line.startswith(_QUEUES):
            queue = line.split()[1]
        elif queue and line.startswith(_SHARE):
            share = percent(line.removeprefix(_SHARE))
            if share is not None:
                yield queue, share


def _all_queues(shares: Mapping[str, int]) -> list[int | None]:
    """Queues without a share get the rest."""
    return [*shares.values(), *([None] if len(shares) < _QUEUE_COUNT else [])]
