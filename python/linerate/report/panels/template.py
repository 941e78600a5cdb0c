"""The templates of all pages, with the macros of the panels and their filters."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources

import jinja2

from linerate.report.panels import arrays, paths

_PACKAGE = "linerate.report.panels"


@cache
def template(package: str, name: str, *filters: tuple[str, Callable[..., object]]) -> jinja2.Template:
    """The template of a page, compiled once. It knows the panels' macros and filters, and these filters by name."""
    templates = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("linerate.report", "panels"),
    )
    templates.filters.update(**paths.filters(), **arrays.filters())
    templates.filters.update(filters)
    return templates.from_string(asset(package, name))


def style() -> str:
    """The style sheet of both kinds of page."""
    return asset(_PACKAGE, "style.css")


def asset(package: str, name: str) -> str:
    """A file of a package, as text."""
    return (resources.files(package) / name).read_text(encoding="utf-8")
