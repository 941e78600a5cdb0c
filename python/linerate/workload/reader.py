"""A workload from what the user names: a file of any kind that is read here, a command, or a preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from linerate.errors import UserError
from linerate.workload.diskspd import is_command_name, load_command, load_commands
from linerate.workload.fio import load_fio
from linerate.workload.foreign import kind_of_file
from linerate.workload.iometer import load_iometer
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RunPlan
from linerate.workload.presets import PRESETS, load_preset
from linerate.workload.toml_file import load_toml
from linerate.workload.url import is_volume, without_secret
from linerate.workload.vdbench import load_vdbench

Lenient = Literal["auto"] | bool


def load_workload(
    source: str | Path | Sequence[str | Path],
    *,
    substitutions: Mapping[str, str] | None = None,
    lenient: Lenient = "auto",
    overrides: Overrides | None = None,
    tell: Callable[[float], None] | None = None,
) -> RunPlan:
    """The plan of a workload file or a trace, of several vdbench files read as one, of the words of a command of
    diskspd or sqlio, or of a preset.

    `substitutions` are name=value pairs: vdbench's for `$name`, fio's for `${name}`, a script's for `%name%`.
    `lenient` says how a vdbench file is read: True forgives blanks after commas and the like with a warning each,
    False reads exactly as vdbench does, "auto" is lenient only for a file that shows these patterns. `tell` hears how
    much of a long trace was read, 0 to 1. Raises UserError.
    """
    plan = _loaded(source, substitutions, lenient, overrides, tell)
    is_trace = any(run.trace is not None for run in plan.steps())
    if overrides is not None and not is_trace:
        for option, value in (
            ("--time-scale", overrides.trace_time_scale),
            ("--set trace.*", overrides.replay),
        ):
            if value is not None:
                raise UserError(
                    f"{option}: {plan.name} is no trace", "leave it out; rates are in the workload file"
                )
    return plan


def _loaded(
    source: str | Path | Sequence[str | Path],
    substitutions: Mapping[str, str] | None,
    lenient: Lenient,
    overrides: Overrides | None,
    tell: Callable[[float], None] | None,
) -> RunPlan:
    if not isinstance(source, str | Path) and source and is_command(source):
        _refuse_substitutions(substitutions, str(source[0]))
        return load_command([str(word) for word in source], overrides=overrides)
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(one) for one in source]
    if not paths:
        raise UserError("no workload file is given", "name a file, or a preset: " + ", ".join(PRESETS))
    if len(paths) == 1 and not paths[0].is_file() and str(source) in PRESETS:
        _refuse_substitutions(substitutions, f"preset {source}")
        return load_preset(str(source), overrides=overrides)
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        _refuse_volume(str(source if isinstance(source, str | Path) else source[paths.index(missing)]))
    if any(path.suffix.lower() == ".toml" for path in paths) and (missing is None or len(paths) == 1):
        if len(paths) > 1:
            other = next(path for path in paths if path.suffix.lower() == ".toml")
            raise UserError(f"{other}: only vdbench files can be read together", "give one TOML file")
        _refuse_substitutions(substitutions, str(paths[0]))
        return load_toml(paths[0], overrides=overrides)
    if missing is not None:
        if any((missing / name).is_file() for name in ("manifest.json", "study.json")):
            raise UserError(f"{missing}: a directory with results", f"`linerate report {missing}` shows them")
        what = "not a file" if missing.exists() else "no such file"
        presets = ", ".join(PRESETS)
        hint = f"give a workload file, or a preset: {presets}; `linerate studies` lists studies"
        raise UserError(f"{missing}: {what}", hint)
    kinds = [kind_of_file(path) for path in paths]
    if len(paths) > 1 and any(kind != "vdbench" for kind in kinds):
        hint = "give one job file of fio, one configuration of Iometer, one script, or one trace"
        other = next(path for path, kind in zip(paths, kinds, strict=True) if kind != "vdbench")
        raise UserError(f"{other}: only vdbench files can be read together", hint)
    kind = kinds[0]
    if kind == "iolog" or kind == "blkparse" or kind == "snia":
        from linerate.workload.trace.load import load_trace  # arrays take time to import

        _refuse_substitutions(substitutions, str(paths[0]))
        return load_trace(paths[0], kind, overrides=overrides, tell=tell)
    if kind == "fio":
        return load_fio(paths[0], substitutions=substitutions, overrides=overrides)
    if kind == "iometer":
        _refuse_substitutions(substitutions, str(paths[0]))
        return load_iometer(paths[0], overrides=overrides)
    if kind == "diskspd":
        return load_commands(paths[0], substitutions=substitutions, overrides=overrides)
    return load_vdbench(paths, substitutions=substitutions, lenient=lenient, overrides=overrides)


def is_command(words: Sequence[str | Path]) -> bool:
    """Whether words are a command of diskspd or sqlio: the first one is its name, and no file here."""
    return bool(words) and is_command_name(str(words[0])) and not Path(words[0]).is_file()


def _refuse_volume(word: str) -> None:
    if is_volume(word):
        raise UserError(
            f"{without_secret(word)}: a volume, not a workload",
            "name a workload, and the volume with --target: `linerate run --preset dlink --target URL`",
        )


def _refuse_substitutions(substitutions: Mapping[str, str] | None, what: str) -> None:
    if substitutions:
        names = ", ".join(substitutions)
        raise UserError(
            f"{what}: {names} cannot be substituted", "name=value goes with vdbench and fio files only"
        )
