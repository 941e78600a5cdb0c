"""A topology as a drawing: hosts on the left, switches in the middle, arrays on the right, a curve for each link.

One SVG serves a page and a file of its own, light, dark and paper: it brings its colours along and follows the reader's
preference. Nothing in it refers to the outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from linerate.san.labels import (
    array_labels,
    interface_labels,
    lan_labels,
    place_labels,
    port_labels,
    switch_labels,
    trunk_labels,
)
from linerate.san.model import Array, Link, Node, Port, Topology

_MARGIN = 16.0
_WIDTH = 1000.0
_NODE_WIDTH = 232.0
_SWITCH_WIDTH = 170.0
_HEAD = 24.0
"""Height of a box's name line, and of its second line in small print."""
_NOTE = 15.0
_ROW = 26.0
"""Height of a port, and what a second line at its link adds."""
_SECOND = 10.0
_PLACE = 40.0
"""Where controller and portal group stand in the row of an array's port."""
_INSIDE = 17.0
"""Height of an interface that shares a port."""
_GAP = 22.0
_TRUNK_GAP = 52.0
_TITLE = 58.0
_LAN_STEP = 18.0
_STRAIGHT = 112.0
"""A link runs straight this far, below its text, before it bends."""

_LIGHT = (
    "--page:#fdfdfc;--ink:#1c2024;--muted:#68707a;--rule:#b9bfc6;--soft:#f2f4f6;--busy:#2f6db3;--void:#b3312c"
)
_DARK = (
    "--page:#15181b;--ink:#e3e6e9;--muted:#98a1ab;--rule:#4b535b;--soft:#1f2428;--busy:#6ea8e6;--void:#ef7d76"
)
_PAPER = "--page:#fff;--ink:#000;--muted:#555;--rule:#999;--soft:#f6f6f6;--busy:#1f5fa8;--void:#9b231f"
_STYLE = f"""
.san{{{_LIGHT};font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}}
@media (prefers-color-scheme:dark){{.san{{{_DARK}}}}}
@media print{{.san{{{_PAPER}}}}}
.san text{{fill:var(--ink)}} .san .s{{fill:var(--muted);font-size:10.5px}} .san .t{{font-size:15px;font-weight:600}}
.san .n{{font-weight:600}} .san .e{{text-anchor:end}} .san .m{{text-anchor:middle}}
.san .back{{fill:var(--page)}} .san .box{{fill:var(--soft);stroke:var(--rule)}} .san .port{{fill:var(--ink)}}
.san .link{{fill:none;stroke:var(--rule);stroke-width:1.5}} .san .busy{{stroke:var(--busy)}}
.san .down{{stroke:var(--void);stroke-dasharray:5 4}} .san .arrow{{fill:var(--muted)}}
.san .lan{{fill:none;stroke:var(--muted);stroke-dasharray:2 3}}
.san .halo{{paint-order:stroke;stroke:var(--page);stroke-width:4px;stroke-linejoin:round}}
"""


@dataclass(slots=True)
class _Box:
    """A rectangle with a name, small print, and rows that links start from."""

    name: str
    notes: Sequence[str]
    width: float
    rows: float = 0.0
    """Height of the part below the small print."""
    gap: float = _GAP
    """Room below."""
    x: float = 0.0
    y: float = 0.0

    @property
    def head(self) -> float:
        """Height of name and small print."""
        return _HEAD + _NOTE * len(self.notes) + (4.0 if self.notes else 0.0)

    @property
    def height(self) -> float:
        return self.head + self.rows + 4.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(slots=True)
class _End:
    """The end of a link at a host's or an array's port, and where it meets the switch."""

    node: Node
    port: Port
    x: float
    """Edge of the box."""
    y: float
    left: bool
    meets: float = 0.0
    """Height at which the link reaches the switch."""

    @property
    def name(self) -> str:
        return f"{self.node.name}.{self.port.name}"


