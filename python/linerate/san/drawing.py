"""Where everything of a topology is drawn: shapes and texts with places, for the modules that render them as SVG.

Hosts are on the left, switches in the middle, arrays on the right, with a curve for each link. A `Form` says how wide
that is and how much text it holds. `picture` makes a file of it, the web page of a lab a part of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linerate.san.labels import (
    array_labels,
    interface_labels,
    lan_labels,
    place_labels,
    port_labels,
    switch_labels,
    trunk_labels,
)
from linerate.san.model import Array, Link, Node, Port, Topology, Trunk

_MARGIN = 16.0
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
_LAN_STEP = 18.0


@dataclass(frozen=True, slots=True)
class Form:
    """Widths of a drawing, in its own units, and what is written into it."""

    width: float
    node_width: float
    switch_width: float
    straight: float
    """A link runs straight this far, below its text, before it bends."""
    title: float
    """Height of the topology's name and description; without details they are not written."""
    detail: Literal["all", "figures", "names"]
    """all: every setting; figures: rate and MTU of a link, and a line for its present figures; names: no more."""


PAPER = Form(1000.0, 232.0, 170.0, 112.0, 58.0, "all")
PAGE = Form(1060.0, 232.0, 150.0, 112.0, 16.0, "figures")
NARROW = Form(400.0, 92.0, 84.0, 12.0, 12.0, "names")


@dataclass(frozen=True, slots=True)
class Element:
    """An SVG element: a rectangle, a path or a text."""

    tag: Literal["rect", "path", "text"]
    attributes: Mapping[str, str]
    text: str = ""
    link: str = ""
    """The link that it is, or whose figures it gives."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The elements in the order in which they are painted."""

    width: float
    height: float
    elements: tuple[Element, ...]


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
class _Canvas:
    """What has been drawn so far."""

    form: Form
    figures: Mapping[str, str]
    lines: list[Element] = field(default_factory=list)
    shapes: list[Element] = field(default_factory=list)
    labels: list[Element] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, style: str = "", link: str = "") -> None:
        kind = {"class": style} if style else {}
        self.labels.append(Element("text", {"x": f"{x:.1f}", "y": f"{y:.1f}", **kind}, text, link))

    def small(self, x: float, y: float, text: str, style: str = "s") -> None:
        """What a drawing of names leaves out."""
        if self.form.detail != "names":
            self.text(x, y, text, style)

    def box(self, box: _Box) -> None:
        place = {"x": f"{box.x:.1f}", "y": f"{box.y:.1f}"}
        size = {"width": f"{box.width:.1f}", "height": f"{box.height:.1f}", "rx": "5"}
        self.shapes.append(Element("rect", {"class": "box", **place, **size}))
        self.text(box.x + 10, box.y + 17, box.name, "n")
        for number, note in enumerate(box.notes):
            self.text(box.x + 10, box.y + _HEAD + 9 + number * _NOTE, note, "s")

    def path(self, style: str, path: str, link: str = "") -> Element:
        return Element("path", {"class": style, "d": path}, link=link)

    def curve(self, path: str, name: str, link: Link) -> None:
        self.lines.append(self.path("link" if link.up else "link down", path, name))

    def words(self, node: Node, port: Port) -> list[str]:
        """The label of a link: rate and MTU, then its other settings."""
        words = port_labels(node, port)
        if (figures := self.figures.get(f"{node.name}.{port.name}")) is not None:
            words.insert(2, figures)
            if self.form.detail == "figures":
                return words[:3]
        return words if _shared(port) else [*words, *interface_labels(port.interfaces[0])]

    def port_height(self, node: Node, port: Port) -> float:
        if self.form.detail == "names":
            return _ROW
        inside = _INSIDE * len(port.interfaces) if _shared(port) else 0.0
        return _ROW + max(inside, _SECOND if len(self.words(node, port)) > 2 else 0.0)


