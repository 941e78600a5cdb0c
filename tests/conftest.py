"""Every test starts from the signals of a terminal; the summary names tests that needed a second try."""

from __future__ import annotations

import signal

import pytest

from tests.support import patience


def _heed_what_the_caller_ignores() -> None:
    """A shell's `&` and nohup leave signals ignored, children inherit that, and Ctrl-C would do nothing in tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_heed_what_the_caller_ignores()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the tests that needed more than one attempt, with the count."""
    for line in patience.summary():
        terminalreporter.write_line(line)
