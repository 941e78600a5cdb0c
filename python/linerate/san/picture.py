"""A topology as a drawing: hosts on the left, switches in the middle, arrays on the right, a curve for each link.

One SVG serves a page and a file of its own, light, dark and paper: it brings its colours along and follows the reader's
preference. Nothing in it refers to the outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from linerate.san.drawing import PAPER, Element, drawing
from linerate.san.model import Topology

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


def picture(topology: Topology, utilisation: Mapping[str, float] | None = None) -> str:
    """The topology as an `<svg>` element.

    `utilisation` holds, by link name, how much of the line was used (0 to 1): it sets the width of the curves.
    """
    used = utilisation or {}
    drawn = drawing(topology, PAPER, {name: f"{share:.0%} used" for name, share in used.items()})
    body = "".join(_svg(element, used) for element in drawn.elements)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="san" role="img" viewBox="0 0 {drawn.width:.0f} '
        f'{drawn.height:.0f}"><title>{escape(topology.name)}</title><style>{_STYLE}</style>'
        f'<rect class="back" width="{drawn.width:.0f}" height="{drawn.height:.0f}"/>{body}</svg>'
    )


def _svg(element: Element, used: Mapping[str, float]) -> str:
    attributes = dict(element.attributes)
    share = used.get(element.link)
    if element.tag == "path" and share is not None:  # its width shows how much of the line was used
        attributes["class"] += " busy"
        attributes["style"] = f"stroke-width:{1.5 + 5 * min(max(share, 0.0), 1.0):.1f}px"
    written = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{element.tag}{written}>{escape(element.text)}</{element.tag}>"
