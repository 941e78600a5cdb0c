"""What the log writes of an event, and that neither a flood nor its reader harms anyone."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from linerate.array.log import EventLog, Form, line_of

AT_S = 1795440915.928


def _event(**more: Any) -> dict[str, Any]:
    return {
        "time_s": AT_S,
        "level": "warning",
        "event": "login_refused",
        "message": "a login is refused",
    } | more


def test_a_line_has_time_level_kind_message_and_what_is_known() -> None:
    event = _event(
        peer="192.0.2.1:4711",
        fields={"status": "0x0202", "why": "not allowed", "tries": 3, "end": None, "at": ["a:1", "b:2"]},
    )
    assert line_of(event, "text") == (
        "2026-11-23T13:35:15.928Z warning login_refused: a login is refused; "
        'peer=192.0.2.1:4711 status=0x0202 why="not allowed" tries=3 end=null at=a:1,b:2'
    )
    assert json.loads(line_of(event, "json")) == {
        "time": "2026-11-23T13:35:15.928Z",
        "level": "warning",
        "event": "login_refused",
        "message": "a login is refused",
        "peer": "192.0.2.1:4711",
        "status": "0x0202",
        "why": "not allowed",
        "tries": 3,
        "end": None,
        "at": ["a:1", "b:2"],
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_peer_sent_makes_no_other_line_or_field(form: Form) -> None:
    evil = 'x\n2026-11-23T00:00:00Z info logged_in: peer=1 \x1b[31m"\u202e'
    line = line_of(_event(message=evil, fields={"name": evil}), form)
    assert line.isascii()
    assert line.isprintable()
    if form == "json":
        assert json.loads(line)["name"] == evil


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _lines(reading: int) -> list[dict[str, Any]]:
    with open(reading, "rb", closefd=False) as file:
        return [json.loads(line) for line in file]


def test_events_of_pythons_logging_come_into_the_same_stream() -> None:
    with _pipe() as (reading, writing):
        with EventLog("json", "info", writing) as log:
            os.close(writing)
            log.report("info", "array_started", "the array serves", portals=["127.0.0.1:3260"])
            extra = {"event": "link_down", "peer": "192.0.2.9", "fields": {"partner": "pair"}}
            logging.getLogger("linerate.array.test").warning("no %s", "answer", extra=extra)
            logging.getLogger("linerate.array.test").debug("too fine")
            log.report("debug", "too_fine", "not asked for")
            try:
                raise ValueError("secret text")
            except ValueError:
                logging.getLogger("elsewhere").exception("it broke")
        lines = _lines(reading)
    assert [line["event"] for line in lines] == ["array_started", "link_down", "notice"]
    assert lines[0]["portals"] == ["127.0.0.1:3260"]
    assert (lines[1]["message"], lines[1]["peer"], lines[1]["partner"]) == ("no answer", "192.0.2.9", "pair")
    assert (lines[2]["level"], lines[2]["exception"]) == ("error", "ValueError")
    assert "secret text" not in json.dumps(lines)
    assert not logging.getLogger().handlers or all(
        "_Handler" not in repr(one) for one in logging.getLogger().handlers
    )


def test_a_reader_that_does_not_read_costs_lines_and_nothing_else() -> None:
    with _pipe() as (reading, writing):
        began = time.monotonic()
        with EventLog("json", "info", writing) as log:
            for number in range(20_000):
                log.report("info", f"kind{number}", "x" * 200)
            assert time.monotonic() - began < 5.0, "reporting never waits"
        assert time.monotonic() - began < 10.0, "nor does the end"
        # Who begins to read finds whole lines.
        os.set_blocking(reading, False)
        data = os.read(reading, 1 << 20)
    assert all(json.loads(line) for line in data.splitlines()[:-1])


def test_a_reader_that_is_gone_does_no_harm() -> None:
    with _pipe() as (reading, writing), EventLog("text", "info", writing) as log:
        os.close(reading)
        for number in range(10):
            log.report("info", "still_there", str(number))
            time.sleep(0.05)