def drawing(topology: Topology, form: Form, figures: Mapping[str, str]) -> Drawing:
    """The topology in a form. `figures` is what is written at links, by name, beside their settings."""
    canvas = _Canvas(form, figures)
    lan_room = _LAN_STEP * len(topology.lan)
    left = [_node_box(host, canvas) for host in topology.hosts]
    right = [_node_box(array, canvas) for array in topology.arrays]
    middle = [_switch_box(topology, switch.name, form) for switch in topology.switches]
    tallest = max(_stack_height(column) for column in (left, middle, right))
    switch_x = (form.width + lan_room - form.switch_width) / 2
    for column, x in (
        (left, _MARGIN + lan_room),
        (middle, switch_x),
        (right, form.width - _MARGIN - form.node_width),
    ):
        _stack(column, x, form.title, tallest)
    ends = _ends(topology, canvas, left, right)
    _meet(topology, ends, middle)
    for end in ends:
        _draw_link(canvas, end, switch_x)
    _draw_trunks(topology, canvas, {box.name: box for box in middle})
    below = form.title + tallest + _MARGIN
    _draw_lan(topology, canvas, {box.name: box for box in left}, below)
    for box in (*left, *middle, *right):
        canvas.box(box)
    if form.detail == "all":
        canvas.text(_MARGIN, 24, topology.name, "t")
        canvas.text(_MARGIN, 40, topology.description, "s")
    height = below if form.detail == "names" else below + lan_room
    return Drawing(form.width, height, (*canvas.lines, *canvas.shapes, *canvas.labels))


def _node_box(node: Node, canvas: _Canvas) -> _Box:
    has_notes = isinstance(node, Array) and canvas.form.detail != "names"
    notes = array_labels(node) if isinstance(node, Array) and has_notes else []
    rows = sum(canvas.port_height(node, port) for port in node.ports)
    return _Box(node.name, notes, canvas.form.node_width, rows)


def _shared(port: Port) -> bool:
    return len(port.interfaces) > 1 or port.interfaces[0].name != port.name


def _switch_box(topology: Topology, name: str, form: Form) -> _Box:
    def count(nodes: Sequence[Node]) -> int:
        return sum(port.switch == name for node in nodes for port in node.ports)

    ports = max(count(topology.hosts), count(topology.arrays), 1)
    gap = _TRUNK_GAP if topology.trunks else _GAP
    notes = switch_labels(topology.switch(name)) if form.detail != "names" else []
    return _Box(name, notes, form.switch_width, 12.0 * ports, gap=gap)


def _stack_height(column: Sequence[_Box]) -> float:
    return sum(box.height for box in column) + sum(box.gap for box in column[:-1])


def _stack(column: Sequence[_Box], x: float, top: float, tallest: float) -> None:
    """Places boxes below each other, spread over the height of the tallest column."""
    free = (tallest - _stack_height(column)) / (len(column) + 1) if column else 0.0
    y = top + free
    for box in column:
        box.x, box.y = x, y
        y += box.height + box.gap + free


def _ends(topology: Topology, canvas: _Canvas, left: list[_Box], right: list[_Box]) -> list[_End]:
    """The ports, written into their boxes."""
    ends = []
    for node, box in zip(topology.nodes, (*left, *right), strict=True):
        is_left = box.x < canvas.form.width / 2
        y = box.y + box.head
        for port in node.ports:
            edge = box.x + box.width if is_left else box.x
            ends.append(_End(node, port, edge, y + _ROW / 2, is_left))
            canvas.text(box.x + 10, y + _ROW / 2 + 4, port.name)
            if place := place_labels(node, port):
                canvas.small(box.x + _PLACE, y + _ROW / 2 + 4, ", ".join(place))
            if not _shared(port):
                canvas.small(box.x + box.width - 10, y + _ROW / 2 + 4, port.interfaces[0].address, "s e")
            for number, inside in enumerate(port.interfaces if _shared(port) else ()):
                at = y + _ROW + _INSIDE * number + 8
                canvas.small(box.x + 20, at, ", ".join([inside.name, *interface_labels(inside)]))
                canvas.small(box.x + box.width - 10, at, inside.address, "s e")
            y += canvas.port_height(node, port)
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


