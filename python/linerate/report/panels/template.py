"""The template environment of both kinds of page, with the macros of the panels and their filters."""

from __future__ import annotations

from importlib import resources

import jinja2

from linerate.report.panels import arrays, paths

_PACKAGE = "linerate.report.panels"


def environment() -> jinja2.Environment:
    """An environment that knows the panels' macros and filters."""
    templates = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("linerate.report", "panels"),
    )
    templates.filters.update(**paths.filters(), **arrays.filters())
    return templates


def style() -> str:
    """The style sheet of both kinds of page."""
    return asset(_PACKAGE, "style.css")


def asset(package: str, name: str) -> str:
    """A file of a package, as text."""
    return (resources.files(package) / name).read_text(encoding="utf-8")
