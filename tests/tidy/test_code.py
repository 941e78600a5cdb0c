"""What code must keep: small files, functions and folders; an entry file per folder; calls only where they belong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from tests.tidy import rules
from tests.tidy.tree import (
    Function,
    bare_rust_file,
    python_calls,
    python_functions,
    rust_functions,
    text,
    tracked,
)

CODE = (".rs", ".py", ".pyi")


def _report(faults: list[str]) -> None:
    assert not faults, "\n".join(faults)


def _may(path: str, allowed: tuple[str, ...]) -> bool:
    return any(re.match(pattern, path) for pattern in allowed)


def test_files_are_short() -> None:
    counted = ((path, text(path).count("\n")) for path in tracked(*CODE, ".md", ".toml"))
    _report(
        [
            f"{path}: {lines} lines, at most {rules.FILE_LINES_MAX}"
            for path, lines in counted
            if lines > rules.FILE_LINES_MAX and PurePosixPath(path).name not in rules.FILE_LINES_FREE
        ]
    )


@pytest.mark.parametrize(("suffix", "functions"), [(".rs", rust_functions), (".py", python_functions)])
def test_functions_are_short(suffix: str, functions: Callable[[str], Iterator[Function]]) -> None:
    _report(
        [
            f"{path}:{function.line}: {function.name} has {function.lines} lines, at most {rules.FUNCTION_LINES_MAX}"
            for path in tracked(suffix)
            for function in functions(text(path))
            if function.lines > rules.FUNCTION_LINES_MAX
        ]
    )


def test_folders_are_small() -> None:
    files = Counter(str(PurePosixPath(path).parent) for path in tracked(*CODE))
    _report(
        [
            f"{folder}: {count} files, at most {rules.FOLDER_FILES_MAX}"
            for folder, count in files.items()
            if count > rules.FOLDER_FILES_MAX
        ]
    )


def _rust_entry(folder: PurePosixPath, paths: set[str]) -> str | None:
    """The file of a Rust folder that a newcomer opens first."""
    names = [folder / "lib.rs", folder / "mod.rs", folder / "main.rs", folder.with_suffix(".rs")]
    return next((str(name) for name in names if str(name) in paths), None)


def test_every_rust_folder_opens_with_what_it_is_for() -> None:
    paths = set(tracked(".rs"))
    faults = []
    for folder in sorted({PurePosixPath(path).parent for path in paths if path.startswith("crates/")}):
        if "src" not in folder.parts or folder.name == "bin":
            continue
        entry = _rust_entry(folder, paths)
        if entry is None or not text(entry).startswith("//!"):
            faults.append(f"{folder}: no entry file that opens with a doc comment")
    _report(faults)


def test_every_python_module_opens_with_what_it_is_for() -> None:
    """A package's `__init__.py` is the file to open first; every module says in its first line what it holds."""
    paths = [path for path in tracked(".py") if path.startswith("python/linerate")]
    folders = {str(PurePosixPath(path).parent) for path in paths}
    missing = [f"{folder}: no __init__.py" for folder in folders if f"{folder}/__init__.py" not in paths]
    silent = [f"{path}: opens without a docstring" for path in paths if not text(path).startswith('"""')]
    _report(missing + silent)


@pytest.mark.parametrize(("pattern", "allowed"), rules.FORBIDDEN_RUST.items())
def test_rust_calls_stay_where_they_belong(pattern: str, allowed: tuple[str, ...]) -> None:
    faults = []
    for path in tracked(".rs"):
        if not _may(path, allowed):
            for number, line in enumerate(bare_rust_file(path).split("\n"), start=1):
                if re.search(pattern, line):
                    faults.append(f"{path}:{number}: {line.strip()}")
    _report(faults)


@pytest.mark.parametrize(("call", "allowed"), rules.FORBIDDEN_PYTHON_CALLS.items())
def test_python_calls_stay_where_they_belong(call: str, allowed: tuple[str, ...]) -> None:
    _report(
        [
            f"{path}:{line}: {call}"
            for path in tracked(".py")
            if not _may(path, allowed)
            for name, line in python_calls(text(path))
            if name == call
        ]
    )
