"""`-X` of diskspd: a command that runs a profile, with other times and with targets for its templates.

The rules are those of diskspd 2.2: `-d`, `-W`, `-C` and `-z` replace those of all time spans, `-R` and `-v` change what
is shown, and each target replaces the template with its number (`*1`). All other options are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from linerate.errors import UserError
from linerate.workload.diskspd.lexer import CommandLine
from linerate.workload.diskspd.paths import file_of
from linerate.workload.diskspd.profile import read_profile
from linerate.workload.diskspd.tables import option_of
from linerate.workload.problems import Problems, shorten

_REPLACED = ("d", "W", "C", "z")
_SHOWN = ("R", "v")
_TEMPLATE = re.compile(r"\*(\d{1,9})")


def with_profiles(commands: Iterable[CommandLine], problems: Problems) -> Iterator[CommandLine]:
    """The commands, with those of the profile in the place of each one that runs a profile."""
    for command in commands:
        if command.tool == "diskspd" and any(_letters(word) == "X" for word in command.words):
            yield from _of_profile(command, problems)
        else:
            yield command


def _letters(word: str) -> str:
    """The letters of an option; empty for a target."""
    row = option_of("diskspd", word)
    return row.letters if row is not None else ""


def _of_profile(command: CommandLine, problems: Problems) -> Iterator[CommandLine]:
    place, before = command.place, len(problems.errors)
    options = [word for word in command.words if _letters(word)]
    targets = [word for word in command.words if not _letters(word)]
    if any(_letters(word) for word in command.words[len(options) :]):
        problems.error(
            place, "diskspd: an option behind a target, which diskspd refuses", "write options first"
        )
    paths = [word[2:] for word in options if _letters(word) == "X"]
    if len(paths) > 1:
        problems.error(place, "diskspd: -X twice, which diskspd refuses", "give it once")
    for word in options:
        letters = _letters(word)
        if letters == "Rp":
            problems.error(place, f"{word} is not supported: diskspd prints its profile and makes no load")
        elif letters not in (*_REPLACED, *_SHOWN, "X"):
            what = f"diskspd: {shorten(word)} with -X, which diskspd refuses"
            problems.error(place, what, "write it into the profile; -d, -W, -C, -z, -R and -v go with -X")
    if len(problems.errors) > before:
        return
    replaced = [word for word in options if _letters(word) in _REPLACED]
    used: set[int] = set()
    for span in _spans(command, paths[0], problems):
        first, *others = [
            replace(one, words=tuple(_replaced(one, replaced, targets, used, problems)), others=())
            for one in (span, *span.others)
        ]
        yield replace(first, others=tuple(others))
    for number, target in enumerate(targets, start=1):
        if number not in used and len(problems.errors) == before:
            what = f"diskspd: {shorten(target)}: the profile has no template *{number}, which diskspd refuses"
            problems.error(place, what, "leave the target out, or write the template as a path")


def _spans(command: CommandLine, name: str, problems: Problems) -> Iterator[CommandLine]:
    try:
        yield from read_profile(file_of(command.place, name, problems), problems)
    except UserError as error:
        problems.error(command.place, f"-X{name}: {error.message}", error.hint)


def _replaced(
    span: CommandLine, options: list[str], targets: list[str], used: set[int], problems: Problems
) -> Iterator[str]:
    letters = {_letters(word) for word in options}
    yield from options
    for word in span.words:
        template = _TEMPLATE.fullmatch(word) if targets else None
        if template is None:
            yield from () if _letters(word) in letters else (word,)
            continue
        number = int(template[1])
        used.add(number)
        if number <= len(targets):
            yield targets[number - 1]
        else:
            what = f"{word}: the command has no target with this number, which diskspd refuses"
            problems.error(span.place, what, f"name {number} targets behind the options")
