"""From a script or a command line to the commands in it: tool, words, line.

Scripts are not run. Commands of diskspd and sqlio are taken out of them line by line, whatever is around them. Loops of
cmd.exe over written values (`for %%b in (8 64) do ..`, `for /l`) are unrolled, and names that `set` gave a value are
replaced. A word whose value only a running script would know is refused.
"""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.errors import UserError
from linerate.workload.diskspd.blocks import ScriptBlocks
from linerate.workload.diskspd.tables import ToolName
from linerate.workload.problems import Problems, SourceLocation, shorten
from linerate.workload.text import read_content, text_of, text_of_head

FILE_BYTES_MAX = 16 << 20
LINE_CHARACTERS_MAX = 32_768
"""Longest command line of Windows."""
LOOP_COMMANDS_MAX = 10_000
_TOOL = r"(?:[^\s\"'|&;<>()=@]*[\\/])?(diskspd|sqlio)(?:a?64l?|32l?|2)?(?:\.exe)?"
"""Also as CrystalDiskMark names its copies of diskspd, and sqlio2."""
_NEXT = r"[-/%$!`@]|[\u2013\u2014]\w|[a-z]:|#\d|[^\s\"']+\s*$"
"""What comes behind the tool's name in a command: an option, a value, a drive, or one word. Others are prose."""
_COMMAND = re.compile(rf"(?:^|(?<=[\s@&|;(\"'=>]))[\"']?{_TOOL}[\"']?\s+(?={_NEXT})", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(@?rem\b|::|[#*;]|@?echo\b|title\b)", re.IGNORECASE)
_NO_RUN = re.compile(
    r"[\s({@]*(x?copy|robocopy|move|del|erase|md|mkdir|cd|pushd|taskkill|title|echo|rem|"
    r"\(?(write|copy|move|remove|new|get|set|test|join|expand|stop|unblock)-\w+)\b",
    re.IGNORECASE,
)
"""Parts of a line that name the tool without running it."""
_CONDITION = re.compile(
    r"[\s({@]*if\s+(not\s+)?(exist\s+(\"[^\"]*\"|\S+)|\(([^()]|\([^()]*\))*\))\s*", re.IGNORECASE
)
_ELSE = re.compile(r"[)}]\s*else\b", re.IGNORECASE)
_SET = re.compile(r"[\s(@]*(?:set\s+\"?(\w+)|\$(\w+)\s*)=(.*)$", re.IGNORECASE)
_TEXT_VALUE = re.compile(r"[\s(@]*(set\s|\$\w+\s*=\s*[\"'])", re.IGNORECASE)
_FOR = re.compile(r"\s*@?for\s+(/l\s+)?(%%?\w)\s+in\s+\(([^)]*)\)\s+do\s+\(?\s*(.*)$", re.IGNORECASE)
_VARIABLE = re.compile(r"%%?\w|%\*|![\w]+!|\$[\w{(]|^@\w|^\(\w")
_WORD_END = re.compile(r"[<>|&;]")
_BLOCK_COMMENT = re.compile(r"<#.*?#>", re.DOTALL)
"""Of PowerShell."""
_OTHER_SCRIPT = re.compile(r"\.ps1[\"']?\s", re.IGNORECASE)
"""A script that a line runs: what follows are its options, also where they name the tool."""
_POWERSHELL = (".ps1", ".psm1")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command of a tool. words: its options and targets, without quotes. weights: those of the targets in
    a queue that they share; empty: all are equal. others: targets of the same run with options of their own (profiles).
    """

    place: SourceLocation
    tool: ToolName
    words: tuple[str, ...]
    weights: tuple[int, ...] = ()
    others: tuple[CommandLine, ...] = ()


def is_command_name(word: str) -> bool:
    """Whether a word of the command line names diskspd or sqlio."""
    return re.fullmatch(_TOOL, word, re.IGNORECASE) is not None


def is_script(head: bytes) -> bool:
    """Whether the beginning of a file has a command of diskspd or sqlio with an option."""
    text = text_of_head(head)
    return any(
        found is not None and re.match(r"[-/]\w", line[found.end() :]) is not None
        for line in text.splitlines()
        if not _COMMENT.match(line)
        for found in [_COMMAND.search(line)]
    )


def command_of(words: Sequence[str]) -> CommandLine:
    """The command that the words of a shell make; the first one names the tool."""
    match = re.fullmatch(_TOOL, words[0], re.IGNORECASE)
    assert match is not None, "checked by is_command_name"
    return CommandLine(SourceLocation("command line", 0), _tool(match[1]), tuple(words[1:]))


def _tool(name: str) -> ToolName:
    return "sqlio" if name.lower() == "sqlio" else "diskspd"


def read_commands(path: Path, substitutions: Mapping[str, str], problems: Problems) -> Iterator[CommandLine]:
    """The commands of a file in order. Raises UserError if it is no text or too large."""
    text = text_of(path, read_bytes(path))
    is_powershell = path.suffix.lower() in _POWERSHELL
    if is_powershell:
        text = _BLOCK_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text).replace("`-", "-")
    values = ChainMap({name.lower(): value for name, value in substitutions.items()}, {})
    blocks = ScriptBlocks(is_powershell, problems)
    for number, line in _joined(text, "`" if is_powershell else "^"):
        place = SourceLocation(str(path), number)
        if len(line) > LINE_CHARACTERS_MAX:
            problems.error(place, f"a line of {len(line):,} characters", f"at most {LINE_CHARACTERS_MAX:,}")
        elif not _COMMENT.match(line):
            blocks.take(place, line)
            for command in _commands(place, line, values, problems):
                blocks.has_command(place)
                yield command


def read_bytes(path: Path) -> bytes:
    """All of a file. Raises UserError if it cannot be read, is a pipe or a device, or is too large."""
    unreadable, too_large = "name a file that can be read", "name a script or a profile"
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise UserError(f"{path}: not a file", unreadable)  # a pipe would be waited for
    return read_content(path, FILE_BYTES_MAX, unreadable=unreadable, too_large=too_large)


def _joined(text: str, end: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; those that go on are joined, up to the longest command line."""
    first, parts = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        stripped = line.rstrip()
        parts += stripped.removesuffix(end)
        if stripped.endswith(end) and len(parts) <= LINE_CHARACTERS_MAX:
            parts += " "
            continue
        yield first, parts
        first, parts = 0, ""
    if parts:
        yield first, parts


def _commands(
    place: SourceLocation, line: str, values: ChainMap[str, str], problems: Problems
) -> Iterator[CommandLine]:
    for count, plain in enumerate(_unrolled(line), start=1):
        if count > LOOP_COMMANDS_MAX:
            problems.error(place, f"more than {LOOP_COMMANDS_MAX:,} turns of a loop", "write a shorter loop")
            return
        filled = _filled(plain, values)
        if len(filled) > LINE_CHARACTERS_MAX:
            what = f"more than {LINE_CHARACTERS_MAX:,} characters with the values of its names"
            problems.error(place, what, "write shorter values")
            return
        for whole in _parts(filled):
            part = _behind_condition(place, whole, problems)
            found = None if _NO_RUN.match(part) or _TEXT_VALUE.match(part) else _COMMAND.search(part)
            if found is not None and _OTHER_SCRIPT.search(part, 0, found.start()):
                continue
            if found is None:
                if (given := _SET.match(part)) is not None:
                    values.maps[-1][(given[1] or given[2]).lower()] = given[3].strip().strip("\"'")
                continue
            words = _words(part[found.end() :])
            variable = next((word for word in words if _VARIABLE.search(word)), None)
            if variable is not None:
                what = f"{shorten(variable)}: a value that only the running script knows"
                problems.error(place, what, "write the value, or give NAME=VALUE behind the file")
            elif words:
                yield CommandLine(place, _tool(found[1]), words)


def _behind_condition(place: SourceLocation, part: str, problems: Problems) -> str:
    """A part of a line without the `if` that it begins with."""
    condition = _CONDITION.match(part)
    if condition is None:
        return part
    rest = part[condition.end() :].strip()
    if rest[:1] in ("(", "{"):
        rest = rest[1:].rstrip(" )}")
    if _COMMAND.search(rest) and not _NO_RUN.match(rest):
        if _ELSE.search(rest):
            problems.error(place, "a command on one side of an else", "write the one that shall run alone")
            return ""
        problems.notice(place, "the command is behind a condition, and runs here in any case")
    return rest


def _parts(line: str) -> Iterator[str]:
    """The commands that a line has side by side, without `&`, `|` and `;` between them."""
    part, quoted = "", False
    for character in line:
        quoted ^= character == '"'
        if character in "&|;" and not quoted:
            yield part
            part = ""
        else:
            part += character
    yield part


def _unrolled(line: str) -> Iterator[str]:
    """The line once for each turn of its loops."""
    loop = _FOR.match(line)
    if loop is None:
        yield line.rstrip(" )") if line.count(")") > line.count("(") else line
        return
    is_counted, name, items, body = loop.groups()
    for value in _counted(items) if is_counted else re.split(r"[\s,;]+", items.strip()):
        yield from _unrolled(body.replace(name, value))


def _counted(items: str) -> Iterator[str]:
    """The values of `for /l`: first, step, last."""
    numbers = re.fullmatch(r"\s*(-?\d{1,18})[\s,]+(-?\d{1,18})[\s,]+(-?\d{1,18})\s*", items)
    if numbers is None or not int(numbers[2]):
        return
    first, step, last = (int(number) for number in numbers.groups())
    yield from map(str, range(first, last + (1 if step > 0 else -1), step))


def _filled(line: str, values: Mapping[str, str]) -> str:
    """The line with the names replaced that have a value, until it is too long."""
    if not values:
        return line
    room = LINE_CHARACTERS_MAX + 1

    def value(match: re.Match[str]) -> str:
        nonlocal room
        name = match[1] or match[2] or match[3] or match[4]
        found = values.get(name.lower(), match[0]) if room > 0 else ""
        room -= len(found)
        return found

    return re.sub(r"%(\w+)%|\$\(\$(\w+)\)|\$\{?(\w+)\}?|!(\w+)!", value, line)


def _words(text: str) -> tuple[str, ...]:
    """Words up to the end of the command: quotes hold blanks together, and `>`, `|`, `&`, `;` end it. So does a `}`
    that closes the block around it."""
    words: list[str] = []
    word, quote, depth = "", "", 0
    for character in text + " ":
        if quote:
            quote = "" if character == quote else quote
            word += "" if not quote else character
        elif character in "\"'":
            quote = character
        elif _WORD_END.match(character) or (character == "}" and not depth):
            if word and not word.isdigit():  # `2>` is a redirection as a whole
                words.append(word)
            word = ""
            break
        elif character.isspace():
            if word:
                words.append(word)
            word = ""
        else:
            depth += (character == "{") - (character == "}")
            word += character
    if word := word.strip():  # behind the last quote, which closes that of a whole command
        words.append(word)
    return tuple(words)
