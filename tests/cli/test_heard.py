"""A Ctrl-C that falls into a library's callback is a Ctrl-C all the same; a signal ends an array at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

import pytest
from linerate.cli.array.serve import ending_signals, is_asked_to_end
from linerate.errors import LinerateError, UserError
from linerate.interrupt import heard
from pydantic import BaseModel, field_serializer


class Interrupted(BaseModel):
    """A model during whose writing the user presses Ctrl-C."""

    number: int = 1
    by: int = signal.SIGINT

    @field_serializer("number")
    def _number(self, number: int) -> int:
        os.kill(os.getpid(), self.by)
        for _ in range(10**6):  # the handler runs between two steps of the interpreter
            number += 1
        return number


def test_an_interrupted_serialiser_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), heard():
        Interrupted().model_dump_json()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "all is as it was"


def _library() -> None:
    """Makes an error of its own of an interruption that an inner place heard."""
    try:
        with heard():
            Interrupted().model_dump_json()
    except KeyboardInterrupt:
        raise ValueError("what a library made of it") from None


def test_an_inner_place_that_hears_does_not_deafen_the_outer_one() -> None:
    with pytest.raises(KeyboardInterrupt), heard():
        _library()


def test_every_signal_that_has_a_handler_counts() -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), heard():
            Interrupted(by=signal.SIGTERM).model_dump_json()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_errors_that_nobody_asked_for_stay_errors() -> None:
    with pytest.raises(ZeroDivisionError), heard():
        _ = 1 // 0


def _restore() -> None:
    """A Ctrl-C, and then a setting that cannot be put back."""
    with contextlib.suppress(Exception):
        Interrupted().model_dump_json()
    raise UserError("the setting is still set")


def test_what_linerate_itself_found_wrong_is_said() -> None:
    with pytest.raises(LinerateError, match="still set"), heard():
        _restore()


@pytest.mark.timeout(20)
def test_a_signal_at_any_step_of_the_wait_is_heard() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for step in range(12):
            signals = ending_signals()
            left = step

            def at_step(frame: FrameType, event: str, argument: object) -> None:
                nonlocal left
                left -= 1
                if left == -1:
                    signal.raise_signal(signal.SIGTERM)

            sys.setprofile(at_step)
            try:
                heard = is_asked_to_end(signals)
            finally:
                sys.setprofile(None)
            assert heard or left >= 0 or is_asked_to_end(signals), f"step {step}"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
