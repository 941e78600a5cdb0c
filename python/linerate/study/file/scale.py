"""[scale] of a study file: what it means, and what a study that searches its cases cannot have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from linerate.analysis.verdict import shipped_claims
from linerate.errors import UserError
from linerate.plural import plural
from linerate.scale import LOAD_MOST, Threshold
from linerate.scale.reached import load_text
from linerate.study.file.hosts import volumes_by_host
from linerate.study.file.model import CaseTable, ScaleTable, StudyFile
from linerate.study.model import San, Scale, Workload
from linerate.toml_lines import Key

_CHANGED = {
    "threads": ("outstanding",),
    "volumes": ("load.volumes",),
    "hosts": ("load.host", "load.volumes"),
}
"""Axis -> the settings that it changes itself, beside the rate."""
_OF_BLOCKS = ("blocks_min", "blocks_max", "budget", "baselines")

Unfit = Iterator[tuple[Key, str, str]]
"""Key, fault and remedy."""


def scale_of(table: ScaleTable, workloads: Sequence[Workload], sans: Sequence[San]) -> Scale:
    """The search of each case; the table has passed `unfit_for_scale`."""
    return Scale(
        over=table.over,
        until=Threshold.parse(table.until),
        least=table.least,
        most=_most(table, workloads, sans),
        repeats=table.repeats,
        resolution=table.resolution_percent / 100,
        down=table.down,
        headroom=table.headroom,
        curve=table.curve,
        curve_repeats=table.curve_repeats,
        linear_margin=table.linear_margin_percent / 100,
        volumes_per_host=_volumes_per_host(table, sans),
    )


def _volumes(workloads: Sequence[Workload]) -> int:
    """Volumes that every workload has."""
    return min((len(one.spec.volumes) for one in workloads if one.spec), default=1)


def _counts_per_host(table: ScaleTable, sans: Sequence[San]) -> set[int]:
    """How many volumes the hosts have: of computed SANs as the table says, of others as they are."""
    counts = {count for san in sans if san.clock == "real" for count in volumes_by_host(san).values()}
    return counts | ({table.volumes_per_host} if table.volumes_per_host else set())


def _volumes_per_host(table: ScaleTable, sans: Sequence[San]) -> int:
    return max(_counts_per_host(table, sans), default=1) if table.over == "hosts" else 1


def _most(table: ScaleTable, workloads: Sequence[Workload], sans: Sequence[San]) -> int:
    if table.most:
        return table.most
    if table.over == "hosts" and (
        hosts := [len(volumes_by_host(san)) for san in sans if san.clock == "real"]
    ):
        return max(min(hosts), 1)
    if table.over in ("volumes", "hosts"):
        return max(_volumes(workloads) // _volumes_per_host(table, sans), 1)
    return LOAD_MOST


def _unfit_loads(table: ScaleTable, workloads: Sequence[Workload], sans: Sequence[San]) -> Unfit:
    most, there = _most(table, workloads, sans), _volumes(workloads)
    if table.over in ("volumes", "hosts"):
        each = _volumes_per_host(table, sans)
        if most * each > there:
            what = load_text(table.over, most)
            needs = f"{what} with {plural(each, 'volume')} each" if table.over == "hosts" else what
            fewer = f"at most {there // each}, or " if there >= each else ""
            yield (
                ("scale", "most"),
                f"up to {needs}, and a workload has {plural(there, 'volume')}",
                f"{fewer}a workload with {most * each}",
            )
    if table.least > most:
        yield ("scale", "least"), f"loads from {table.least} to {most}", f"at most {most}"
    try:
        Threshold.parse(table.until)
    except UserError as error:
        yield ("scale", "until"), f"{table.until!r} is no threshold", error.hint
    yield from _unfit_curve(table, most)


def _unfit_curve(table: ScaleTable, most: int) -> Unfit:
    key, curve = ("scale", "curve"), table.curve
    if not curve:
        return
    if table.over == "rate":
        yield key, "a paced load has the rate that is asked for", "leave it out"
    if len(curve) < 2 or any(later <= earlier for earlier, later in pairwise(curve)):
        yield key, "two loads or more, each larger than the one before", "for example [1, 2, 4, 8]"
    elif not table.least <= curve[0] <= curve[-1] <= most:
        yield key, f"loads from {curve[0]} to {curve[-1]}", f"loads from {table.least} to {most}"


def _unfit_hosts(table: ScaleTable, sans: Sequence[San]) -> Unfit:
    key = ("scale", "volumes_per_host")
    is_computed = any(san.clock == "virtual" for san in sans)
    if table.over == "hosts" and is_computed and table.volumes_per_host is None:
        yield key, "missing: a computed SAN has no hosts", "write how many volumes each host has"
    if table.volumes_per_host is not None and not (table.over == "hosts" and is_computed):
        yield key, 'it is of over = "hosts" with clock = "virtual"', "leave it out"
    if table.over == "hosts" and len(counts := _counts_per_host(table, sans)) > 1:
        shown = ", ".join(map(str, sorted(counts)))
        yield ("scale", "over"), f"hosts have {shown} volumes", "give all hosts equally many"


def unfit_for_scale(
    file: StudyFile, workloads: Sequence[Workload], sans: Sequence[San], blocks: int | None
) -> Unfit:
    """Everything that a study with [scale] cannot have."""
    assert file.scale is not None
    yield from _unfit_loads(file.scale, workloads, sans)
    yield from _unfit_hosts(file.scale, sans)
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
    taken = {"load.rate", *_CHANGED.get(file.scale.over, ())}
    for key, table in _cases(file):
        for name in sorted(taken & set(table.settings)):
            yield (*key, "settings"), f"{name} is what a search changes", "leave it out"
        if table.faults:
            yield (*key, "faults"), "a search has no faults", "leave them out"
    for name in sorted(taken & set(file.factors)):
        yield ("factors", name), f"{name} is what a search changes", "leave it out"
    yield from _unfit_claims(file, file.scale)


def _cases(file: StudyFile) -> Iterator[tuple[Key, CaseTable]]:
    yield ("baseline",), file.baseline
    for number, table in enumerate(file.case):
        yield ("case", number), table


def _claims(file: StudyFile) -> Iterator[tuple[Key, str]]:
    for key, table in _cases(file):
        for claim in table.claims:
            yield (*key, "claims"), claim
    for number, one in enumerate(file.claim):
        yield ("claim", number), one.id


def _unfit_claims(file: StudyFile, scale: ScaleTable) -> Unfit:
    """A search tests findings about a curve, of loads that are measured."""
    known = shipped_claims()
    for key, name in _claims(file):
        if name not in known:
            continue
        curves = [one for one in known[name].expect if one.curve]
        if not curves:
            yield key, f"{name} is not about growth: a search does not test it", "leave it out"
        for one in curves:
            lacks = [load for load in (one.load_low, one.load_high) if load not in scale.curve]
            if lacks:
                shown = ", ".join(map(str, lacks))
                yield ("scale", "curve"), f"{name} is about loads that it lacks: {shown}", "add them"


def unfit_without_scale(file: StudyFile) -> Unfit:
    """Claims that only a study with [scale] can test."""
    known = shipped_claims()
    for key, name in _claims(file):
        if name in known and any(one.curve for one in known[name].expect):
            yield key, f"{name} is about growth", "add a [scale] table with a curve"
