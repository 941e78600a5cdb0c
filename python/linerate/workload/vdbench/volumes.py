"""SDs as volumes: where each is, how much of it is used, how it is opened."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

from linerate.errors import UserError
from linerate.workload.overrides import Overrides
from linerate.workload.problems import Problems
from linerate.workload.spec import VolumeSpec
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of
from linerate.workload.vdbench.settings import Flags, Rd, Sd, Wd


class VolumeMaker:
    """Makes volumes; each SD's target is looked up once. `elsewhere` are the labels of other machines."""

    def __init__(self, overrides: Overrides, problems: Problems, elsewhere: Collection[str]) -> None:
        self._overrides = overrides
        self._problems = problems
        self._elsewhere = elsewhere
        self.targets: dict[str, Target | None] = {}
        """By SD: where it is for the first of its hosts."""
        self.urls: dict[str, dict[str, str]] = {}
        """By SD: the URL for each of its hosts."""
        self._made: dict[tuple[str, Flags, int], VolumeSpec] = {}
        """Runs of a sweep share what is the same in them."""

    def make(
        self, sds: Sequence[Sd], rd: Rd, wds: Sequence[Wd], outstanding: int | None
    ) -> list[VolumeSpec] | None:
        """The volumes of one run, or None if one has no valid target. `outstanding` replaces every SD's
        threads."""
        volumes: list[VolumeSpec] = []
        for sd in sds:
            if sd.name not in self.targets:
                self.targets[sd.name] = self._first_target(sd)
            target = self.targets[sd.name]
            if target is None:
                return None
            key = (sd.name, _flags(sd, rd, wds), outstanding or sd.threads)
            if key not in self._made:
                self._made[key] = _volume(sd, target, *key[1:])
            volumes.append(self._made[key])
        return volumes

    def _first_target(self, sd: Sd) -> Target | None:
        """Where an SD is for the first of its hosts. For the others it may be elsewhere, by the same credentials."""
        away = any(label in self._elsewhere for label in sd.luns)
        by_lun = {lun: self._target(sd, lun, away=away) for lun in dict.fromkeys(sd.luns.values())}
        targets = [target for target in by_lun.values() if target is not None]
        if len(targets) < len(by_lun):
            return None
        first = targets[0]
        if any(replace(target, url=first.url) != first for target in targets):
            what = f"sd={sd.name}: its luns differ in more than their place"
            self._problems.error(
                sd.place, what, "make an SD of each, with one kind of lun and the same secrets"
            )
            return None
        urls = {lun: target.url for lun, target in by_lun.items() if target is not None}
        self.urls[sd.name] = {label: urls[lun] for label, lun in sd.luns.items()}
        return first

    def _target(self, sd: Sd, lun: str | None, *, away: bool) -> Target | None:
        """Where a lun is. Of another machine's paths nothing can be known here."""
        try:
            mapped = self._overrides.luns.resolve(sd.name, lun or "")
            text = mapped or lun
            if text is None:
                self._problems.error(
                    sd.place, f"sd={sd.name}: no lun=", "write lun=path, or --map it to a target"
                )
                return None
            target = parse_target(text)
        except UserError as error:
            self._problems.error(sd.place, f"sd={sd.name}: {error.message}", error.hint)
            return None
        path = path_of(target.url)
        if away and path:
            is_device = path.startswith("/dev/")
            return replace(target, kind="block" if is_device else "file", is_raw=is_device)
        if target.kind == "file" and path and not os.path.exists(path):
            if in_dev(path):
                self._problems.error(sd.place, f"sd={sd.name}: {text}: no such device", NO_DEVICE)
                return None
            if sd.size_bytes is None and not (self._overrides.create and self._overrides.size_bytes):
                what = f"sd={sd.name}: {text} does not exist"
                self._problems.error(sd.place, what, "correct lun=, or give size= to have a file made")
                return None
            self._problems.notice(
                sd.place,
                f"sd={sd.name}: {text} is made unwritten; vdbench would fill it first (formatsds=yes does)",
            )
        return target


def _volume(sd: Sd, target: Target, flags: Flags, outstanding: int) -> VolumeSpec:
    return VolumeSpec(
        name=sd.name,
        url=target.url,
        user=target.user,
        secret=target.secret,
        mutual_user=target.mutual_user,
        mutual_secret=target.mutual_secret,
        first_byte=sd.offset_bytes,
        size_bytes=sd.size_bytes,
        outstanding=outstanding,
        direct=flags.direct or target.kind != "file",
        create=target.can_be_made and sd.size_bytes is not None,
        durable_writes=flags.durable,
        iscsi=target.iscsi,
    )


def _flags(sd: Sd, rd: Rd, wds: Sequence[Wd]) -> Flags:
    """The run's openflags, else its workloads', else the SD's."""
    if rd.flags is not None:
        return rd.flags
    own = [wd.flags for wd in wds if wd.flags is not None]
    if own:
        return Flags(any(f.direct for f in own), any(f.durable for f in own))
    return sd.flags or Flags(direct=False, durable=False)
