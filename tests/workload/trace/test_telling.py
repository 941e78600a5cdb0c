"""How the reading of a long trace is shown."""

from __future__ import annotations

import os
import pty
import sys

import pytest
from linerate.cli import progress
from linerate.cli.job.reading import telling_of_reading


def test_a_log_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    with telling_of_reading("long.csv") as tell:
        tell(0.25)
        tell(0.5)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["reading long.csv: 25%", "reading long.csv: 50%"]
    assert shown.out == ""


def test_what_is_read_at_once_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with telling_of_reading("long.csv") as tell:
        tell(0.5)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with telling_of_reading("long.csv") as tell:
            tell(0.5)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "reading long.csv" in shown
    assert " 50%" in shown
    assert shown.endswith(("\x1b[2K", "\x1b[?25h")), "the line is cleared, the cursor shown"
