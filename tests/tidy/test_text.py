"""What every text file must keep: ASCII, no trailing blanks, no banned words, links that lead somewhere."""

from __future__ import annotations

import re

import pytest

from tests.tidy import rules
from tests.tidy.tree import ROOT, text, tracked

TEXT = (".rs", ".py", ".pyi", ".md", ".toml", ".txt", ".yaml", ".yml", ".vdb", ".parm", ".j2", ".css", ".js")
OWN_TABLES = "tests/tidy/"


def _lines(*suffixes: str) -> list[tuple[str, int, str]]:
    named = [path for path in tracked() if path in {"Makefile", ".ci/run", "LICENSE"}]
    return [
        (path, number, line)
        for path in [*tracked(*suffixes), *named]
        for number, line in enumerate(text(path).split("\n"), start=1)
    ]


def _report(faults: list[str]) -> None:
    assert not faults, "\n".join(faults)


def test_text_is_ascii() -> None:
    _report(
        [f"{path}:{number}: not ASCII: {line}" for path, number, line in _lines(*TEXT) if not line.isascii()]
    )


def test_no_trailing_space_and_no_tabs_but_in_makefiles() -> None:
    _report(
        [
            f"{path}:{number}: trailing blank or tab"
            for path, number, line in _lines(*TEXT)
            if line != line.rstrip() or ("\t" in line and path != "Makefile")
        ]
    )


@pytest.mark.parametrize("word", rules.BANNED_WORDS)
def test_text_speaks_of_the_product_only(word: str) -> None:
    pattern = re.compile(word)
    _report(
        [
            f"{path}:{number}: {line.strip()}"
            for path, number, line in _lines(*TEXT)
            if not path.startswith(OWN_TABLES) and pattern.search(line)
        ]
    )


_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_markdown_links_lead_somewhere() -> None:
    faults = []
    for path, number, line in _lines(".md"):
        for link in _LINK.findall(re.sub(r"`[^`]*`", "", line)) if path.endswith(".md") else []:
            file = link.partition("#")[0]
            if file and "://" not in link and not (ROOT / path).parent.joinpath(file).exists():
                faults.append(f"{path}:{number}: dead link {link}")
    _report(faults)


def test_lines_fit() -> None:
    wide = rules.LINE_WIDTH_MAX
    code = [entry for entry in _lines(".rs", ".py", ".pyi") if len(entry[2]) > wide]
    _report([f"{path}:{number}: {len(line)} columns, at most {wide}" for path, number, line in code])
