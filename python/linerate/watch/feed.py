"""Numbered messages: what a page has to know, in the order in which it became known.

A browser that lost its connection asks for what came after the last number that it saw. A message with a key
replaces the earlier message of that key, so that a state is kept once and a series is kept whole.
"""

from __future__ import annotations

import json
import secrets
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEPT_MOST = 20_000
"""Messages without a key that are kept of each kind: five hours at one interval per second. A report has all."""


@dataclass(frozen=True, slots=True)
class Update:
    """Something new. `replaces` is the key of what it replaces; without one it is added to a series."""

    kind: str
    data: Mapping[str, Any]
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """An update with its number. `data` is JSON."""

    id: str
    number: int
    kind: str
    data: str


def clear(kinds: Sequence[str]) -> Update:
    """Removes everything of these kinds, here and in the browser. No kinds: everything."""
    return Update("clear", {"kinds": list(kinds)}, f"clear {' '.join(kinds)}")


class Feed:
    """The messages that a page needs, oldest first. One thread uses it."""

    def __init__(self, kept_most: int = KEPT_MOST) -> None:
        self._epoch = secrets.token_hex(4)
        self._kept_most = kept_most
        self._number = 0
        self._messages: dict[int, Message] = {}
        self._by_key: dict[str, int] = {}
        self._series: dict[str, deque[int]] = {}
        self.add([clear(())])  # a browser of an earlier server begins anew

    def add(self, updates: Iterable[Update]) -> bool:
        """Numbers the updates and keeps them; True if there were any."""
        before = self._number
        for update in updates:
            if update.kind == "clear":
                self._forget(update.data["kinds"])
            self._number += 1
            data = json.dumps(update.data, separators=(",", ":"), allow_nan=False)
            message = Message(f"{self._epoch}.{self._number}", self._number, update.kind, data)
            if update.replaces:
                self._messages.pop(self._by_key.get(update.replaces, 0), None)
                self._by_key[update.replaces] = self._number
            else:
                series = self._series.setdefault(update.kind, deque())
                series.append(self._number)
                if len(series) > self._kept_most:
                    self._messages.pop(series.popleft(), None)
            self._messages[self._number] = message
        return self._number > before

    def number_of(self, last_id: str) -> int:
        """The number in a message's id; 0 for the id of another server, or none at all."""
        epoch, _, number = last_id.partition(".")
        if epoch != self._epoch or not (number.isascii() and number.isdecimal()):
            return 0
        return min(int(number[:18]), self._number)

    def since(self, number: int) -> list[Message]:
        """The messages that came after a number."""
        found: list[Message] = []
        for known in reversed(self._messages):
            if known <= number:
                break
            found.append(self._messages[known])
        return found[::-1]

    def _forget(self, kinds: Sequence[str]) -> None:
        for number, message in list(self._messages.items()):
            if not kinds or message.kind in kinds:
                del self._messages[number]
        for kind in kinds or list(self._series):
            self._series.pop(kind, None)
