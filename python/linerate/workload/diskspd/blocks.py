"""The blocks of a script over several lines: which conditions and loops a command is in.

A script is not run, so a command in a loop runs once and one behind a condition runs in any case. Both are said; a
command on one side of an `else` is refused. Blocks are braces in PowerShell, and parentheses at the end of a line in
cmd.exe.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from linerate.workload.problems import Problems, SourceLocation

_DEPTH_MAX = 200
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|(?:^|(?<=\s))#.*$")
"""Quoted text, and a comment behind a line."""
_BRACE = re.compile(r"[{}]")
_ELSE = re.compile(r"\belse(if)?\b", re.IGNORECASE)
_LOOP = re.compile(r"\b(for|foreach|while|do|until|foreach-object)\b|%\s*$", re.IGNORECASE)
_SWITCH = re.compile(r"\bswitch\b", re.IGNORECASE)
_IF = re.compile(r"\bif\b", re.IGNORECASE)
_GOTO = re.compile(r"(?:^|[\s&(@])goto\s+:?(\w+)", re.IGNORECASE)
_LABEL = re.compile(r"\s*:(\w+)\s*$")


class _Kind(Enum):
    """What is said of the commands of a block."""

    PLAIN = ""
    ELSE = "a command on one side of an else"
    SWITCH = "the commands of all branches of the switch that begins here run"
    IF = "the commands of the condition that begins here run in any case"
    LOOP = "the commands of the loop that begins here run once"


_HEADS = {_ELSE: _Kind.ELSE, _SWITCH: _Kind.SWITCH, _IF: _Kind.IF, _LOOP: _Kind.LOOP}
"""What a block is by the text before it; the first that is found."""


@dataclass(slots=True)
class _Block:
    kind: _Kind
    place: SourceLocation


@dataclass(slots=True)
class ScriptBlocks:
    """The blocks that are open at a line. is_powershell: of a script of PowerShell, else of cmd.exe."""

    is_powershell: bool
    problems: Problems
    _open: list[_Block] = field(default_factory=list)
    _in_line: list[_Block] = field(default_factory=list)
    _head: str = ""
    """Text before a brace that may stand in the next line."""
    _labels: dict[str, SourceLocation] = field(default_factory=dict)
    _commands: list[SourceLocation] = field(default_factory=list)

    def take(self, place: SourceLocation, line: str) -> None:
        """Goes on to the next line, which is no comment."""
        self._in_line = list(self._open)
        if self.is_powershell:
            self._braces(place, _QUOTED.sub("", line))
        else:
            self._parentheses(place, line.strip())
            self._jumps(place, line)

    def has_command(self, place: SourceLocation) -> None:
        """Notes that the line has a command: notices for the blocks around it, an error beside an `else`."""
        self._commands.append(place)
        for block in self._in_line:
            if block.kind is _Kind.ELSE:
                self.problems.error(place, block.kind.value, "write the one that shall run alone")
            elif block.kind is not _Kind.PLAIN:
                self.problems.notice(block.place, block.kind.value)

    def _braces(self, place: SourceLocation, line: str) -> None:
        begin = 0
        for brace in _BRACE.finditer(line):
            text = self._head + line[begin : brace.start()]
            begin, self._head = brace.end(), ""
            if brace[0] == "}":
                self._close()
                continue
            block = self._push(place, text)
            if block is not None and block.kind in (_Kind.LOOP, _Kind.SWITCH):
                self._in_line.append(block)  # one that also ends in this line
        rest = line[begin:].strip()
        self._head = (self._head if not rest and not begin else rest)[-200:]

    def _parentheses(self, place: SourceLocation, line: str) -> None:
        if line.startswith(")"):
            self._close()
            line = line[1:]
            self._in_line = list(self._open)
        if line.endswith("("):
            self._push(place, line[:-1])

    def _push(self, place: SourceLocation, head: str) -> _Block | None:
        """Opens a block behind the text `head`."""
        kind = next((kind for form, kind in _HEADS.items() if form.search(head)), _Kind.PLAIN)
        if len(self._open) >= _DEPTH_MAX:
            return None
        self._open.append(_Block(kind, place))
        return self._open[-1]

    def _close(self) -> None:
        if self._open:
            self._open.pop()

    def _jumps(self, place: SourceLocation, line: str) -> None:
        """A `goto` back to a label makes a loop of what is between."""
        if (label := _LABEL.match(line)) is not None:
            self._labels[label[1].lower()] = place
        for jump in _GOTO.finditer(line):
            start = self._labels.get(jump[1].lower())
            if start is not None and any(start.line <= one.line <= place.line for one in self._commands):
                self.problems.notice(start, _Kind.LOOP.value)
