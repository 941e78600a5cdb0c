"""Fixtures: read commands from the words of a shell or from a script."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunPlan, RunSpec, load_workload

NULL = Overrides(luns=LunMap({"*": "null:64g"}))


class ReadScript(Protocol):
    def __call__(
        self, text: str | bytes, *, name: str = "t.cmd", substitutions: dict[str, str] | None = None
    ) -> RunPlan: ...


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReadScript:
    """Reads a script; all targets are null: targets, and messages name the file."""
    monkeypatch.chdir(tmp_path)

    def reading(
        text: str | bytes, *, name: str = "t.cmd", substitutions: dict[str, str] | None = None
    ) -> RunPlan:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_workload(name, substitutions=substitutions, overrides=NULL)

    return reading


def command(line: str) -> RunPlan:
    """The plan of one command, its words separated by blanks."""
    return load_workload(line.split(), overrides=NULL)


def only_run(plan: RunPlan) -> RunSpec:
    """The spec of a plan of one run."""
    (run,) = plan.steps()
    return run.spec


def refusal(line: str) -> UserError:
    """The error of a command that must be refused."""
    with pytest.raises(UserError) as caught:
        command(line)
    return caught.value
