"""Tests start from the signals of a terminal and with a machine lock of their own; the summary names second tries."""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from linerate.lab.machine_lock import VARIABLE

from tests.support import patience


def _heed_what_the_caller_ignores() -> None:
    """A shell's `&` and nohup leave signals ignored, children inherit that, and Ctrl-C would do nothing in tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_heed_what_the_caller_ignores()


def _have_a_machine_lock_of_our_own() -> None:
    """Other test runs and studies on this machine are not in the way, nor are we in theirs."""
    folder = Path(tempfile.gettempdir()) / f"linerate-tests-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ[VARIABLE] = str(folder / f"lab-{os.getpid()}.lock")


_have_a_machine_lock_of_our_own()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with many long tests come first, so that no worker is left with one of them when the others are done."""
    long_tests = Counter(item.path for item in items if item.get_closest_marker("long"))
    items.sort(key=lambda item: -long_tests[item.path])


def pytest_unconfigure() -> None:
    """Removes the lock's file."""
    Path(os.environ[VARIABLE]).unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the tests that needed more than one attempt, with the count."""
    for line in patience.summary():
        terminalreporter.write_line(line)
