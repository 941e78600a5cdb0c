"""The histogram decoder of the tests: the compiled one where it is built, else the plain one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest
from linerate.results import histogram

from tests.support.samples.hdr import PlainHistogram


@pytest.fixture(autouse=True, scope="session")
def histogram_decoder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("linerate._core") is None:
            patch.setattr(histogram, "compiled_decoder", lambda: PlainHistogram.decode)
        yield
