"""Facts: what was read of a SAN, in one form for every source. A fact that could not be read says why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

FactValue = bool | int | float | str
Kind = Literal[
    "host", "port", "path", "volume", "array", "switch", "switch_port", "trunk", "workload", "study", "image"
]
"""What a fact is about. A path is a session: one port of a host, one portal of an array."""
System = Literal["linux", "windows", "ios", "nxos", "dell", "eos", "topology", "study", "image", "iscsi"]
"""What the facts were read from. ios, nxos, dell and eos are switch configurations; iscsi is an array, asked over the
network."""

SWITCHES: tuple[System, ...] = ("ios", "nxos", "dell", "eos")
THIS_HOST = "this host"
"""The name of the host on which facts are read."""
_NAME_LENGTH_MAX = 80
_TEXT_LENGTH_MAX = 300


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """One thing that rules are about: a port, a volume, a switch.

    `facts` holds what is known; `unknown` holds, for a fact that was looked for and not found, the reason.
    A fact in neither was not looked for.
    """

    kind: Kind
    name: str
    system: System
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", printable(self.name))
        facts = {
            key: safe_text(value) if isinstance(value, str) else value for key, value in self.facts.items()
        }
        object.__setattr__(self, "facts", MappingProxyType(facts))
        unknown = {key: safe_text(why) for key, why in self.unknown.items() if key not in facts}
        object.__setattr__(self, "unknown", MappingProxyType(unknown))

    def having(
        self, facts: Mapping[str, FactValue], unknown: Mapping[str, str] | None = None
    ) -> AuditSubject:
        """The same subject with further facts. A known fact replaces a reason for not knowing it."""
        return replace(self, facts={**self.facts, **facts}, unknown={**self.unknown, **(unknown or {})})


@dataclass(frozen=True, slots=True)
class SessionFact:
    """An iSCSI session: the host's port, the array's portal (an address) and the array (its target name)."""

    host: str
    port: str
    portal: str
    array: str


@dataclass(frozen=True, slots=True)
class VolumePath:
    """A path of a volume. `active` says whether I/O takes it while all paths live; None: that could not be read."""

    volume: str
    host: str
    port: str
    portal: str
    active: bool | None


@dataclass(frozen=True, slots=True)
class SanFactSheet:
    """All facts of one audit, and how ports, portals and volumes belong together."""

    subjects: tuple[AuditSubject, ...] = ()
    sessions: tuple[SessionFact, ...] = ()
    paths: tuple[VolumePath, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader of the report must know about how the facts were found."""

    def of(self, *kinds: Kind) -> Iterator[AuditSubject]:
        """The subjects of these kinds, in order."""
        return (subject for subject in self.subjects if subject.kind in kinds)


def joined(sheets: Iterable[SanFactSheet]) -> SanFactSheet:
    """The facts of several sources as one sheet."""
    read = list(sheets)
    return SanFactSheet(
        tuple(subject for sheet in read for subject in sheet.subjects),
        tuple(session for sheet in read for session in sheet.sessions),
        tuple(path for sheet in read for path in sheet.paths),
        tuple(note for sheet in read for note in sheet.notes),
    )


def printable(text: str) -> str:
    """A name from a file or a device, safe to print: no control characters, at most 80 characters."""
    return safe_text(text.strip(), _NAME_LENGTH_MAX)


def safe_text(text: str, most: int = _TEXT_LENGTH_MAX) -> str:
    """A text from a file or a device, safe to print: no control characters, at most `most` characters."""
    safe = "".join(character if character.isprintable() else "?" for character in text[: most + 1])
    return safe if len(safe) <= most else safe[: most - 3] + "..."
