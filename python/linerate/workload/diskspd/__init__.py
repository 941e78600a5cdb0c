"""Command lines of diskspd and sqlio, alone or in scripts (.cmd, .bat, .ps1, .txt), and profiles of diskspd (XML).

Open this file first. The stages, each in a file of its own: `lexer` (a script to commands), `profile` (a profile to
commands), `with_profile` (`-X`), `tables` (options as data), `settings` and `distribution` (what a command asks for),
`volumes` and `runs` (the steps of a plan).
docs/diskspd.md says what each option does; `documentation` makes it from the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.diskspd.lexer import (
    CommandLine,
    command_of,
    is_command_name,
    is_script,
    read_bytes,
    read_commands,
)
from linerate.workload.diskspd.profile import is_profile, read_profile
from linerate.workload.diskspd.runs import steps_of
from linerate.workload.diskspd.settings import CommandSettings, read_settings
from linerate.workload.diskspd.with_profile import with_profiles
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RunPlan
from linerate.workload.problems import Problems

__all__ = ["is_command_name", "is_profile", "is_script", "load_command", "load_commands"]

_HEAD_BYTES = 65_536


def load_command(words: Sequence[str], *, overrides: Overrides | None = None) -> RunPlan:
    """The plan of one command: the tool's name, options, targets. Raises UserError with everything that is wrong."""
    command = command_of(words)
    return _plan(command.tool, [command], overrides or Overrides(), Problems())


def load_commands(
    path: Path, *, substitutions: Mapping[str, str] | None = None, overrides: Overrides | None = None
) -> RunPlan:
    """The plan of a script with commands, or of a profile; `substitutions` are values of a script's names. Raises
    UserError with everything that is wrong."""
    problems = Problems()
    if is_profile(read_bytes(path)[:_HEAD_BYTES]):
        if substitutions:
            raise UserError(f"{path}: a profile has no names for values", "leave NAME=VALUE out")
        commands = read_profile(path, problems)
    else:
        commands = read_commands(path, substitutions or {}, problems)
    return _plan(path.stem, commands, overrides or Overrides(), problems, str(path))


def _plan(
    name: str, commands: Iterable[CommandLine], overrides: Overrides, problems: Problems, path: str = ""
) -> RunPlan:
    found: list[list[CommandSettings | None]] = [
        [read_settings(one, problems) for one in (command, *command.others)]
        for command in with_profiles(commands, problems)
    ]
    problems.raise_if_any()
    settings = [[one for one in groups if one is not None] for groups in found]
    if not settings:
        raise UserError(f"{path}: no command of diskspd or sqlio", "write commands with options and targets")
    steps = steps_of(settings, overrides, problems)
    problems.raise_if_any()
    return overrides.apply(RunPlan(name, steps, problems.notices))
