"""Takes out of a pasted configuration what the terminal or a user added: paging, prompts, banners, comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_CONTROL = re.compile(r"[\x1b\x08\r]|-more|- more", re.IGNORECASE)
"""What every line that a pager has touched has in it."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PAGER = re.compile(r"\s*<?-{1,3} ?more ?-{1,3}>?(?: or \(q\)uit)?", re.IGNORECASE)
_PROMPT = re.compile(r"[\w.:@-]{1,64}(?:\s?\((?:conf|vlan)[^)]*\))?[#>] ?")
_BANNER = re.compile(r"banner (?:motd|login|exec|incoming|prompt-timeout|slip-ppp)\b ?(.*)", re.IGNORECASE)
_EOS_TEXT = re.compile(r"(?:banner (?:motd|login)|comment)", re.IGNORECASE)
_TEXTS = ("banner", "comment")
_EOS_END = "EOF"
_CONTROL_C = "^C"
_HEADS = ("interface", "vlan", "router", "line", "hostname", "class-map", "policy-map", "spanning-tree")
"""Words that begin a line at the margin, for lines whose indentation a pager has taken."""


def cleaned_lines(text: str) -> list[str]:
    """The lines of a configuration as the switch wrote them."""
    ended = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    return list(_without_banners([_as_shown(line.rstrip("\r")) for line in ended.split("\n")]))


def _without_prompt(line: str) -> str:
    prompt = _PROMPT.match(line) if "#" in line or ">" in line else None
    return line[prompt.end() :] if prompt else line


def _as_shown(line: str) -> str:
    """The line as a terminal shows it: later characters overwrite earlier ones after a backspace or a return."""
    if not _CONTROL.search(line):
        return line
    line = _ESCAPE.sub("", line)
    erased = "\b" in line or "\r" in line
    if erased:
        shown: list[str] = []
        at = 0
        for character in line:
            if character == "\b":
                at = max(0, at - 1)
            elif character == "\r":
                at = 0
            else:
                shown[at : at + 1] = [character]
                at += 1
        line = "".join(shown)
    paged = _PAGER.match(line)
    if paged is None and not (erased and line.startswith(" ")):
        return line
    rest = line[paged.end() if paged else 0 :].strip()
    return rest if not rest or rest.split()[0].lower() in _HEADS else f" {rest}"


def _without_banners(lines: Sequence[str]) -> Iterator[str]:
    """A banner may hold anything, also lines that look like settings."""
    at = 0
    while at < len(lines):
        line = _without_prompt(lines[at])
        yield line
        at += 1
        if end := _end_of_text(line):
            last = next((place for place in range(at, len(lines)) if end in lines[place]), None)
            at = at if last is None else last + 1


def _end_of_text(line: str) -> str:
    """What ends the text that this line begins; empty if it begins none, or ends it itself."""
    if not line.lstrip()[:7].lower().startswith(_TEXTS):
        return ""
    if _EOS_TEXT.fullmatch(line.strip()):
        return _EOS_END
    banner = _BANNER.fullmatch(line)
    if banner is None or not banner[1]:
        return ""
    end = _CONTROL_C if banner[1].startswith(_CONTROL_C) else banner[1][0]
    return "" if end in banner[1][len(end) :] else end
