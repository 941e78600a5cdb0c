"""Fixtures: read an Iometer configuration from a text."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan, RunSpec, load_workload

from .writer import Icf

NULL = LunMap({"*": "null:8g"})


class ReadIcf(Protocol):
    def __call__(
        self, text: str | bytes | Icf, *, luns: LunMap | None = None, elapsed_s: float | None = None
    ) -> RunPlan: ...


@pytest.fixture
def icf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadIcf:
    """Reads a configuration; all targets are null: targets, and messages name the file w.icf."""
    monkeypatch.chdir(tmp_path)

    def reading(
        text: str | bytes | Icf, *, luns: LunMap | None = None, elapsed_s: float | None = None
    ) -> RunPlan:
        content = text.text() if isinstance(text, Icf) else text
        Path("w.icf").write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_workload("w.icf", overrides=Overrides(luns=luns or NULL, elapsed_s=elapsed_s))

    return reading


def specs_of(plan: RunPlan) -> list[RunSpec]:
    """The specs of all runs."""
    return [run.spec for run in plan.steps()]


def only_run(plan: RunPlan) -> RunSpec:
    """The spec of a plan of one run."""
    (spec,) = specs_of(plan)
    return spec


def refusal(read: ReadIcf, text: str | bytes | Icf) -> UserError:
    """The error of a text that must be refused."""
    with pytest.raises(UserError) as caught:
        read(text)
    return caught.value
