"""Ctrl-C and the other signals that ask a command to end: where they are heard, and where they have to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from linerate.errors import LinerateError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heard() -> Iterator[None]:
    """Within, an error that a Ctrl-C caused leaves as the KeyboardInterrupt that it was.

    A library whose callback is interrupted raises an error of its own, which looks like a defect (a serialiser of
    pydantic does, and keeps no cause). What Linerate itself found wrong stays what it is. Signals reach the main thread
    only; in any other this does nothing.
    """
    asked = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    before = {number: signal.getsignal(number) for number in ENDING}
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    listened = [number for number, handler in before.items() if callable(handler)]
    for number in listened:
        signal.signal(number, hear)
    try:
        yield
    except LinerateError:
        raise
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number in listened:
            signal.signal(number, before[number])


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within, nothing ends the command: a second Ctrl-C must not stop it from putting settings back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
