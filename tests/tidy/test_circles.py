"""The imports between the files of a crate have no circle of more than three files."""

from __future__ import annotations

import pytest

from tests.tidy.imports import circles, crates

MOST = 3

KNOWN = {
    # A device server: unit, nexus and the commands between them refer to each other.
    "scsi": 16,
    # One group of members: its operations are in four files, its state in a fifth.
    "storage": 5,
    # The simulated world and what is in it (tests only).
    "sim": 4,
}
"""Files of the one larger circle of a crate. These numbers may only get smaller."""


@pytest.mark.parametrize("name", sorted(crates()))
def test_imports_have_no_large_circles(name: str) -> None:
    large = sorted(
        (sorted(circle) for circle in circles(crates()[name].graph()) if len(circle) > MOST), key=len
    )
    assert [len(circle) for circle in large] == ([KNOWN[name]] if name in KNOWN else []), large


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set()}
    assert circles(graph) == [frozenset("abc")]
