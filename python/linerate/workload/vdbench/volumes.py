"""SDs as volumes: where each is, how much of it is used, how it is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence

from linerate.errors import UserError
from linerate.workload.overrides import Overrides
from linerate.workload.problems import Problems
from linerate.workload.spec import VolumeSpec
from linerate.workload.url import NO_DEVICE, Target, in_dev, parse_target, path_of
from linerate.workload.vdbench.settings import Flags, Rd, Sd, Wd


class VolumeMaker:
    """Makes volumes; each SD's target is looked up once."""

    def __init__(self, overrides: Overrides, problems: Problems) -> None:
        self._overrides = overrides
        self._problems = problems
        self.targets: dict[str, Target | None] = {}
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
                self.targets[sd.name] = self._target(sd)
            target = self.targets[sd.name]
            if target is None:
                return None
            key = (sd.name, _flags(sd, rd, wds), outstanding or sd.threads)
            if key not in self._made:
                self._made[key] = _volume(sd, target, *key[1:])
            volumes.append(self._made[key])
        return volumes

    def _target(self, sd: Sd) -> Target | None:
        try:
            mapped = self._overrides.luns.resolve(sd.name, sd.lun or "")
            text = mapped or sd.lun
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
        create=target.kind == "file" and sd.size_bytes is not None,
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
