"""The repository as the tidy tests see it: tracked files, Rust without comments and strings, functions with lengths."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Function:
    """A function's name and extent; `line` counts from 1."""

    name: str
    line: int
    lines: int


@cache
def tracked(*suffixes: str) -> list[str]:
    """Paths, relative to the root, of files that git tracks or would add; all, or those with one of the suffixes."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    present = (path for path in sorted(set(listed)) if path and (ROOT / path).is_file())
    return [path for path in present if not suffixes or path.endswith(suffixes)]


@cache
def text(path: str) -> str:
    """The file's text, or nothing for a binary file."""
    raw = (ROOT / path).read_bytes()
    return "" if b"\0" in raw[:4096] else raw.decode("utf-8", errors="surrogateescape")


# One alternative per thing that may hide a brace or a word: comments, (raw) strings, characters, not lifetimes.
_RUST_HIDDEN = re.compile(
    r"""
    //[^\n]*
    | /\*(?:[^*]|\*(?!/))*\*/
    | (?<![A-Za-z0-9_])[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)
    | [bc]?"(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F_]+\}|.)|[^'\\\n])'
    """,
    re.VERBOSE | re.DOTALL,
)


def bare_rust(source: str) -> str:
    """Rust source with comments, strings and characters blanked; line numbers stay as they are."""
    return _RUST_HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


@cache
def bare_rust_file(path: str) -> str:
    """The same for a file of the repository."""
    return bare_rust(text(path))


_RUST_PUNCTUATION = re.compile(r"[()\[\]{};]")
_RUST_FN = re.compile(r"\bfn\s+(\w+)")


def rust_functions(source: str) -> Iterator[Function]:
    """Every `fn` that has a body, nested ones too, measured from its `fn` line to its closing brace."""
    bare = bare_rust(source)
    for match in _RUST_FN.finditer(bare):
        end = _rust_body_end(bare, match.end())
        if end is not None:
            line = bare.count("\n", 0, match.start()) + 1
            yield Function(match[1], line, bare.count("\n", match.start(), end) + 1)


def _rust_body_end(bare: str, start: int) -> int | None:
    """Where the body that follows a signature ends; None for a declaration without a body."""
    depth = 0
    parens = 0
    for mark in _RUST_PUNCTUATION.finditer(bare, start):
        match mark[0]:
            case "(" | "[":
                parens += 1
            case ")" | "]":
                parens -= 1
            case ";" if depth == 0 and parens == 0:
                return None
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if depth == 0 and parens == 0:
                    return mark.start()
    return None


@cache
def _python_nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def python_functions(source: str) -> Iterator[Function]:
    """Every function of a Python module, its docstring included."""
    for node in _python_nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)


@cache
def python_calls(source: str) -> tuple[tuple[str, int], ...]:
    """Dotted names that a Python module calls, with their lines."""
    calls = (node for node in _python_nodes(source) if isinstance(node, ast.Call))
    return tuple((ast.unparse(call.func), call.lineno) for call in calls)


def python_imports(source: str) -> Iterator[tuple[str, int]]:
    """Absolute names of modules that a Python module imports, with their lines."""
    for node in _python_nodes(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
