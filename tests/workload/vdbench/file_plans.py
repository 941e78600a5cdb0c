"""Plans of file system workloads, as tests read them."""

from __future__ import annotations

from linerate.workload import Overrides, RunPlan
from linerate.workload.files import FilesLoadSpec

from tests.workload.conftest import Read


def runs_of(plan: RunPlan) -> list[FilesLoadSpec]:
    """Its runs, all of which are of files."""
    runs = [step.spec for step in plan.steps()]
    assert all(isinstance(run, FilesLoadSpec) for run in runs)
    return [run for run in runs if isinstance(run, FilesLoadSpec)]


def read_plan(read: Read, text: str) -> RunPlan:
    """Of a vdbench text, with its anchors as they are."""
    return read(text, overrides=Overrides())
