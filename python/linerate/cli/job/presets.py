"""`linerate presets`: the workloads that come with Linerate."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from linerate.workload import RunPlan

SCHEMA = "linerate.presets/1"
_HEADINGS = ("preset", "volumes", "size of each", "takes", "runs", "writes", "what it measures")
_LARGE = "null:16t"


def presets(json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """List the workloads of published studies: what they measure, on how many volumes, and how long they take."""
    from linerate.quantity import duration_text
    from linerate.volumes import columns, size_text
    from linerate.workload import PRESETS

    found = [{"name": name, "title": preset.title} | _facts(name) for name, preset in PRESETS.items()]
    if json:
        typer.echo(dumps({"schema": SCHEMA, "presets": found}))
        return
    rows = [
        (
            one["name"],
            str(one["volumes"]),
            size_text(one["size_bytes"]) or "all of it",
            duration_text(one["seconds"]),
            str(one["runs"]),
            "yes" if one["writes"] else "no",
            one["title"],
        )
        for one in found
    ]
    for line in columns([_HEADINGS, *rows], most=None):
        typer.echo(line.removeprefix("  "))
    typer.echo("run one: linerate run --preset NAME --target 'iscsi://HOST/TARGET-NAME/{n-1}' --dry-run")


def _facts(name: str) -> dict[str, Any]:
    """From the preset's own runs."""
    from linerate.volumes import written
    from linerate.workload import LunMap, Overrides, load_workload
    from linerate.workload.fewer import volume_names

    plan: RunPlan = load_workload(name, overrides=Overrides(luns=LunMap({"*": _LARGE})))
    specs = [run.spec for run in plan.steps()]
    sizes = [volume.size_bytes for spec in specs for volume in spec.volumes]
    return {
        "volumes": len(volume_names(plan)),
        "size_bytes": max((size for size in sizes if size is not None), default=None),
        "seconds": plan.seconds,
        "runs": len(plan),
        "writes": any(written(spec) for spec in specs),
    }
