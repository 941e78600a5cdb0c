"""One word, one thing: a public type name is defined at most twice; paths that documents name exist."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

import pytest

from tests.tidy.tree import ROOT, bare_rust, text, tracked

MOST = 2

CRATE_WIDE = frozenset({
    "Admission", "Command", "Connection", "Group", "Link", "Piece", "Request", "Run", "State", "Volume",
})  # fmt: skip
"""Names of types inside crates (`pub(crate)`) that are defined more often. This list may only get shorter."""

_RUST_TYPE = re.compile(r"^pub(\([^)]*\))? (?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)
_PYTHON_TYPE = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
_PATH = re.compile(r"`((?:crates|python|tests|docs|bench|fuzz|studies|packaging)/[\w./-]+)`")


def _definitions() -> Mapping[str, list[tuple[str, bool]]]:
    """By type name: the files that define it, and whether it is public outside its crate."""
    found: defaultdict[str, list[tuple[str, bool]]] = defaultdict(list)
    for path in tracked(".rs"):
        if path.startswith("crates/") and "/tests/" not in path:
            source = bare_rust(text(path)).split("#[cfg(test)]\nmod tests", 1)[0]
            for scope, name in _RUST_TYPE.findall(source):
                found[name].append((path, not scope))
    for path in tracked(".py"):
        if path.startswith("python/"):
            for name in _PYTHON_TYPE.findall(text(path)):
                found[name].append((path, True))
    return found


def test_public_type_names_are_defined_at_most_twice() -> None:
    public = Counter(
        {name: sum(is_public for _, is_public in places) for name, places in _definitions().items()}
    )
    assert not [f"{name}: {count} definitions" for name, count in public.items() if count > MOST]


def test_names_inside_crates_are_defined_at_most_twice_but_for_a_shrinking_list() -> None:
    often = {name for name, places in _definitions().items() if len(places) > MOST}
    assert often == CRATE_WIDE, (
        "give a new type its own name, or take a name that is no longer needed off the list"
    )


@pytest.mark.parametrize("page", tracked(".md"))
def test_paths_that_documents_name_exist(page: str) -> None:
    paths = [path.rstrip("/.") for path in _PATH.findall(text(page))]
    named = [path for path in paths if "NAME" not in path]
    missing = [path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(path + "*"))]
    assert not missing, f"{page}: {missing}"
