"""The step between a plan and its first write: look at every volume that it writes to, judge, and give it free.

Loads are started from a `Cleared` run only, and only a `Clearance` makes one: so no caller can leave the step out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linerate.errors import InternalError
from linerate.volumes.consent import Consent
from linerate.volumes.identity import written
from linerate.volumes.look import Look, VolumeState
from linerate.workload import RunSpec, VolumeSpec
from linerate.workload.url import path_of

LookAt = Callable[[RunSpec, Collection[str]], Sequence[Look]]
"""Looks at the named volumes of a run, from where it will be loaded."""

HostsOf = Callable[[RunSpec], Mapping[str, Sequence[str]]]
"""By volume, the hosts that load it in a run; this process loads those that are not named."""

_Key = tuple[str, str, str | None, frozenset[str]]


def this_process(spec: RunSpec) -> Mapping[str, Sequence[str]]:
    """A `HostsOf` for loads of this process."""
    del spec
    return {}


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
    hosts_of: HostsOf = field(default=this_process, compare=False)

    def of(self, spec: RunSpec) -> Cleared:
        """A run of the plan. Raises InternalError for one that writes to anything else."""
        names = written(spec)
        hosts = self.hosts_of(spec)
        urls: list[str] = []
        for volume in spec.volumes:
            if volume.name not in names:
                continue
            if _key(volume, hosts) not in self.volumes:
                raise InternalError(
                    f"{spec.name} writes to {volume.name}, which was not looked at", "please report this"
                )
            # A host may reach the volume under a URL of its own.
            urls += [volume.url, *(look.url for look in self.looks if look.volume == volume.name)]
        in_use = {look.url for look in self.looks if look.state in (VolumeState.IN_USE, VolumeState.UNREAD)}
        paths = [path_of(url) for url in urls if url not in in_use]
        return Cleared(spec, tuple(dict.fromkeys(path for path in paths if path is not None)))


def clear(
    specs: Iterable[RunSpec], look_at: LookAt, consent: Consent, hosts_of: HostsOf = this_process
) -> Clearance:
    """Looks at all volumes that the runs write to, each once on each host that loads it, and judges. Volumes that are
    only read are not opened.

    Raises RefusedError for what may not be overwritten, and what looking raises.
    """
    looks: dict[tuple[str, str, str], Look] = {}
    seen: set[_Key] = set()
    checked: set[tuple[_Key, ...]] = set()
    for spec in specs:
        names, hosts = written(spec), hosts_of(spec)
        all_keys = tuple(_key(volume, hosts) for volume in spec.volumes)
        keys = {key for key in all_keys if key[0] in names}
        if keys <= seen and all_keys in checked:
            continue
        checked.add(all_keys)
        fresh = {name for name, *_ in keys - seen}
        for look in look_at(spec, [name for name, *_ in all_keys if name in fresh]):
            looks.setdefault((look.host, look.volume, look.url), look)
        seen |= keys
    found = tuple(looks.values())
    return Clearance(found, consent.judge(found), frozenset(seen), hosts_of)


def virtual(spec: RunSpec, names: Collection[str]) -> tuple[Look, ...]:
    """A `LookAt` for volumes of a virtual SAN: they hold nothing but what loads have written."""
    return tuple(
        Look(volume=volume.name, url=volume.url, state=VolumeState.VIRTUAL)
        for volume in spec.volumes
        if volume.name in names
    )


def _key(volume: VolumeSpec, hosts: Mapping[str, Sequence[str]]) -> _Key:
    return volume.name, volume.url, volume.netns, frozenset(hosts.get(volume.name, ()))
