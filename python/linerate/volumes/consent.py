"""What a caller lets a run overwrite, and whether that is enough for what was found.

in use, a signature, not readable   only what is named
data of unknown kind, blank, files  named, `all`, or a yes on the terminal
in memory, new, of a virtual SAN    nothing need be said
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from linerate.errors import UserError, printable, quote
from linerate.volumes.identity import RefusedError, same_place
from linerate.volumes.look import Look, VolumeState
from linerate.workload.url import parse_target, path_of, without_secret

ALL = "all"
OPTION = "--overwrite"
_MUST_BE_NAMED = (VolumeState.IN_USE, VolumeState.SIGNED, VolumeState.UNREAD)
_MUST_BE_ASKED = (VolumeState.BLANK, VolumeState.DATA, VolumeState.STRUCTURE)
_SHOWN = 32
_ANY_SECRET = {"LINERATE_SMB_PASSWORD": "any", "LIBISCSI_CHAP_PASSWORD": "any"}

Ask = Callable[[Sequence[Look]], bool]
"""Shows a person what will be overwritten and asks; False: no."""


@dataclass(frozen=True, slots=True)
class Consent:
    """What may be overwritten. There is no default: the caller that carries a plan out must say it."""

    names: tuple[str, ...] = ()
    """Volumes by name, path or URL, with any content and any use."""
    whatever_is_unmarked: bool = False
    """All volumes without a signature that are not in use."""
    ask: Ask | None = None
    """Asks for the unmarked ones; None: there is no terminal."""
    agreed: frozenset[tuple[str, str]] = frozenset()
    """Unmarked volumes, (host, URL) each, that the user has agreed to."""

    @classmethod
    def of(cls, words: Iterable[str], ask: Ask | None = None) -> Self:
        """From the values of --overwrite."""
        given = tuple(words)
        return cls(tuple(word for word in given if word != ALL), ALL in given, ask)

    @classmethod
    def nothing(cls) -> Self:
        """For runs that write to nothing that could be lost."""
        return cls()

    def once(self, looks: Sequence[Look]) -> Self:
        """Judges all volumes of a study now, so that none of its runs has to ask. Raises RefusedError."""
        asked = self.judge(looks)
        return replace(self, ask=None, agreed=frozenset((look.host, look.url) for look in looks if asked))

    def covers(self, look: Look) -> bool:
        """A volume is named."""
        return any(_means(name, look) for name in self.names)

    def check_names(self, volumes: Iterable[tuple[str, str]]) -> None:
        """Raises UserError for a name that none of the volumes, (name, URL) each, has."""
        looks = [Look(volume=name, url=url, state=VolumeState.BLANK) for name, url in volumes]
        for word in self.names:
            if not any(_means(word, look) for look in looks):
                there = ", ".join(dict.fromkeys(look.volume for look in looks))
                raise UserError(
                    f"{OPTION} {without_secret(word)}: no volume has this name, path or URL",
                    f"there is {there}; {OPTION} {ALL} means all without a signature that are not in use",
                )

    def _is_agreed(self, look: Look) -> bool:
        return (look.host, look.url) in self.agreed or self.covers(look)

    def judge(self, looks: Sequence[Look]) -> bool:
        """Whether all of this may be overwritten, asking if need be; True if the user was asked. Raises
        RefusedError."""
        named = [look for look in looks if look.state in _MUST_BE_NAMED and not self.covers(look)]
        if named:
            raise RefusedError(
                "this run would overwrite\n" + listing(named),
                f"if that is meant: {' '.join(f'{OPTION} {quote(name)}' for name in _names(named))}",
            )
        asked = [look for look in looks if look.state in _MUST_BE_ASKED and not self._is_agreed(look)]
        if not asked or self.whatever_is_unmarked:
            return False
        if self.ask is None:
            raise RefusedError(
                "this run would overwrite\n" + listing(asked),
                f"there is no terminal to ask on: {OPTION} {ALL}, or {OPTION} {quote(_names(asked)[0])} for one volume",
            )
        if not self.ask(looks):
            raise RefusedError("nothing was overwritten", "answer y, or use another target")
        return True


def listing(looks: Iterable[Look]) -> str:
    """A line for each volume: name, place, size, what was found."""
    return "\n".join(
        columns(
            (on_host(look.host, look.volume), look.where, size_text(look.size_bytes), look.words)
            for look in looks
        )
    )


def columns(rows: Iterable[tuple[str, ...]], most: int | None = _SHOWN) -> list[str]:
    """Rows as lines, one under the other; of more than `most` the first ones, and how many more there are."""
    # Names of mounts and devices may hold anything.
    every = [tuple(printable(cell) for cell in row) for row in rows]
    shown = every[:most]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    more = len(every) - len(shown)
    return [*lines, f"  and {more} more"] if more else lines


def size_text(size_bytes: int | None) -> str:
    """A size as people say it, in units of 1024; empty if it is not known."""
    if size_bytes is None:
        return ""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"


def on_host(host: str, volume: str) -> str:
    """A volume's name, after that of the host that loads it where there are several."""
    return f"{host}: {volume}" if host else volume


def _names(looks: Iterable[Look]) -> list[str]:
    return list(dict.fromkeys(look.volume for look in looks))


def _means(word: str, look: Look) -> bool:
    if word in (look.volume, look.url, look.where):
        return True
    path = path_of(look.url)
    try:
        # The secret of a URL does not matter here, and may be in the environment.
        target = parse_target(word, environ=_ANY_SECRET)
    except UserError:
        return False
    own = path_of(target.url)
    if path is None or own is None:
        return target.url == look.url
    # A bare word is a name, unless it looks like a file.
    return any(mark in word for mark in "/.") and same_place(own, path)
