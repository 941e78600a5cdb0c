"""[scale] of a study file: what it means, and what a study that searches its cases cannot have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.errors import UserError
from linerate.scale import Threshold
from linerate.study.file.model import CaseTable, ScaleTable, StudyFile
from linerate.study.model import Scale, Workload
from linerate.workload.toml_lines import Key

LOAD_MOST = 256
_CHANGED = {"threads": "outstanding", "volumes": "load.volumes"}
"""Axis -> the setting that it changes itself."""
_OF_BLOCKS = ("blocks_min", "blocks_max", "budget", "baselines")


def scale_of(table: ScaleTable, workloads: Sequence[Workload]) -> Scale:
    """The search of each case; the table has passed `unfit_for_scale`."""
    return Scale(
        over=table.over,
        until=Threshold.parse(table.until),
        least=table.least,
        most=_most(table, workloads),
        repeats=table.repeats,
        resolution=table.resolution_percent / 100,
        down=table.down,
        headroom=table.headroom,
    )


def _volumes(workloads: Sequence[Workload]) -> int:
    """Volumes that every workload has."""
    return min((len(one.spec.volumes) for one in workloads if one.spec), default=1)


def _most(table: ScaleTable, workloads: Sequence[Workload]) -> int:
    return table.most or (_volumes(workloads) if table.over == "volumes" else LOAD_MOST)


def _unfit_loads(table: ScaleTable, workloads: Sequence[Workload]) -> Iterator[tuple[Key, str, str]]:
    most, there = _most(table, workloads), _volumes(workloads)
    if table.over == "volumes" and most > there:
        yield ("scale", "most"), f"up to {most} volumes, and a workload has {there}", f"at most {there}"
    if table.least > most:
        yield ("scale", "least"), f"loads from {table.least} to {most}", f"at most {most}"
    try:
        Threshold.parse(table.until)
    except UserError as error:
        yield ("scale", "until"), f"{table.until!r} is no threshold", error.hint


def unfit_for_scale(
    file: StudyFile, workloads: Sequence[Workload], blocks: int | None
) -> Iterator[tuple[Key, str, str]]:
    """Key, fault and remedy of everything that a study with [scale] cannot have."""
    assert file.scale is not None
    yield from _unfit_loads(file.scale, workloads)
    if blocks is not None:
        yield ("scale",), f"--blocks {blocks}: each case is searched once", "leave --blocks out"
    for name in _OF_BLOCKS:
        if name in file.repeat.model_fields_set:
            yield (
                ("repeat", name),
                "each case is searched once, in one block",
                "leave it out; see scale.repeats",
            )
    named = {table.name: number for number, table in enumerate(file.workload)}
    for workload in workloads:
        key: Key = ("workload", named[workload.name])
        if workload.spec is None:
            yield key, "LAN traffic alone has no load that grows", "name a workload file"
        elif workload.spec.arrival.kind != "closed":
            yield (*key, "file"), "it has a rate of its own", "leave the rate out of the workload file"
    tables: list[tuple[Key, CaseTable]] = [(("baseline",), file.baseline)]
    tables += [(("case", number), table) for number, table in enumerate(file.case)]
    taken = {"load.rate", _CHANGED.get(file.scale.over, "load.rate")}
    for key, table in tables:
        for name in sorted(taken & set(table.settings)):
            yield (*key, "settings"), f"{name} is what a search changes", "leave it out"
        if table.claims:
            yield (*key, "claims"), "a search tests no published finding", "leave claims out"
        if table.faults:
            yield (*key, "faults"), "a search has no faults", "leave them out"
    for name in sorted(taken & set(file.factors)):
        yield ("factors", name), f"{name} is what a search changes", "leave it out"
    if file.claim:
        yield ("claim",), "a search tests no published finding", "leave claims out"
