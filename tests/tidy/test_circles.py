"""The imports between the files of a crate have no circle of more than three files."""

from __future__ import annotations

import pytest

from tests.tidy.imports import circles, crates

MOST = 3


@pytest.mark.parametrize("name", sorted(crates()))
def test_imports_have_no_large_circles(name: str) -> None:
    assert not [sorted(circle) for circle in circles(crates()[name].graph()) if len(circle) > MOST]


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}
    assert circles(graph) == [frozenset("abc")]


def test_an_import_is_found() -> None:
    graph = crates()["storage"].graph()
    group = "crates/storage/src/raid/group"
    assert f"{group}/mod.rs" in graph[f"{group}/members.rs"]
