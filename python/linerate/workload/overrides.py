"""What the command line may change in a workload without editing its file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pydantic import ConfigDict

from linerate.errors import UserError
from linerate.model import Model
from linerate.workload.files import FilesLoadSpec
from linerate.workload.multipath import MultipathTable, PathTable, contradiction, filled_paths
from linerate.workload.plan import FileNotice, PlannedRun, RunPlan
from linerate.workload.spec import (
    TIME_S_MAX,
    MultipathSpec,
    PathSpec,
    RunSpec,
    SessionSpec,
    SmbSpec,
    VolumeSpec,
)
from linerate.workload.url import NO_DEVICE, has_paths, in_dev, path_of, without_secret

_NAMES_SHOWN = 20
_NUMBER_FIELD = re.compile(r"\{n(?:([+-])(\d+))?\}")


@dataclass(frozen=True, slots=True)
class LunMap:
    r"""Where the volumes of a file really are.

    Each entry maps a volume name (`sd1`), the text of its lun (`\\.\PhysicalDrive3`) or a pattern with
    one `*` (`sd*`, `\\.\PhysicalDrive*`, `*`) to a target URL. In the URL `{n}` means the number at
    the end of the volume's name or, failing that, of its lun; `{n-1}` and `{n+1}` count from another start.
    An exact entry wins over a pattern, a longer pattern over a shorter one.
    """

    entries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: list[str]) -> Self:
        """From `--map` options of the form `NAME=URL`."""
        entries: dict[str, str] = {}
        for text in texts:
            key, equals, url = text.partition("=")
            if not (key and equals and url):
                raise UserError(
                    f"--map {without_secret(text)}: no target",
                    "write --map NAME=URL, for example --map sd1=null:8g",
                )
            if entries.setdefault(key, url) != url:
                raise UserError(f"--map {key}: mapped to two targets", "map each volume once")
        return cls(entries)

    def check(self, volumes: Sequence[tuple[str, str]]) -> None:
        """Raises UserError for an entry that means none of a file's volumes, (name, lun) each: its load would go where
        the file says instead."""
        for key in self.entries:
            if not any(
                key in volume or any("*" in key and _matches(key, text) for text in volume)
                for volume in volumes
            ):
                names = ", ".join(
                    f"{name} ({lun})" if lun and lun != name else name for name, lun in volumes[:_NAMES_SHOWN]
                )
                more = f" and {len(volumes) - _NAMES_SHOWN} more" if len(volumes) > _NAMES_SHOWN else ""
                raise UserError(f"--map {key}: no volume has this name or lun", f"there is {names}{more}")

    def resolve(self, name: str, lun: str) -> str | None:
        """The URL for a volume, or None if no entry matches it."""
        for key in (name, lun):
            if key in self.entries:
                return fill_number(self.entries[key], name, lun)
        for key in sorted((k for k in self.entries if "*" in k), key=len, reverse=True):
            if _matches(key, name) or _matches(key, lun):
                return fill_number(self.entries[key], name, lun)
        return None


def _matches(pattern: str, text: str) -> bool:
    before, _, after = pattern.lower().partition("*")
    folded = text.lower()
    fits = len(folded) >= len(before) + len(after)
    return fits and folded.startswith(before) and folded.endswith(after)


def fill_number(url: str, name: str, lun: str) -> str:
    """The URL with `{n}`, `{n-1}`, `{n+1}` replaced by the number of a volume. Raises UserError if it has
    none."""
    if not _NUMBER_FIELD.search(url):
        return url
    digits = re.search(r"(\d+)$", name) or re.search(r"(\d+)\D*$", lun)
    if digits is None:
        raise UserError(
            f"{url}: neither {name} nor {lun} has a number for {{n}}", "name the volume in --map by itself"
        )
    number = int(digits.group(1))

    def fill(match: re.Match[str]) -> str:
        shift = int(match.group(2) or 0)
        return str(number - shift if match.group(1) == "-" else number + shift)

    filled = _NUMBER_FIELD.sub(fill, url)
    if re.search(r"/-\d", filled):
        raise UserError(
            f"{filled}: {{n}} of {name} became negative", "count from another start, for example {n}"
        )
    return filled


class ReplayTable(Model):
    """How a trace is replayed: what `--set trace.KEY=VALUE` gives."""

    model_config = ConfigDict(extra="forbid")

    placement: Literal["fold", "scale"] = "fold"
    """Where offsets go on a volume of another size; see `TraceSpec`."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Changes to every run of a workload; None leaves a value as the file has it. Applied in the order of
    the fields.

    `time_scale` multiplies warm-up and elapsed time; both are rounded up to multiples of the interval, which
    is shortened where it would be longer than half the run.
    """

    time_scale: float | None = None
    warmup_s: float | None = None
    elapsed_s: float | None = None
    interval_s: float | None = None
    pause_s: float | None = None
    size_bytes: int | None = None
    outstanding: int | None = None
    seed: int | None = None
    verify: Literal["off", "on"] | None = None
    workers: int | None = None
    cpus: tuple[int, ...] | None = None
    driver: Literal["auto", "io_uring", "epoll"] | None = None
    wait: Literal["auto", "block", "spin"] | None = None
    session: Literal["own", "shared"] | None = None
    direct: bool | None = None
    create: bool | None = None
    iscsi: SessionSpec | None = None
    smb: SmbSpec | None = None
    paths: tuple[PathTable, ...] | None = None
    """Of every iSCSI volume; may hold {n}, the volume's number."""
    multipath_base: MultipathSpec | None = None
    """In place of what the file says; `multipath` goes over it."""
    multipath: MultipathTable | None = None
    trace_time_scale: float | None = None
    """The recorded times of a trace are multiplied by it."""
    replay: ReplayTable | None = None
    """How a trace is replayed."""
    notices: tuple[FileNotice, ...] = ()
    """How these changes were read otherwise than their author may expect."""
    luns: LunMap = field(default_factory=LunMap)

    def __post_init__(self) -> None:
        for option, value, most, shown in (
            ("outstanding", self.outstanding, 65_536, "65,536"),
            ("size", self.size_bytes, 1 << 62, "4 EiB"),
            ("elapsed", self.elapsed_s, TIME_S_MAX, "366 days"),
            ("interval", self.interval_s, TIME_S_MAX, "366 days"),
            ("time scale", self.time_scale, TIME_S_MAX, f"{TIME_S_MAX:,.0f}"),
            ("time scale", self.trace_time_scale, 1_000, "1,000"),
        ):
            if value is not None and not 0 < value <= most:
                raise UserError(f"{option} {value:g}: out of range", f"more than 0, at most {shown}")
        if self.warmup_s is not None and not 0 <= self.warmup_s <= TIME_S_MAX:
            raise UserError(f"warm-up {self.warmup_s:g}: out of range", "0 s to 366 days")

    def refuse_volume_settings(self, accepted: str) -> None:
        """Raises UserError for a change of volumes: a file system workload has none. accepted: what to do."""
        given = {
            "--target or --map": self.luns.entries or None,
            "--size": self.size_bytes,
            "--outstanding": self.outstanding,
            "--workers": self.workers,
            "--cpus": self.cpus,
            "--driver": self.driver,
            "--create": self.create,
            "--path": self.paths,
        }
        for option, value in given.items():
            if value is not None:
                what = f"{option}: goes with volumes, and this file has file system workloads"
                raise UserError(what, accepted)

    def apply(self, plan: RunPlan) -> RunPlan:
        """The plan with these changes in every run. Targets are mapped by the readers, which know the
        luns."""
        made: dict[int, VolumeSpec] = {}  # runs of a sweep share what is the same in them
        return plan.changed(lambda run: self._change(run, made), self.notices)

    def _change(self, run: PlannedRun, made: dict[int, VolumeSpec]) -> PlannedRun:
        spec = self._with_times(run)
        # A time ends a run before its work does, but not the making of a file structure.
        ends_when_done = run.ends_when_done and (
            self.elapsed_s is None or isinstance(run.spec, FilesLoadSpec)
        )
        keeps_text = spec == run.spec or (ends_when_done and not spec.warmup_s)
        update: dict[str, Any] = {"volumes": self._volumes(spec.volumes, made)}
        for key in ("seed", "verify", "workers", "cpus", "driver", "wait"):
            if (value := getattr(self, key)) is not None:
                update[key] = value
        pause_s = run.pause_s if self.pause_s is None else self.pause_s
        warnings = run.warnings
        if self.interval_s is None and spec.interval_s != run.spec.interval_s:
            message = f"{run.label}: interval {spec.interval_s:g} s, not {run.spec.interval_s:g} s, to fit the times"
            warnings = (*warnings, FileNotice(run.source, message))
        return replace(
            run,
            spec=spec.model_copy(update=update),
            timing_text=run.timing_text if keeps_text else "",
            ends_when_done=ends_when_done,
            pause_s=pause_s,
            warnings=warnings,
        )

    def _with_times(self, run: PlannedRun) -> RunSpec:
        """New times; warm-up and elapsed stay multiples of the interval, a warm-up of one interval stays
        one."""
        spec = run.spec
        changes = (self.time_scale, self.warmup_s, self.elapsed_s, self.interval_s)
        if all(change is None for change in changes):
            return spec
        scale = self.time_scale or 1.0
        one_interval = spec.warmup_s == spec.interval_s
        scaled_s = spec.elapsed_s if run.ends_when_done else spec.elapsed_s * scale
        elapsed_s = scaled_s if self.elapsed_s is None else self.elapsed_s
        interval_s = self.interval_s or min(spec.interval_s, elapsed_s / 2, max(1.0, spec.interval_s * scale))
        warmup_s = spec.warmup_s * scale if self.warmup_s is None else self.warmup_s
        if one_interval and self.warmup_s is None:
            warmup_s = interval_s
        return spec.model_copy(
            update={
                "warmup_s": _rounded_up(warmup_s, interval_s),
                "elapsed_s": _rounded_up(elapsed_s, interval_s),
                "interval_s": interval_s,
            }
        )

    def _volumes(self, volumes: Sequence[VolumeSpec], made: dict[int, VolumeSpec]) -> tuple[VolumeSpec, ...]:
        for volume in volumes:
            if id(volume) not in made:
                made[id(volume)] = self._volume(volume)
        changed = tuple(made[id(volume)] for volume in volumes)
        if self._changes_paths and not any(volume.paths for volume in changed):
            raise UserError(
                "multipath settings, and no volume has paths",
                'give --path "10.1.0.1 -> 10.1.0.10" for each path, and iSCSI targets',
            )
        return changed

    @property
    def _changes_paths(self) -> bool:
        return any(change is not None for change in (self.paths, self.multipath_base, self.multipath))

    def _with_paths(self, volume: VolumeSpec) -> dict[str, Any]:
        """What changes in the paths of an iSCSI volume."""
        paths = volume.paths
        if self.paths is not None:
            paths = self._filled(self.paths, volume)
        multipath = self.multipath_base or volume.multipath
        if self.multipath is not None:
            multipath = self.multipath.over(multipath)
        if (wrong := contradiction(paths, multipath)) is not None:
            raise UserError(f"volume {volume.name}: {wrong.what}", wrong.accepted)
        return {"paths": paths, "multipath": multipath}

    @staticmethod
    def _filled(tables: tuple[PathTable, ...], volume: VolumeSpec) -> tuple[PathSpec, ...]:
        try:
            return filled_paths(tables, lambda text: fill_number(text, volume.name, volume.url))
        except ValueError as error:
            what, _, accepted = str(error).partition("; ")
            raise UserError(f"volume {volume.name}: {what}", accepted) from error

    def _volume(self, volume: VolumeSpec) -> VolumeSpec:
        update: dict[str, Any] = {}
        for key in ("size_bytes", "outstanding", "session", "direct", "create"):
            if (value := getattr(self, key)) is not None:
                update[key] = value
        path = path_of(volume.url)
        if self.create and path is not None and not os.path.exists(path) and in_dev(path):
            raise UserError(f"volume {volume.name}: {path}: no such device", NO_DEVICE)
        if self.iscsi is not None:
            update["iscsi"] = volume.iscsi.merged(self.iscsi)
        if self.smb is not None:
            update["smb"] = volume.smb.merged(self.smb)
        if self._changes_paths and has_paths(volume.url):
            update |= self._with_paths(volume)
        changed = volume.model_copy(update=update)
        if changed.create and changed.size_bytes is None:
            raise UserError(
                f"volume {volume.name}: a file that is made needs a size",
                "add --size, for example --size 8g, or give the volume a size in the workload file; to use a file as "
                "it is, leave --create out",
            )
        return changed


def _rounded_up(time_s: float, interval_s: float) -> float:
    return math.ceil(round(time_s / interval_s, 9)) * interval_s