def _draw_link(canvas: _Canvas, end: _End, switch_x: float) -> None:
    words = canvas.words(end.node, end.port)
    reaches = switch_x if end.left else switch_x + canvas.form.switch_width
    leaves = end.x + (canvas.form.straight if end.left else -canvas.form.straight)
    bend = (leaves + reaches) / 2
    bent = f"C{bend:.1f} {end.y:.1f} {bend:.1f} {end.meets:.1f} {reaches:.1f} {end.meets:.1f}"
    path = f"M{end.x:.1f} {end.y:.1f}H{leaves:.1f}{bent}"
    canvas.curve(path, end.name, end.port.link)
    style, at = ("s halo", end.x + 8) if end.left else ("s halo e", end.x - 8)
    canvas.small(at, end.y - 6, ", ".join(words[:2]), style)
    if len(words) > 2 and canvas.form.detail != "names":
        canvas.text(at, end.y + 14, ", ".join(words[2:]), style, end.name)
    place = {"x": f"{end.x - 3:.1f}", "y": f"{end.y - 3:.1f}", "width": "6", "height": "6"}
    canvas.shapes.append(Element("rect", {"class": "port", **place}))


def _draw_trunks(topology: Topology, canvas: _Canvas, switches: Mapping[str, _Box]) -> None:
    order = list(switches)
    for trunk in topology.trunks:
        upper, lower = sorted((switches[trunk.a], switches[trunk.b]), key=lambda box: box.y)
        x, top, bottom = upper.x + upper.width / 2, upper.y + upper.height, lower.y
        neighbours = abs(order.index(trunk.a) - order.index(trunk.b)) == 1
        side = 0.0 if neighbours else (upper.width / 2 + 20) / 0.75
        bend = (bottom - top) / 3
        out = x + side
        path = f"M{x:.1f} {top:.1f}C{out:.1f} {top + bend:.1f} {out:.1f} {bottom - bend:.1f} {x:.1f} {bottom:.1f}"
        canvas.curve(path, trunk.name, trunk.link)
        _label_trunk(canvas, trunk, x + side * 0.75 + 10, (top + bottom) / 2)


def _label_trunk(canvas: _Canvas, trunk: Trunk, x: float, y: float) -> None:
    words = trunk_labels(trunk)
    figures = canvas.figures.get(trunk.name)
    if canvas.form.detail == "figures" and figures is not None:
        canvas.text(x, y - 2, ", ".join([trunk.name, *words[:2]]), "s halo")
        canvas.text(x, y + 12, figures, "s halo", trunk.name)
        return
    canvas.text(x, y - 2, trunk.name, "n halo")
    canvas.small(x, y + 12, ", ".join([*words[:2], *([figures] if figures else []), *words[2:]]), "s halo")


def _draw_lan(topology: Topology, canvas: _Canvas, hosts: Mapping[str, _Box], below: float) -> None:
    """A dotted line left of the hosts for each stream, and a line of text below the picture."""
    for number, stream in enumerate(topology.lan, start=1):
        source, sink = (hosts[end.partition(".")[0]] for end in (stream.source, stream.sink))
        out = source.x - _LAN_STEP * number
        path = f"M{source.x:.1f} {source.middle:.1f}H{out:.1f}V{sink.middle:.1f}H{sink.x - 7:.1f}"
        canvas.lines.append(canvas.path("lan", path))
        arrow = f"M{sink.x - 8:.1f} {sink.middle - 4:.1f}l8 4l-8 4z"
        canvas.shapes.append(canvas.path("arrow", arrow))
        if canvas.form.detail == "names":
            continue
        y = below + _LAN_STEP * (number - 1)
        canvas.lines.append(canvas.path("lan", f"M{_MARGIN:.1f} {y:.1f}h30"))
        text = f"LAN {stream.name}: {stream.source} to {stream.sink}, {lan_labels(stream)}"
        canvas.text(_MARGIN + 38, y + 4, text, "s")
