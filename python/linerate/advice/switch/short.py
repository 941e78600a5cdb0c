"""Commands that a user has shortened, as `sw acc vl 10`: switches take any start of a word that is clear."""

from __future__ import annotations

from functools import lru_cache

_WHOLE = (
    "channel-group",
    "channel-member",
    "description",
    "flowcontrol receive",
    "flowcontrol rx",
    "flowcontrol send",
    "hostname",
    "interface",
    "interface range",
    "no shutdown",
    "no switchport",
    "portmode hybrid",
    "priority-flow-control mode",
    "shutdown",
    "spanning-tree port type",
    "spanning-tree portfast",
    "spanning-tree rstp edge-port",
    "switchport access vlan",
    "switchport mode access",
    "switchport mode trunk",
    "switchport trunk allowed vlan",
    "switchport trunk native vlan",
    "system mtu",
)
_PHRASES = tuple(tuple(phrase.split()) for phrase in _WHOLE)
_ALONE = ("shutdown", "no shutdown", "no switchport")
"""Phrases after which nothing follows: `sh` alone is shutdown, `sh run` is a command of the user."""
_LETTERS_MIN = 2


def in_full(line: str) -> str:
    """The line with its first words in full, where they can only mean one command; else the line itself."""
    phrases = _beginning(line.partition(" ")[0])
    if not phrases:
        return line
    words = line.split()
    if any(tuple(words[: len(phrase)]) == phrase for phrase in phrases):
        return line
    found = [phrase for phrase in phrases if _is_short_for(words, phrase)]
    longest = max(map(len, found), default=0)
    clear = [phrase for phrase in found if len(phrase) == longest]
    return " ".join((*clear[0], *words[longest:])) if len(clear) == 1 else line


@lru_cache(maxsize=1024)
def _beginning(word: str) -> tuple[tuple[str, ...], ...]:
    """The phrases whose first word may be this one."""
    return tuple(phrase for phrase in _PHRASES if len(word) >= _LETTERS_MIN and phrase[0].startswith(word))


def _is_short_for(words: list[str], phrase: tuple[str, ...]) -> bool:
    if len(words) < len(phrase) or (" ".join(phrase) in _ALONE and len(words) != len(phrase)):
        return False
    pairs = zip(words, phrase, strict=False)
    return all(whole.startswith(word) and len(word) >= min(_LETTERS_MIN, len(whole)) for word, whole in pairs)
