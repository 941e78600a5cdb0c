"""Workload: what a run does to its volumes, and the files that say so.

Open this file first. `load_workload` reads a vdbench parameter file, a Linerate TOML file or a preset by
name and gives a `Plan`: the runs in order, each with a `RunSpec` that the data plane takes as JSON.

    plan = load_workload("dell-nic", overrides=Overrides(luns=LunMap({"*": "null:8g"})))
    run = plan.next(None)
    while run is not None:
        ...  # run.spec.seam_json() to the data plane
        run = plan.next(result)

The files of the room: `spec` is the model of one run, `plan` the order of runs, `overrides` what the command
line changes, `url` where a volume is, `toml_file` and `vdbench/` the readers, `presets` the published
workloads by name. Every wrong input is a `UserError` that names file, line, the offending text and the
accepted form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.overrides import LunMap, Overrides
from linerate.workload.plan import Notice, Plan, PlannedRun, StepResult
from linerate.workload.spec import RunSpec, SessionOptions, StreamSpec, VolumeSpec

__all__ = [
    "LunMap",
    "Notice",
    "Overrides",
    "Plan",
    "PlannedRun",
    "RunSpec",
    "SessionOptions",
    "StepResult",
    "StreamSpec",
    "VolumeSpec",
    "load_workload",
]

Lenient = Literal["auto"] | bool


def load_workload(
    source: str | Path | Sequence[str | Path],
    *,
    substitutions: Mapping[str, str] | None = None,
    lenient: Lenient = "auto",
    overrides: Overrides | None = None,
) -> Plan:
    """The plan of a workload file, of several vdbench files read as one, or of a preset.

    `substitutions` are vdbench's name=value pairs for `$name`. `lenient` says how a vdbench file is read:
    True forgives blanks after commas and the like with a warning each, False reads exactly as vdbench does,
    "auto" is lenient only for a file that shows these patterns. Raises UserError.
    """
    raise UserError("no workload reader is built in")
