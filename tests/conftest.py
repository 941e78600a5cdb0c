"""Every test starts from the signals of a terminal, wherever the tests themselves are started."""

from __future__ import annotations

import signal


def _heed_what_the_caller_ignores() -> None:
    """A shell's `&` and nohup leave signals ignored, children inherit that, and Ctrl-C would do nothing in tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


_heed_what_the_caller_ignores()
