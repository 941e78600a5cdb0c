"""The documentation lists every setting as the catalogue has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.tables import PAGES, current, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_tables_of_settings_are_current(page: Path) -> None:
    text = page.read_text()
    assert text == current(text), "run `make docs`"


def test_every_table_is_in_some_page() -> None:
    text = "\n".join(page.read_text() for page in pages())
    for name in ("host", "unproven", "fabric", "load", "array", "multipath", "faults", "multipath_names"):
        assert text.count(f"<!-- settings: {name} -->") == 1


def test_a_table_that_is_not_current_is_noticed() -> None:
    text = (PAGES / "host.md").read_text()
    assert current(text.replace("576 to 16110 bytes", "576 to 9000 bytes")) == text
