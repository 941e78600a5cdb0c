"""A switch configuration as blocks: a line at the margin and the indented lines below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from linerate.advice.switch.clean import cleaned_lines
from linerate.advice.switch.names import expanded, key
from linerate.advice.switch.short import in_full
from linerate.workload.text import read_content, text_of

_FILE_BYTES_MAX = 8 << 20
_LINE_LENGTH_MAX = 500
_INTERFACES_MAX = 8192
_ENDS = ("!", "exit", "end")
_OPENS = (
    "interface",
    "protocol spanning-tree",
    "class-map",
    "dcb-input",
    "dcb-map",
    "dcb-output",
    "policy-map",
    "port-profile",
    "priority-group",
    "qos profile",
    "qos-policy-output",
    "system qos",
    "template",
    "vlan",
)
"""Lines that begin a block where nothing is indented."""
_GOES_ON = ("port-channel-protocol ", "port-channel ")
"""Lines of a Dell port that come after a `!` of their own."""
_INHERITS = {
    "inherit port-profile": ("port-profile type ethernet", "port-profile"),
    "source template": ("template",),
    "service-profile": ("qos profile",),
}
"""A line of a port that takes over a block (NX-OS, IOS XE, EOS), and how the head of that block begins."""


@dataclass(slots=True)
class ConfigBlock:
    """A line at the margin (`head`) with its lines; all are in lower case and without doubled blanks."""

    head: str
    lines: list[str] = field(default_factory=list)

    def value(self, start: str) -> str | None:
        """What follows the first line that begins with these words; None without such a line."""
        return next(self.values(start), None)

    def values(self, start: str) -> Iterator[str]:
        """What follows each line that begins with these words."""
        for line in self.lines:
            if line == start or line.startswith(f"{start} "):
                yield line[len(start) :].strip()

    def has(self, start: str) -> bool:
        """Whether a line begins with these words."""
        return self.value(start) is not None


class SwitchConfig:
    """All blocks of a configuration, in order."""

    def __init__(self, blocks: Sequence[ConfigBlock]) -> None:
        self.blocks = tuple(blocks)
        self._by_word: dict[str, list[ConfigBlock]] = {}
        for block in blocks:
            self._by_word.setdefault(block.head.split(" ", 1)[0], []).append(block)

    def headed(self, start: str) -> Iterator[tuple[str, ConfigBlock]]:
        """Blocks whose head begins with these words, with the rest of the head."""
        for block in self._by_word.get(start.split(" ", 1)[0], ()):
            if block.head == start or block.head.startswith(f"{start} "):
                yield block.head[len(start) :].strip(), block

    def says(self, start: str) -> bool:
        """Whether a line at the margin begins with these words."""
        return any(True for _ in self.headed(start))

    def value(self, start: str) -> str | None:
        """What follows the first line at the margin that begins with these words."""
        return next((rest for rest, _ in self.headed(start)), None)

    @cached_property
    def interfaces(self) -> Mapping[str, ConfigBlock]:
        """Name -> lines of each interface. Several blocks of one name are one; what comes later goes first.

        A range is its interfaces. What a port inherits comes after its own lines. Interfaces after 8192 are left out.
        """
        found: dict[str, ConfigBlock] = {}
        names: dict[str, str] = {}
        for rest, block in self.headed("interface"):
            if len(found) >= _INTERFACES_MAX:
                break
            for name in expanded(rest.removeprefix("range ").strip()) if rest else ():
                known = names.setdefault(key(name), name)
                found.setdefault(known, ConfigBlock(known)).lines[:0] = block.lines
        for port in found.values():
            port.lines += list(self._inherited(port))
        return found

    def _inherited(self, port: ConfigBlock) -> Iterator[str]:
        for line, heads in _INHERITS.items():
            for name in port.values(line):
                for head in heads:
                    for _, block in self.headed(f"{head} {name}"):
                        yield from block.lines


def read_config_text(path: Path) -> str:
    """The text of a file. Raises UserError when it cannot be read, is no text or is larger than 8 MiB."""
    hint = "give a file with the output of `show running-config`"
    return text_of(path, read_content(path, _FILE_BYTES_MAX, unreadable=hint, too_large=hint))


def parse_config(text: str) -> SwitchConfig:
    """The blocks of a text. Where nothing is indented, a block ends at `!`, `exit` or the next interface."""
    raw = [line[:_LINE_LENGTH_MAX].rstrip().expandtabs(1) for line in cleaned_lines(text)]
    indented = any(line.startswith(" ") and line.strip() not in ("", *_ENDS) for line in raw)
    blocks: list[ConfigBlock] = []
    inside = False
    for line in raw:
        words = in_full(" ".join(line.lower().split()))
        if not words or words in _ENDS or words.startswith("!"):
            inside = inside and not (words in _ENDS and not indented)
            continue
        opens = words.startswith(_OPENS) and not (
            words.startswith("priority-group") and " qos-policy " in words
        )
        inside = inside or (bool(blocks) and words.startswith(_GOES_ON))
        below = line.startswith(" ") if indented else inside and not opens
        if below and blocks:
            blocks[-1].lines.append(words)
        else:
            blocks.append(ConfigBlock(words))
            inside = opens
    return SwitchConfig(blocks)
