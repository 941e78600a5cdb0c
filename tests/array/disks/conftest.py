"""What all tests of disks share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_state(state: Path) -> None:
    """Arrays of these tests are found by their verbs only."""
