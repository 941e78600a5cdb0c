"""A study file for a search among settings: its SANs, workloads and baseline, without the cases that it compares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from linerate.errors import UserError
from linerate.settings import find
from linerate.study.file.model import CaseTable, FactorialTable, StudyFile
from linerate.study.file.reader import load_study
from linerate.study.model import SettingValue, Study
from linerate.toml_lines import key_lines, line_of

_CASE = re.compile(r"\bcase\[(\d+)\]")  # the file has none: it is the case of a factor
Levels = Mapping[str, Sequence[SettingValue]]


def load_factored(
    name_or_path: str | Path, factors: Levels, *, quick: bool = False, seed: int | None = None
) -> tuple[Study, Levels]:
    """The study with one case for the last level of each factor, and the factors: those given, or the file's [factors].

    The first level of each is the baseline's. So every setting is checked on the file's SANs by itself.
    Raises UserError with everything that is wrong.
    """
    used: dict[str, Sequence[SettingValue]] = dict(factors)

    def change(file: StudyFile) -> StudyFile:
        if file.scale is not None:
            raise UserError(
                f"{name_or_path} searches for the largest load ([scale])",
                "tune a study that measures one load",
            )
        if not used:
            _check_names(Path(name_or_path), file.factors)
            used.update(file.factors)
        if not used:
            raise UserError(
                f"{name_or_path}: no settings to tune",
                f"name them: --setting NAME=VALUE,VALUE{_suggestion(file)}; or write [factors]",
            )
        return _with_factors(file, used)

    try:
        return load_study(name_or_path, quick=quick, seed=seed, change=change), used
    except UserError as error:
        names = list(used)
        message = _CASE.sub(lambda found: f"setting {names[int(found[1])]}", error.message)
        raise UserError(message, error.hint) from error


def _check_names(path: Path, factors: Levels) -> None:
    """Raises UserError for a key of [factors] that is no setting."""
    for name in factors:
        try:
            find(name)
        except UserError as error:
            lines = key_lines(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
            where = f"{path}:{line}" if (line := line_of(lines, ("factors", name))) else str(path)
            raise UserError(f"{where}: factors: {error.message}", error.hint) from error


def _suggestion(file: StudyFile) -> str:
    """The settings that the cases of the file change, as part of a hint; empty if they change none."""
    names = list(dict.fromkeys(name for case in file.case for name in case.settings))
    if not names:
        return ""
    return f"; the file's cases change {', '.join(names)} (`linerate settings {names[0]}` shows its values)"


def _with_factors(file: StudyFile, factors: Levels) -> StudyFile:
    first = {name: levels[0] for name, levels in factors.items()}
    settings = {**file.baseline.settings, **first}
    cases = tuple(
        CaseTable(name=f"setting {number}", title=name, settings={name: levels[-1]})
        for number, (name, levels) in enumerate(factors.items(), start=1)
    )
    return file.model_copy(
        update={
            "baseline": file.baseline.model_copy(update={"settings": settings, "claims": ()}),
            "workload": tuple(one.model_copy(update={"cases": ("*",)}) for one in file.workload),
            "case": cases,
            "claim": (),
            "factors": {},
            "factorial": FactorialTable(),
        }
    )
