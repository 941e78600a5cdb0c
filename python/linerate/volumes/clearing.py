"""The step between a plan and its first write: look at every volume that it writes to, judge, and give it free.

Loads are started from a `Cleared` run only, and only a `Clearance` makes one: so no caller can leave the step out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from linerate.errors import InternalError
from linerate.volumes.consent import Consent
from linerate.volumes.identity import written
from linerate.volumes.look import Look, VolumeState
from linerate.workload import RunSpec, VolumeSpec
from linerate.workload.url import path_of

LookAt = Callable[[RunSpec, Collection[str]], Sequence[Look]]
"""Looks at the named volumes of a run, from where it will be loaded."""

_Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Cleared:
    """A run whose volumes may be written to. Made by a `Clearance`."""

    spec: RunSpec
    free: tuple[str, ...] = ()
    """Paths of files and block devices that it writes to and that were found unused."""


@dataclass(frozen=True, slots=True)
class Clearance:
    """What was found about the volumes of a plan that are written to, and given free."""

    looks: tuple[Look, ...]
    asked: bool
    """Somebody has seen the list already."""
    volumes: frozenset[_Key]

    def of(self, spec: RunSpec) -> Cleared:
        """A run of the plan. Raises InternalError for one that writes to anything else."""
        names = written(spec)
        for volume in spec.volumes:
            if volume.name in names and _key(volume) not in self.volumes:
                raise InternalError(
                    f"{spec.name} writes to {volume.name}, which was not looked at", "please report this"
                )
        in_use = {look.url for look in self.looks if look.state in (VolumeState.IN_USE, VolumeState.UNREAD)}
        paths = [
            path_of(volume.url)
            for volume in spec.volumes
            if volume.name in names and volume.url not in in_use
        ]
        return Cleared(spec, tuple(dict.fromkeys(path for path in paths if path is not None)))


def clear(specs: Iterable[RunSpec], look_at: LookAt, consent: Consent) -> Clearance:
    """Looks at all volumes that the runs write to, each once, and judges. Volumes that are only read are not opened.

    Raises RefusedError for what may not be overwritten, and what looking raises.
    """
    looks: list[Look] = []
    seen: set[_Key] = set()
    checked: set[tuple[_Key, ...]] = set()
    for spec in specs:
        names = written(spec)
        fresh = [volume for volume in spec.volumes if volume.name in names and _key(volume) not in seen]
        all_keys = tuple(_key(volume) for volume in spec.volumes)
        if not fresh and all_keys in checked:
            continue
        checked.add(all_keys)
        looks += look_at(spec, [volume.name for volume in fresh])
        seen.update(map(_key, fresh))
    return Clearance(tuple(looks), consent.judge(looks), frozenset(seen))


def virtual(spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
    """A `LookAt` for volumes of a virtual SAN: they hold nothing but what loads have written."""
    return tuple(
        Look(volume=volume.name, url=volume.url, state=VolumeState.VIRTUAL)
        for volume in spec.volumes
        if volume.name in names
    )


def _key(volume: VolumeSpec) -> _Key:
    return volume.name, volume.url, volume.netns
