"""What the options of `run` and `demo` mean: words, sizes, CPU lists, session options, targets."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ValidationError

from linerate.cli.job.fit import Fitted, fitted_targets
from linerate.cli.job.reading import telling_of_reading
from linerate.errors import UserError, fault_text
from linerate.quantity import SIZE_FORM, parse_size
from linerate.results import WorkloadSource
from linerate.workload import (
    PRESETS,
    FileNotice,
    LunMap,
    Overrides,
    RunPlan,
    SessionSpec,
    SmbSpec,
    is_command,
    load_workload,
)
from linerate.workload.fewer import volume_names
from linerate.workload.foreign import is_trace
from linerate.workload.multipath import PATH_FORM, MultipathTable, PathTable, parse_path, read_conf
from linerate.workload.overrides import ReplayTable, fill_number
from linerate.workload.url import has_paths, is_share, parse_target

Lenient = Literal["auto"] | bool
Model = TypeVar("Model", bound=BaseModel)
_STAND_IN = "iscsi://127.0.0.1/iqn.2026-11.lab.linerate:stand-in/0"
_LARGEST_CPU = 65_535
_GROUPS = ("iscsi", "smb", "multipath", "trace")
"""What --set sets options of."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The workload that was asked for: files, the words of a command of diskspd or sqlio, or a preset, and values for
    its names."""

    files: tuple[str, ...]
    preset: str | None
    substitutions: Mapping[str, str]

    @classmethod
    def of(cls, words: Sequence[str], preset: str | None) -> Self:
        """From the words of the command line: NAME=VALUE, or a preset, unless there is a file of that name."""
        if preset is None and is_command(words):
            return cls(tuple(words), None, {})
        pairs = [word for word in words if "=" in word and not Path(word).exists()]
        files = tuple(word for word in words if word not in pairs)
        if preset is None and len(files) == 1 and files[0] in PRESETS and not Path(files[0]).exists():
            preset, files = files[0], ()
        if preset is None and not files:
            raise UserError("nothing to run", "name a workload file, or --preset dell-nic")
        if preset is not None and files:
            raise UserError(f"--preset {preset} and the file {files[0]}", "run one or the other")
        return cls(files, preset, dict(pair.split("=", 1) for pair in pairs))

    @property
    def source(self) -> str | list[str]:
        """As `load_workload` takes it."""
        if self.preset is not None:
            return self.preset
        return list(self.files) if len(self.files) > 1 else self.files[0]

    def plan(self, lenient: Lenient, overrides: Overrides) -> RunPlan:
        """Its runs, with these changes. Raises UserError."""
        with telling_of_reading(" ".join(self.files)) as tell:
            return load_workload(
                self.source,
                substitutions=self.substitutions,
                lenient=lenient,
                overrides=overrides,
                tell=tell,
            )

    def workload_source(self) -> WorkloadSource:
        """For the manifest: the name, and the text as it was; of a trace, which may be very large, the name only."""
        if is_command(self.files):
            return WorkloadSource(name=self.files[0], format="", text=shlex.join(self.files))
        if len(self.files) == 1 and is_trace(Path(self.files[0])):
            return WorkloadSource(name=self.files[0], format="trace", text="")
        texts = [Path(file).read_text("utf-8", errors="replace") for file in self.files]
        name = self.preset or " ".join(self.files)
        return WorkloadSource(name=name, format="preset" if self.preset else "", text="\n".join(texts))


def size_bytes(text: str | None) -> int | None:
    """Bytes of a size such as 8g."""
    if text is None:
        return None
    try:
        return int(parse_size(text))
    except ValueError as error:
        raise UserError(f"--size {text}: no size", f"write {SIZE_FORM}") from error


def cpu_list(text: str | None) -> tuple[int, ...] | None:
    """CPU numbers of a list such as 0,2-3. Raises UserError."""
    if text is None:
        return None
    cpus: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UserError(f"--cpus {text}: {part!r} is no CPU or range", "write numbers and ranges: 0,2-3")
        if max(int(first), int(last or first)) > _LARGEST_CPU:
            raise UserError(f"--cpus {text}: no host has a CPU {part}", "write numbers and ranges: 0,2-3")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def check_cpus(cpus: Sequence[int] | None) -> None:
    """Raises UserError for CPUs that this process may not use."""
    allowed = os.sched_getaffinity(0)
    if strange := [cpu for cpu in cpus or () if cpu not in allowed]:
        usable = ",".join(map(str, sorted(allowed)))
        raise UserError(f"--cpus: this process may not use CPU {strange[0]}", f"it may use {usable}")


def with_settings(
    overrides: Overrides, settings: Sequence[str], paths: Sequence[str], conf: Path | None
) -> Overrides:
    """Overrides with what --set, --path and --import-multipath say."""
    base, notices = read_conf(conf) if conf is not None else (None, ())
    return replace(
        overrides,
        iscsi=_model_of(SessionSpec, "iscsi", settings),
        smb=_model_of(SmbSpec, "smb", settings),
        paths=tuple(_path(text) for text in paths) or None,
        multipath_base=base,
        multipath=_model_of(MultipathTable, "multipath", settings),
        replay=_model_of(ReplayTable, "trace", settings),
        notices=notices,
    )


def session_of(settings: Sequence[str]) -> SessionSpec:
    """What --set says of the one iSCSI session of a probe."""
    if _model_of(MultipathTable, "multipath", settings) is not None:
        raise UserError("--set multipath.*: a probe is for one path", "give iscsi.KEY=VALUE")
    if _model_of(SmbSpec, "smb", settings) is not None:
        raise UserError("--set smb.*: a probe is for an iSCSI volume", "give iscsi.KEY=VALUE")
    if _model_of(ReplayTable, "trace", settings) is not None:
        raise UserError("--set trace.*: a probe replays no trace", "give iscsi.KEY=VALUE")
    return _model_of(SessionSpec, "iscsi", settings) or SessionSpec()


def _path(text: str) -> PathTable:
    try:
        return parse_path(text)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        what, _, accepted = fault_text(fault["msg"]).partition("; ")
        raise UserError(f"--path {text}: {what}", accepted or f"write {PATH_FORM}") from error
    except ValueError as error:
        what, _, accepted = str(error).partition("; ")
        raise UserError(f"--path: {what}", accepted) from error


def _model_of(model: type[Model], prefix: str, settings: Sequence[str]) -> Model | None:
    """The values of --set PREFIX.KEY=VALUE as a model; None if there are none."""
    values: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        group, _, name = key.partition(".")
        if not equals or not name or group not in _GROUPS:
            raise UserError(
                f"--set {setting}: not iscsi.KEY=VALUE, or the same with smb, multipath or trace",
                "for example --set iscsi.header_digest=crc32c",
            )
        if group == prefix:
            values[name] = value
    if not values:
        return None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        key = str(fault["loc"][0])
        shown, what = f"--set {prefix}.{key}={values.get(key, '')}", fault_text(fault["msg"])
        if (prefix, key) == ("smb", "transport"):
            raise UserError(
                f"{shown}: Linerate's own client of shares has TCP alone, no SMB Direct (RDMA)",
                "leave it out; for RDMA mount the share with mount.cifs -o rdma, and give the path of a file there",
            ) from error
        if fault["type"] == "extra_forbidden":
            raise UserError(f"{shown}: {what}", f"known are {', '.join(model.model_fields)}") from error
        raise UserError(f"{shown}: cannot be used", what) from error


def fitted(
    asked: Asked,
    overrides: Overrides,
    targets: Sequence[str],
    maps: Sequence[str],
    volumes: int | None,
    *,
    strict: bool,
) -> Fitted:
    """The plan with its volumes where --target and --map say, on as many of them as --volumes or the targets say.

    One --target serves all volumes ({n} is the volume's number); several are given to the volumes in order. A preset
    with more volumes than targets uses its first ones. Raises UserError.
    """
    lenient: Lenient = False if strict else "auto"
    entries = dict(LunMap.parse(list(maps)).entries)
    for option, urls in (("--target ", targets), *((f"--map {key}=", [url]) for key, url in entries.items())):
        _check_targets(option, urls)
    is_preset = asked.preset is not None
    if len(targets) == 1:
        entries.setdefault("*", targets[0])
    elif targets:
        names = _volume_names(asked, overrides, lenient)
        volumes = fitted_targets(names, len(targets), volumes, preset=is_preset)
        entries |= dict(zip(names, targets, strict=False))
    if volumes is not None and len(targets) != 1:  # those that are left out may have no target
        for name in _volume_names(asked, overrides, lenient)[volumes:]:
            entries.setdefault(name, _STAND_IN)
    plan = asked.plan(lenient, replace(overrides, luns=LunMap(entries)))
    notices = _without_effect(plan, overrides)
    whole = Fitted(plan, notices, is_preset=is_preset, keeps_sizes=overrides.size_bytes is not None)
    return whole.on_first(volumes)


def _without_effect(plan: RunPlan, overrides: Overrides) -> tuple[FileNotice, ...]:
    """What --set says of sessions that no volume has."""
    urls = {volume.url for run in plan.steps() for volume in run.spec.volumes}
    unused = [
        ("iscsi", overrides.iscsi is not None and not any(map(has_paths, urls)), "a LUN"),
        ("smb", overrides.smb is not None and not any(map(is_share, urls)), "a file on a share"),
    ]
    return tuple(
        FileNotice(f"--set {group}.*", f"no volume of this load is {kind}, so it changes nothing")
        for group, is_unused, kind in unused
        if is_unused
    )


def _check_targets(option: str, urls: Sequence[str]) -> None:
    """Raises UserError for a target of the command line; later it would be taken for one of the workload file."""
    for url in urls:
        try:
            parse_target(fill_number(url, "volume1", ""))
        except UserError as error:
            raise UserError(f"{option}{error.message}", error.hint) from error


def _volume_names(asked: Asked, overrides: Overrides, lenient: Lenient) -> list[str]:
    """Names of all volumes of the workload, read with every volume on a stand-in."""
    return volume_names(asked.plan(lenient, replace(overrides, luns=LunMap({"*": _STAND_IN}))))
