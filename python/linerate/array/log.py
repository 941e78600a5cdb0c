"""The log of an array that serves: what it reports goes to standard error, one line for each event.

Events come from the data plane (`_core.Log`: logins refused, limits hit, peers that misbehave), from Python's
`logging`, and from `report`. All of them go through one queue, which limits floods and has an end, so that neither a
flood nor a reader that is slow or gone costs more than lines. docs/array.md lists the events.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self

from linerate import _core

Form = Literal["text", "json"]
Level = Literal["error", "warning", "info", "debug", "trace"]

STANDARD_ERROR = 2
PERIOD_S = 0.2
END_S = 2.0
"""Longest time that the end of the array waits for lines to be written."""

_NUMBER: dict[str, int] = {
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG - 5,
}
_BELOW_ERROR: tuple[Level, ...] = ("warning", "info", "debug", "trace")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_/@[]%+*,")


def line_of(event: dict[str, Any], form: Form) -> str:
    """An event as a line without its end: ISO 8601 in UTC, level, kind, message, then what else is known."""
    time = datetime.fromtimestamp(event["time_s"], UTC).isoformat(timespec="milliseconds")
    about = {"peer": event["peer"]} if event.get("peer") else {}
    about |= event.get("fields", {})
    head = {"time": time.replace("+00:00", "Z"), "level": event["level"], "event": event["event"]}
    if form == "json":
        return json.dumps(head | {"message": event["message"]} | about)
    pairs = "".join(f" {name}={_value(value)}" for name, value in about.items())
    message = event["message"].encode("unicode_escape").decode("ascii")
    return f"{head['time']} {head['level']} {head['event']}: {message}{';' if pairs else ''}{pairs}"


def _value(value: object) -> str:
    """Bare where it can be told apart, else as JSON: what a peer sent must not look like another line or field."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)


class EventLog:
    """Writes events while a `with` block lasts."""

    def __init__(self, form: Form = "text", level: Level = "info", descriptor: int = STANDARD_ERROR) -> None:
        self._form = form
        self._level = level
        self._descriptor = descriptor
        self._core = _core.Log.open(level)
        self._handler = _Handler(self)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def __enter__(self) -> Self:
        """Begins to write."""
        # Also if standard error of this process is closed: lines never go to a file that takes its number.
        self._descriptor = os.dup(self._descriptor)
        logging.getLogger().addHandler(self._handler)
        logging.getLogger("linerate").setLevel(_NUMBER[self._level])
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes what is left, unless that takes too long."""
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger("linerate").setLevel(logging.NOTSET)
        self._ended.set()
        self._thread.join(END_S)

    def report(self, level: Level, event: str, message: str, peer: str | None = None, **fields: Any) -> None:
        """Adds an event. Never blocks."""
        if _NUMBER[level] < _NUMBER[self._level]:
            return
        made = {"level": level, "event": event, "message": message, "peer": peer, "fields": fields}
        self._core.put(json.dumps(made))

    def _run(self) -> None:
        while True:
            is_over = self._ended.is_set()
            lines = [line_of(json.loads(text), self._form) for text in self._core.take(PERIOD_S)]
            if lines:
                # A reader that is gone is no reason to stop: it may come back (a full disk, a log daemon).
                with contextlib.suppress(OSError):
                    _write(self._descriptor, "".join(f"{line}\n" for line in lines).encode())
            if is_over:
                os.close(self._descriptor)
                return


def _write(descriptor: int, data: bytes) -> None:
    """Writes all of it, however slowly it is read."""
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class _Handler(logging.Handler):
    """Takes what Python's `logging` brings: `extra` may give it `event`, `peer` and `fields`."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Adds a record."""
        level: Level = "error"
        for name in _BELOW_ERROR:
            if record.levelno <= _NUMBER[name]:
                level = name
        fields = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = record.exc_info[0].__name__  # its text might hold what a peer sent
        event, peer = getattr(record, "event", "notice"), getattr(record, "peer", None)
        self._log.report(level, event, record.getMessage(), peer, **fields)