@dataclass(slots=True)
class _Drawing:
    """Elements in the order in which they are painted."""

    used: Mapping[str, float]
    lines: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        kind = f' class="{style}"' if style else ""
        self.labels.append(f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{escape(text)}</text>')

    def box(self, box: _Box) -> None:
        self.shapes.append(
            f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="5"/>'
        )
        self.text(box.x + 10, box.y + 17, box.name, "n")
        for number, note in enumerate(box.notes):
            self.text(box.x + 10, box.y + _HEAD + 9 + number * _NOTE, note, "s")

    def curve(self, path: str, name: str, link: Link) -> None:
        """A link; its width shows how much of it was used."""
        share = self.used.get(name)
        kind = "link" if link.up else "link down"
        if share is None:
            self.lines.append(f'<path class="{kind}" d="{path}"/>')
            return
        width = 1.5 + 5 * min(max(share, 0.0), 1.0)
        self.lines.append(f'<path class="{kind} busy" style="stroke-width:{width:.1f}px" d="{path}"/>')


def picture(topology: Topology, utilisation: Mapping[str, float] | None = None) -> str:
    """The topology as an `<svg>` element.

    `utilisation` holds, by link name, how much of the line was used (0 to 1): it sets the width of the curves.
    """
    drawing = _Drawing(utilisation or {})
    lan_room = _LAN_STEP * len(topology.lan)
    left = [_node_box(host, drawing.used) for host in topology.hosts]
    right = [_node_box(array, drawing.used) for array in topology.arrays]
    middle = [_switch_box(topology, switch.name) for switch in topology.switches]
    tallest = max(_stack_height(column) for column in (left, middle, right))
    height = _TITLE + tallest + _MARGIN + lan_room
    switch_x = (_WIDTH + lan_room - _SWITCH_WIDTH) / 2
    for column, x in (
        (left, _MARGIN + lan_room),
        (middle, switch_x),
        (right, _WIDTH - _MARGIN - _NODE_WIDTH),
    ):
        _stack(column, x, tallest)
    ends = _ends(topology, drawing, left, right)
    _meet(topology, ends, middle)
    for end in ends:
        _draw_link(drawing, end, switch_x)
    _draw_trunks(topology, drawing, {box.name: box for box in middle})
    _draw_lan(topology, drawing, {box.name: box for box in left}, _TITLE + tallest + _MARGIN)
    for box in (*left, *middle, *right):
        drawing.box(box)
    drawing.text(_MARGIN, 24, topology.name, "t")
    drawing.text(_MARGIN, 40, topology.description, "s")
    body = "".join((*drawing.lines, *drawing.shapes, *drawing.labels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="san" role="img" viewBox="0 0 {_WIDTH:.0f} {height:.0f}">'
        f"<title>{escape(topology.name)}</title><style>{_STYLE}</style>"
        f'<rect class="back" width="{_WIDTH:.0f}" height="{height:.0f}"/>{body}</svg>'
    )


def _node_box(node: Node, used: Mapping[str, float]) -> _Box:
    notes = array_labels(node) if isinstance(node, Array) else []
    return _Box(node.name, notes, _NODE_WIDTH, sum(_port_height(node, port, used) for port in node.ports))


def _port_height(node: Node, port: Port, used: Mapping[str, float]) -> float:
    inside = _INSIDE * len(port.interfaces) if _shared(port) else 0.0
    return _ROW + max(inside, _SECOND if len(_words(node, port, used)) > 2 else 0.0)


def _words(node: Node, port: Port, used: Mapping[str, float]) -> list[str]:
    """The label of a link: rate and MTU, then its other settings."""
    words = port_labels(node, port)
    if (share := used.get(f"{node.name}.{port.name}")) is not None:
        words.insert(2, f"{share:.0%} used")
    return words if _shared(port) else [*words, *interface_labels(port.interfaces[0])]


def _shared(port: Port) -> bool:
    return len(port.interfaces) > 1 or port.interfaces[0].name != port.name


def _switch_box(topology: Topology, name: str) -> _Box:
    def count(nodes: Sequence[Node]) -> int:
        return sum(port.switch == name for node in nodes for port in node.ports)

    ports = max(count(topology.hosts), count(topology.arrays), 1)
    gap = _TRUNK_GAP if topology.trunks else _GAP
    return _Box(name, switch_labels(topology.switch(name)), _SWITCH_WIDTH, 12.0 * ports, gap=gap)


def _stack_height(column: Sequence[_Box]) -> float:
    return sum(box.height for box in column) + sum(box.gap for box in column[:-1])


def _stack(column: Sequence[_Box], x: float, tallest: float) -> None:
    """Places boxes below each other, spread over the height of the tallest column."""
    free = (tallest - _stack_height(column)) / (len(column) + 1) if column else 0.0
    y = _TITLE + free
    for box in column:
        box.x, box.y = x, y
        y += box.height + box.gap + free


def _ends(topology: Topology, drawing: _Drawing, left: list[_Box], right: list[_Box]) -> list[_End]:
    """The ports, written into their boxes."""
    ends = []
    for node, box in zip(topology.nodes, (*left, *right), strict=True):
        is_left = box.x < _WIDTH / 2
        y = box.y + box.head
        for port in node.ports:
            edge = box.x + box.width if is_left else box.x
            ends.append(_End(node, port, edge, y + _ROW / 2, is_left))
            drawing.text(box.x + 10, y + _ROW / 2 + 4, port.name)
            if place := place_labels(node, port):
                drawing.text(box.x + _PLACE, y + _ROW / 2 + 4, ", ".join(place), "s")
            if not _shared(port):
                drawing.text(box.x + box.width - 10, y + _ROW / 2 + 4, port.interfaces[0].address, "s e")
            for number, inside in enumerate(port.interfaces if _shared(port) else ()):
                at = y + _ROW + _INSIDE * number + 8
                drawing.text(box.x + 20, at, ", ".join([inside.name, *interface_labels(inside)]), "s")
                drawing.text(box.x + box.width - 10, at, inside.address, "s e")
            y += _port_height(node, port, drawing.used)
    return ends


def _meet(topology: Topology, ends: Sequence[_End], switches: Sequence[_Box]) -> None:
    """Spreads the links of each switch over its sides, in the order of their other ends, so that few cross."""
    for box in switches:
        for is_left in (True, False):
            mine = sorted(
                (end for end in ends if end.port.switch == box.name and end.left == is_left),
                key=lambda end: end.y,
            )
            for number, end in enumerate(mine, start=1):
                end.meets = box.y + box.height * number / (len(mine) + 1)


def _draw_link(drawing: _Drawing, end: _End, switch_x: float) -> None:
    words = _words(end.node, end.port, drawing.used)
    reaches = switch_x if end.left else switch_x + _SWITCH_WIDTH
    leaves = end.x + (_STRAIGHT if end.left else -_STRAIGHT)
    bend = (leaves + reaches) / 2
    bent = f"C{bend:.1f} {end.y:.1f} {bend:.1f} {end.meets:.1f} {reaches:.1f} {end.meets:.1f}"
    path = f"M{end.x:.1f} {end.y:.1f}H{leaves:.1f}{bent}"
    drawing.curve(path, end.name, end.port.link)
    style, at = ("s halo", end.x + 8) if end.left else ("s halo e", end.x - 8)
    drawing.text(at, end.y - 6, ", ".join(words[:2]), style)
    if len(words) > 2:
        drawing.text(at, end.y + 14, ", ".join(words[2:]), style)
    drawing.shapes.append(
        f'<rect class="port" x="{end.x - 3:.1f}" y="{end.y - 3:.1f}" width="6" height="6"/>'
    )


def _draw_trunks(topology: Topology, drawing: _Drawing, switches: Mapping[str, _Box]) -> None:
    order = list(switches)
    for trunk in topology.trunks:
        upper, lower = sorted((switches[trunk.a], switches[trunk.b]), key=lambda box: box.y)
        x, top, bottom = upper.x + upper.width / 2, upper.y + upper.height, lower.y
        neighbours = abs(order.index(trunk.a) - order.index(trunk.b)) == 1
        side = 0.0 if neighbours else (upper.width / 2 + 20) / 0.75
        bend = (bottom - top) / 3
        out = x + side
        path = f"M{x:.1f} {top:.1f}C{out:.1f} {top + bend:.1f} {out:.1f} {bottom - bend:.1f} {x:.1f} {bottom:.1f}"
        drawing.curve(path, trunk.name, trunk.link)
        words = trunk_labels(trunk)
        if trunk.name in drawing.used:
            words.insert(2, f"{drawing.used[trunk.name]:.0%} used")
        at = x + side * 0.75 + 10
        drawing.text(at, (top + bottom) / 2 - 2, trunk.name, "n halo")
        drawing.text(at, (top + bottom) / 2 + 12, ", ".join(words), "s halo")


def _draw_lan(topology: Topology, drawing: _Drawing, hosts: Mapping[str, _Box], below: float) -> None:
    """A dotted line left of the hosts for each stream, and a line of text below the picture."""
    for number, stream in enumerate(topology.lan, start=1):
        source, sink = (hosts[end.partition(".")[0]] for end in (stream.source, stream.sink))
        out = source.x - _LAN_STEP * number
        path = f"M{source.x:.1f} {source.middle:.1f}H{out:.1f}V{sink.middle:.1f}H{sink.x - 7:.1f}"
        drawing.lines.append(f'<path class="lan" d="{path}"/>')
        arrow = f"M{sink.x - 8:.1f} {sink.middle - 4:.1f}l8 4l-8 4z"
        drawing.shapes.append(f'<path class="arrow" d="{arrow}"/>')
        y = below + _LAN_STEP * (number - 1)
        drawing.lines.append(f'<path class="lan" d="M{_MARGIN:.1f} {y:.1f}h30"/>')
        text = f"LAN {stream.name}: {stream.source} to {stream.sink}, {lan_labels(stream)}"
        drawing.text(_MARGIN + 38, y + 4, text, "s")
