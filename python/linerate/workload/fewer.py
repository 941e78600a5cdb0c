"""A workload on fewer or smaller volumes than its file expects, with a notice of what is different from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from linerate.errors import UserError
from linerate.quantity import size_text
from linerate.workload.plan import FileNotice, PlannedRun, RunPlan
from linerate.workload.spec import RunSpec, VolumeSpec

_SHOWN = 4


def volume_names(plan: RunPlan) -> list[str]:
    """All volumes of a plan, each once, in the order in which its runs name them."""
    return list(dict.fromkeys(volume.name for run in plan.steps() for volume in run.spec.volumes))


def on_first_volumes(plan: RunPlan, count: int, why: str = "") -> tuple[RunPlan, tuple[FileNotice, ...]]:
    """The plan on its first `count` volumes, and what that changes. I/Os in flight are per volume, so fewer are.

    Raises UserError for a workload with fewer volumes, and for one with a stream that is on none of them.
    """
    names = volume_names(plan)
    if count > len(names):
        raise UserError(
            f"--volumes {count}: {plan.name} has {len(names)} volumes ({_listed(names)})",
            f"give at most {len(names)}",
        )
    if count == len(names):
        return plan, ()
    left = frozenset(names[:count])
    made = plan.changed(lambda run: replace(run, spec=_on(run.spec, left)))
    before, after = (max(_in_flight(run.spec) for run in one.steps()) for one in (plan, made))
    message = (
        f"uses {count} of {len(names)} volumes ({_listed(names[:count])}){why}; "
        f"{after} I/Os in flight, not {before}"
    )
    return made, (FileNotice(plan.name, message),)


def within(plan: RunPlan, sizes_bytes: Mapping[str, int]) -> tuple[RunPlan, tuple[FileNotice, ...]]:
    """The plan with no volume larger than it is, and what that changes. Volumes without a size stay as they are."""

    def fits(volume: VolumeSpec) -> VolumeSpec:
        room = sizes_bytes.get(volume.name, 0) - volume.first_byte
        if volume.size_bytes is None or volume.create or not 0 < room < volume.size_bytes:
            return volume
        return volume.model_copy(update={"size_bytes": room})

    def change(run: PlannedRun) -> PlannedRun:
        volumes = tuple(fits(volume) for volume in run.spec.volumes)
        return replace(run, spec=run.spec.model_copy(update={"volumes": volumes}))

    made = plan.changed(change)
    notices = []
    for run, fitted in zip(plan.steps(), made.steps(), strict=True):
        pairs = zip(run.spec.volumes, fitted.spec.volumes, strict=True)
        smaller = [(old, new) for old, new in pairs if old != new]
        if smaller:
            wanted = max(old.size_bytes or 0 for old, _ in smaller)
            used = min(new.size_bytes or 0 for _, new in smaller)
            message = (
                f"uses {size_text(used)} of each volume, not {size_text(wanted)}, because volumes are smaller "
                f"({_listed([new.name for _, new in smaller])}): a cache holds a larger part of them"
            )
            notices.append(FileNotice(run.label, message))
    return made, tuple(notices)


def only(spec: RunSpec, name: str) -> RunSpec:
    """A run with one of its volumes, under one stream: enough to look at it."""
    volumes = tuple(volume for volume in spec.volumes if volume.name == name)
    stream = spec.streams[0].model_copy(update={"volumes": (name,)})
    return spec.model_copy(update={"volumes": volumes, "streams": (stream,)})


def _on(spec: RunSpec, names: frozenset[str]) -> RunSpec:
    streams = []
    for stream in spec.streams:
        left = tuple(name for name in stream.volumes if name in names)
        if not left:
            raise UserError(
                f"{spec.name}: {stream.name} is on {_listed(stream.volumes)} only, which would be left out",
                "give a larger number to --volumes, or change the workload file",
            )
        streams.append(stream.model_copy(update={"volumes": left}))
    volumes = tuple(volume for volume in spec.volumes if volume.name in names)
    return spec.model_copy(update={"volumes": volumes, "streams": tuple(streams)})


def _in_flight(spec: RunSpec) -> int:
    return sum(volume.outstanding for volume in spec.volumes)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more
