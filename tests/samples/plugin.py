"""The histogram decoder of the tests: the compiled one where it is built, else the plain one."""

from __future__ import annotations

import importlib.util

import pytest
from linerate.results import histogram

from tests.samples.hdr import PlainHistogram


@pytest.fixture(autouse=True)
def histogram_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("linerate._core") is None:
        monkeypatch.setattr(histogram, "compiled_decoder", lambda: PlainHistogram.decode)
