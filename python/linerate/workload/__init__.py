"""Workload: what a run does to its volumes, and the files that say so.

Open this file first. `load_workload` reads a vdbench parameter file, a fio job file, a configuration of Iometer, a
command of diskspd or sqlio, a trace, a Linerate TOML file or a preset by name and gives a `RunPlan`: the runs in
order, each with a `RunSpec` that the data plane takes as JSON.

    plan = load_workload("dell-nic", overrides=Overrides(luns=LunMap({"*": "null:8g"})))
    run = plan.next(None)
    while run is not None:
        ...  # run.spec.seam_json() to the data plane
        run = plan.next(result)

The files of the room: `spec` is the model of one run, `plan` the order of runs, `overrides` what the command line
changes, `url` where a volume is, `reader` what reads which file, `toml_file`, `vdbench/`, `fio/`, `iometer/`,
`diskspd/` and `trace/` the readers, `presets` the published workloads by name. Every wrong input is a `UserError` that
names file, line, the offending text and the accepted form.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linerate.workload.overrides import LunMap, Overrides
from linerate.workload.plan import FileNotice, PlannedRun, RunPlan, StepResult
from linerate.workload.spec import RunSpec, SessionSpec, SmbSpec, StreamSpec, VolumeSpec

if TYPE_CHECKING:
    from linerate.workload.presets import PRESETS
    from linerate.workload.reader import is_command, load_workload

__all__ = [
    "PRESETS",
    "FileNotice",
    "LunMap",
    "Overrides",
    "PlannedRun",
    "RunPlan",
    "RunSpec",
    "SessionSpec",
    "SmbSpec",
    "StepResult",
    "StreamSpec",
    "VolumeSpec",
    "is_command",
    "load_workload",
]

_WITH_READERS = {"PRESETS": "presets", "is_command": "reader", "load_workload": "reader"}


def __getattr__(name: str) -> Any:
    """Loads the readers when one is first asked for: they take as long to import as the models, and a load host reads
    no files."""
    if name not in _WITH_READERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_READERS[name]}"), name)
