"""JSON Schemas: of the workload file, for editors, and of the run spec, for programs that drive the data plane.

`python -m linerate.workload.schema` prints the workload file's; with `run`, the run spec's.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from linerate.workload.spec import RunSpec
from linerate.workload.toml_model import WorkloadFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def workload_schema() -> dict[str, Any]:
    """The JSON Schema of a workload file."""
    return {"$schema": _DIALECT, **WorkloadFile.model_json_schema()}


def run_schema() -> dict[str, Any]:
    """The JSON Schema of a run spec."""
    return {"$schema": _DIALECT, **RunSpec.model_json_schema(mode="serialization")}


if __name__ == "__main__":
    wanted = run_schema() if sys.argv[1:] == ["run"] else workload_schema()
    sys.stdout.write(json.dumps(wanted, indent=2) + "\n")
