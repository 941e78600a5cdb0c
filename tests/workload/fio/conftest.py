"""Fixtures: read a job file of fio from a text."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan, RunSpec, load_workload

NULL = LunMap({"*": "null:8g"})


class ReadFio(Protocol):
    def __call__(self, text: str | bytes, *, luns: LunMap | None = None, **names: str) -> RunPlan: ...


@pytest.fixture
def fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadFio:
    """Reads a job file; all files are on null: targets, and messages name the file w.fio."""
    monkeypatch.chdir(tmp_path)

    def reading(text: str | bytes, *, luns: LunMap | None = None, **names: str) -> RunPlan:
        Path("w.fio").write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_workload("w.fio", substitutions=names, overrides=Overrides(luns=luns or NULL))

    return reading


def only_run(plan: RunPlan) -> RunSpec:
    """The spec of a plan of one run."""
    (run,) = plan.steps()
    return run.spec


def refusal(read: ReadFio, text: str | bytes) -> UserError:
    """The error of a text that must be refused."""
    with pytest.raises(UserError) as caught:
        read(text)
    return caught.value
