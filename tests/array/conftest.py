"""A state folder of its own for every test that serves, so that arrays of this user are not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.array.control.server import ControlServer

from tests.array.fake import FILE, PretendArray, pretend


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def served(state: Path) -> Iterator[tuple[PretendArray, ControlServer]]:
    """An array that pretends, under a control API that is real."""
    array, config, service = pretend(FILE)
    with ControlServer(service, config) as server:
        yield array, server
