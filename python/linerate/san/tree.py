"""A topology as text, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from linerate.san.labels import (
    array_labels,
    interface_labels,
    lan_labels,
    place_labels,
    port_labels,
    switch_labels,
    trunk_labels,
)
from linerate.san.model import Array, Node, Port, Topology

_FORK, _LAST, _DOWN, _GAP = "\u251c\u2500 ", "\u2514\u2500 ", "\u2502  ", "   "


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the tree: cells that are aligned among brothers, a remark after them."""

    cells: tuple[str, ...]
    remark: str = ""


def tree(topology: Topology, utilisation: Mapping[str, float] | None = None) -> str:
    """The topology as a tree of hosts, switches, arrays, trunks and LAN traffic.

    `utilisation` holds, by link name, how much of the line was used (0 to 1); what it does not hold is not shown.
    """
    used = utilisation or {}
    parts = [_node_part(node, used) for node in topology.hosts]
    parts += [
        (f"switch {switch.name}  {', '.join(switch_labels(switch))}", []) for switch in topology.switches
    ]
    parts += [
        (f"trunk {trunk.name}  {trunk.a} - {trunk.b}  {_link(trunk_labels(trunk), trunk.name, used)}", [])
        for trunk in topology.trunks
    ]
    parts += [_node_part(node, used) for node in topology.arrays]
    parts += [
        (f"LAN {stream.name}  {stream.source} -> {stream.sink}  {lan_labels(stream)}", [])
        for stream in topology.lan
    ]
    lines = [topology.name + (f": {topology.description}" if topology.description else "")]
    for number, (head, rows) in enumerate(parts, start=1):
        last = number == len(parts)
        lines.append((_LAST if last else _FORK) + head)
        indent = _GAP if last else _DOWN
        texts = _aligned(rows)
        lines += [
            indent + (_LAST if place == len(texts) else _FORK) + text
            for place, text in enumerate(texts, start=1)
        ]
    return "\n".join(lines)


def _node_part(node: Node, used: Mapping[str, float]) -> tuple[str, list[_Row]]:
    head = (
        f"array {node.name}  {', '.join(array_labels(node))}, {node.target}"
        if isinstance(node, Array)
        else f"host {node.name}"
    )
    return head, [row for port in node.ports for row in _port_rows(node, port, used)]


def _port_rows(node: Node, port: Port, used: Mapping[str, float]) -> list[_Row]:
    name = f"{node.name}.{port.name}"
    link = _link([*port_labels(node, port), *place_labels(node, port)], name, used)
    first, *others = port.interfaces
    if first.name == port.name and not others:
        remark = ", ".join([link, *interface_labels(first)])
        return [_Row((port.name, first.address, f"- {port.switch}"), remark)]
    return [
        _Row((port.name, "", f"- {port.switch}"), link),
        *(
            _Row((f"{port.name}/{inside.name}", inside.address), ", ".join(interface_labels(inside)))
            for inside in port.interfaces
        ),
    ]


def _link(words: list[str], name: str, used: Mapping[str, float]) -> str:
    return ", ".join([*words, f"{used[name]:.0%} used"] if name in used else words)


def _aligned(rows: list[_Row]) -> list[str]:
    columns = max((len(row.cells) for row in rows), default=0)
    cells = [(*row.cells, *[""] * (columns - len(row.cells))) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(columns)]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(texts, widths, strict=True)), row.remark]
        ).rstrip()
        for texts, row in zip(cells, rows, strict=True)
    ]
