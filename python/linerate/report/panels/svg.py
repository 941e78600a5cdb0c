"""Draws a chart as inline SVG in the page's own colours.

The renderer wants fixed colours, the page wants colours that follow light and dark. So charts are drawn with
stand-in colours, one per palette entry, and each stand-in becomes a CSS variable of the page. What only the
renderer's own viewer needs is cut away.
"""

from __future__ import annotations

import re
from typing import Any

import vl_convert

PATHS = tuple(f"path{number}" for number in range(1, 9))
"""Colours of paths; more would look alike."""
_NAMES = (
    *("ink", "muted", "grid", "band", "read", "write", "total", "low", "middle", "high", "top"),
    *("void", "valid"),
    *PATHS,
)
PALETTE = {name: f"#fe00{number:02x}" for number, name in enumerate(_NAMES)}

# Attributes that all charts have are once in the page's style sheet.
_CUTS = (
    re.compile(r'<path class="background"[^>]*/>'),
    re.compile(r' (?:aria-hidden|aria-roledescription|role|class|pointer-events|stroke-miterlimit)="[^"]*"'),
    re.compile(r' xmlns(?::xlink)?="[^"]*"| version="1\.1"'),
    re.compile(r' (?:fill-)?opacity="1"| font-(?:family|size|weight)="[^"]*"'),
    re.compile(rf' fill="{PALETTE["muted"]}"| stroke="{PALETTE["grid"]}"| stroke-width="1"'),
    re.compile(r'<path d="" display="none"/>|<text [^>]*/>'),
    re.compile(r"(?<=\d\.\d)\d+(?=[^<>]*>)"),  # decimals of coordinates, never those of labels
    re.compile(r"<g></g>|<g/>"),
)
_TOLD = re.compile(r'<(line|path) aria-label="([^"]*)"([^>]*)/>')
"""A shape with words: they become its tooltip. Those of a line are the area of the pointer, else invisible."""
_DEAD_ENDS = re.compile(r' x2="0"| stroke="(?:black|transparent)"')
_SIZE = re.compile(r'<svg width="[^"]*" height="[^"]*"')


def draw(spec: dict[str, Any]) -> str:
    """A Vega-Lite spec as an `<svg>` element without any reference to the outside."""
    svg = str(vl_convert.vegalite_to_svg(spec, vl_version="6.4"))
    for cut in _CUTS:
        svg = cut.sub("", svg)
    svg = _TOLD.sub(_with_tooltip, svg)
    for name, colour in PALETTE.items():
        svg = svg.replace(colour, f"var(--{name})")
    return _SIZE.sub("<svg", svg, count=1)


def _with_tooltip(shape: re.Match[str]) -> str:
    kind, words, rest = shape.groups()
    if kind == "line":
        return f'<line class="hit"{_DEAD_ENDS.sub("", rest)}><title>{words}</title></line>'
    return f"<path{rest}><title>{words}</title></path>"
