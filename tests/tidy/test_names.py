"""One word, one thing: a type name is defined at most twice (also inside crates); paths that documents name exist."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.tidy.tree import ROOT, bare_rust, text, tracked

MOST = 2

_RUST_TYPE = re.compile(r"^pub(?:\([^)]*\))? (?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)
_PYTHON_TYPE = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
_FILE = re.compile(r"`([a-z][\w/-]*\.(?:rs|py|j2))`")
_PATH = re.compile(r"`((?:crates|python|tests|docs|bench|fuzz|studies|packaging)/[\w./-]+)`")


def _definitions() -> Mapping[str, list[str]]:
    """By type name: the files that define it, for all crates and packages."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in tracked(".rs"):
        if path.startswith("crates/") and "/tests/" not in path:
            source = bare_rust(text(path)).split("#[cfg(test)]\nmod tests", 1)[0]
            for name in _RUST_TYPE.findall(source):
                found[name].append(path)
    for path in tracked(".py"):
        if path.startswith("python/"):
            for name in _PYTHON_TYPE.findall(text(path)):
                found[name].append(path)
    return found


def test_type_names_are_defined_at_most_twice() -> None:
    definitions = _definitions()
    assert len(definitions["Blame"]) > 0, "the search finds nothing"
    assert not {name: places for name, places in definitions.items() if len(places) > MOST}


@pytest.mark.parametrize("page", tracked(".md"))
def test_paths_that_documents_name_exist(page: str) -> None:
    paths = [path.rstrip("/.") for path in _PATH.findall(text(page))]
    named = [path for path in paths if "NAME" not in path]
    missing = [path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(path + "*"))]
    assert not missing, f"{page}: {missing}"


@pytest.mark.parametrize("suffix", [".rs", ".py", ".md"])
def test_files_that_comments_name_exist(suffix: str) -> None:
    known = {tuple(path.split("/")) for path in tracked("")}
    ends = {path[-length:] for path in known for length in range(1, len(path) + 1)}
    missing = [
        f"{path}: {name}"
        for path in tracked(suffix)
        for name in _FILE.findall(text(path))
        if "NAME" not in name and name != "name.rs" and tuple(name.split("/")) not in ends
    ]
    assert not missing
