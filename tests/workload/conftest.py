"""Fixtures: read a vdbench text as if it were a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

import pytest
from linerate.workload import LunMap, Overrides, RunPlan
from linerate.workload.vdbench import load_vdbench

NULL = LunMap({"*": "null:8g"})


class Read(Protocol):
    def __call__(
        self,
        text: str,
        *,
        lenient: Literal["auto"] | bool = "auto",
        overrides: Overrides | None = None,
        **names: str,
    ) -> RunPlan: ...


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads a vdbench text; all SDs are on null: targets, and messages name the file w.vdb."""
    monkeypatch.chdir(tmp_path)

    def reading(
        text: str,
        *,
        lenient: Literal["auto"] | bool = "auto",
        overrides: Overrides | None = None,
        **names: str,
    ) -> RunPlan:
        Path("w.vdb").write_text(text)
        chosen = overrides or Overrides(luns=NULL)
        return load_vdbench([Path("w.vdb")], substitutions=names, lenient=lenient, overrides=chosen)

    return reading
