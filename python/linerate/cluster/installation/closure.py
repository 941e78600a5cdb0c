"""The files of Linerate and of every package that a load host needs, as they are installed here.

Works from an installed wheel and from a source tree (`make dev`): the modules of Linerate are those of this process,
the other packages are found by their metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

import linerate
from linerate.errors import HostError

DISTRIBUTION = "linerate-san"
STAYS_HERE = frozenset(
    {
        *("altair", "numpy", "polars", "pydoe3", "scipy", "vl-convert-python", "xlsxwriter"),
        *("prometheus-client", "sse-starlette", "starlette", "uvicorn"),
    }
)
"""Statistics, charts and tables, and web pages: a load host makes none. Three quarters of all bytes."""
_OWN_METADATA = ("METADATA", "WHEEL", "entry_points.txt")
_LEFT_OUT = frozenset({"__pycache__", "tests"})
"""Folders: what Python makes itself, and the tests of packages."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A file, and its place below the folder of packages (`site-packages`)."""

    name: str
    path: Path


def needed(root: str = DISTRIBUTION) -> dict[str, Distribution]:
    """A distribution and everything that it requires on a load host, by normalised name: not what `STAYS_HERE`, and
    not what only that requires.

    Raises HostError for one that is not installed here.
    """
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = [(root, frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        if (_normal(name), extras) in asked or _normal(name) in STAYS_HERE:
            continue
        asked.add((_normal(name), extras))
        try:
            one = distribution(name)
        except PackageNotFoundError as error:
            raise HostError(
                f"the package {name} is not installed here", "install Linerate by pip, or call `make dev`"
            ) from error
        found[_normal(name)] = one
        for text in one.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            ):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return found


def files_of(distributions: dict[str, Distribution]) -> Iterator[Packed]:
    """Their files; programs and manual pages beside the packages are left out. Raises HostError."""
    for name, one in distributions.items():
        yield from _own(one) if name == DISTRIBUTION else _recorded(name, one)


def own_files() -> Iterator[Packed]:
    """The modules and data of Linerate."""
    folder = Path(linerate.__file__).parent
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _LEFT_OUT.intersection(path.parts):
            yield Packed(path.relative_to(folder.parent).as_posix(), path)


def _own(one: Distribution) -> Iterator[Packed]:
    yield from own_files()
    for file in one.files or ():
        if file.name in _OWN_METADATA and file.parent.name.endswith(".dist-info"):
            yield Packed(file.as_posix(), Path(str(file.locate())))


def _recorded(name: str, one: Distribution) -> Iterator[Packed]:
    if one.files is None:
        raise HostError(
            f"{name} was not installed by pip: it has no list of its files",
            "install Linerate into an environment of its own: python3 -m venv, then pip install",
        )
    for file in one.files:
        path = Path(str(file.locate()))
        if ".." not in file.parts and not _LEFT_OUT.intersection(file.parts) and path.is_file():
            yield Packed(file.as_posix(), path)


def _normal(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
