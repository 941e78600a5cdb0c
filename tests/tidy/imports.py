"""Which Rust file of a crate imports which: from its `use` lines, through re-exports, without tests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath

from tests.tidy.tree import bare_rust, text, tracked

Path = tuple[str, ...]
"""Names of a path in Rust, without the crate."""

_USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_MOST_REEXPORTS = 8


class Crate:
    """The files of a crate's sources and their imports."""

    def __init__(self, files: Mapping[Path, str]) -> None:
        self._files = files
        self._uses = {file: list(_uses(file)) for file in files.values()}
        self._prefixes = {module[:end] for module in files for end in range(len(module) + 1)}

    def graph(self) -> dict[str, set[str]]:
        """By file: the files that it imports. A re-export is no import."""
        graph: defaultdict[str, set[str]] = defaultdict(set)
        for module, file in self._files.items():
            for is_public, names in self._uses[file]:
                path = None if is_public else self._absolute(module, names)
                found = None if path is None else self._file_of(path)
                if found is not None and found != file:
                    graph[file].add(found)
        return graph

    def _absolute(self, module: Path, names: Path) -> Path | None:
        """The path from the crate's root; none for another crate's."""
        if names[0] == "crate":
            return names[1:]
        if names[0] == "self":
            return module + names[1:]
        up = next(index for index, name in enumerate((*names, "")) if name != "super")
        if up:
            return module[: len(module) - up] + names[up:]
        return module + names if (*module, names[0]) in self._prefixes else None

    def _file_of(self, path: Path, left: int = _MOST_REEXPORTS) -> str | None:
        for end in range(len(path), -1, -1):
            file = self._files.get(path[:end])
            if file is None:
                continue
            if end < len(path) and left:
                for is_public, names in self._uses[file]:
                    target = (
                        self._absolute(path[:end], names) if is_public and names[-1] == path[end] else None
                    )
                    if target is not None and target != path:
                        return self._file_of(target, left - 1)
            return file
        return None


@cache
def crates() -> dict[str, Crate]:
    """The crates of the workspace, by folder."""
    files: defaultdict[str, dict[Path, str]] = defaultdict(dict)
    for path in tracked(".rs"):
        parts = PurePosixPath(path).with_suffix("").parts
        if parts[0] == "crates" and parts[2] == "src":
            module = parts[3:-1] if parts[-1] in ("mod", "lib") else parts[3:]
            files[parts[1]][module] = path
    return {name: Crate(modules) for name, modules in files.items()}


def _uses(file: str) -> Iterator[tuple[bool, Path]]:
    source = bare_rust(text(file)).split("#[cfg(test)]\nmod tests", 1)[0]
    for public, tree in _USE.findall(source):
        for names in _expanded(tree):
            yield bool(public), names


def _expanded(tree: str) -> Iterator[Path]:
    """The paths of a `use` tree."""
    head, brace, rest = tree.partition("{")
    names = tuple(name.strip() for name in re.sub(r"\s+as\s+\w+\s*$", "", head).split("::") if name.strip())
    if not brace:
        yield names
        return
    for part in _parts(rest[: rest.rindex("}")]):
        for inner in _expanded(part):
            yield names if inner == ("self",) else names + inner


def _parts(list_text: str) -> Iterator[str]:
    """The parts between commas outside braces."""
    depth, begun = 0, 0
    for index, character in enumerate(f"{list_text},"):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if list_text[begun:index].strip():
                yield list_text[begun:index]
            begun = index + 1


def circles(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Groups of files of which each reaches each other."""
    reached = {file: _reached(graph, file) for file in graph}
    groups = {
        frozenset(other for other in reaches if file in reached.get(other, ()))
        for file, reaches in reached.items()
    }
    return [group for group in groups if len(group) > 1]


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        for file in graph.get(ahead.pop(), ()):
            if file not in seen:
                seen.add(file)
                ahead.append(file)
    return seen
