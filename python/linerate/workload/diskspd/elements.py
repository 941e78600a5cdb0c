"""The elements of an XML file of diskspd, profile or result, with their lines and within limits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from linerate.errors import UserError
from linerate.workload.problems import shorten

_TEXT_CHARACTERS_MAX = 32_768
Refuse = Callable[[int, str], UserError]
"""The error for what is wrong in a line of the file."""


@dataclass(slots=True)
class Element:
    """An element with its text and children; `line` is where it begins."""

    name: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """The children of a name."""
        return (child for child in self.children if child.name == name)

    def find(self, *names: str) -> Element | None:
        """The first element at the end of a path of names."""
        if not names:
            return self
        found = next(self.all(names[0]), None)
        return found.find(*names[1:]) if found is not None else None

    def value(self, *names: str) -> str:
        """The text of an element below; empty without it."""
        found = self.find(*names)
        return found.text.strip() if found is not None else ""


def read_elements(text: str, refuse: Refuse, *, depth_max: int, elements_max: int) -> Element:
    """The root of a file whose text was decoded; the encoding that it declares does not count.

    Raises what `refuse` gives for a text that is no XML, or beyond a limit.
    """
    top = Element("", 0)
    open_elements = [top]
    count = itertools.count(1)
    parser = expat.ParserCreate(encoding="utf-8")

    def wrong(what: str) -> UserError:
        return refuse(parser.CurrentLineNumber, what)

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > depth_max or next(count) > elements_max:
            raise wrong(f"{shorten(name)}: too deep, or more than {elements_max:,} elements")
        element = Element(name, parser.CurrentLineNumber, attributes)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_name: str) -> None:
        open_elements.pop()

    def more(text: str) -> None:
        element = open_elements[-1]
        element.text += text
        if len(element.text) > _TEXT_CHARACTERS_MAX:
            raise wrong(f"{shorten(element.name)}: more than {_TEXT_CHARACTERS_MAX:,} characters")

    def declares(name: str, *_: object) -> None:
        raise wrong(f"a document type ({shorten(name)}): diskspd writes none, and entities are not read")

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = declares
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = more
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise wrong(f"no XML: {expat.ErrorString(error.code)}") from error
    return top.children[0]
