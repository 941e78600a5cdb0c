"""Which workloads are the same: the same load on the same volumes. Seed and settings may differ.

Settings are not part of a workload, so that a line goes on when they change, and the change is marked. The rate of a
curve point is not part of it either: it follows from the maximum of the same run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from linerate.analysis.difference import is_curve_point
from linerate.results import StepRecord
from linerate.workload.spec import RunSpec

_OF_RUN = ("version", "seed", "workers", "cpus", "driver", "wait")
_OF_VOLUME = (
    "netns",
    "user",
    "secret",
    "mutual_user",
    "mutual_secret",
    "session",
    "iscsi",
    "smb",
    "paths",
    "multipath",
)


def step_identity(step: StepRecord) -> str:
    """A digest of the workload of a step. Steps of one run with equal loads differ by their key.

    The load of an imported step is what its tool was asked for.
    """
    if step.given is not None:
        return digest({"step": step.key, "load": step.given.load})
    load = workload_of(step.spec)
    if is_curve_point(step):
        load["arrival"] = {**load.get("arrival", {}), "rate_iops": None}
    return digest({"step": step.key, "load": load})


def workload_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a specification that make the load.

    Defaults are filled in, so that a file of an older version, without a newer key, has the same workload.
    """
    try:
        filled = RunSpec.model_validate(spec).model_dump(mode="json")
    except ValidationError:  # of another version
        filled = dict(spec)
    load = {key: value for key, value in filled.items() if key not in _OF_RUN}
    load["volumes"] = [
        {key: value for key, value in volume.items() if key not in _OF_VOLUME}
        for volume in filled.get("volumes", ())
    ]
    return load


def digest(value: Any) -> str:
    """A short digest of JSON-like data; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
