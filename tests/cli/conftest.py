"""The command line as users start it: exit code, standard output and standard error.

`linerate` calls it inside the tests' process, where its rooms are loaded once; what is about processes (signals,
terminals, pipes) starts one with `COMMAND`.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from linerate.array import EmbeddedArray, eight_volumes
from linerate.cli import main

COMMAND = (sys.executable, "-m", "linerate.cli")
TIMEOUT_S = 60.0


def environment(**more: str) -> dict[str, str]:
    """Ours without what would change the output."""
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return plain | {"COLUMNS": "100", "TERM": "xterm-256color"} | more


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def linerate(*words: str | Path, cwd: Path | None = None, **env: str) -> Done:
    """Runs `linerate` to its end."""
    argv = list(map(str, words))
    out, err = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with contextlib.ExitStack() as stack:
        for number, handler in handlers.items():
            stack.callback(signal.signal, number, handler)
        stack.enter_context(mock.patch.dict(os.environ, environment(**env), clear=True))
        stack.enter_context(mock.patch.object(sys, "argv", ["linerate", *argv]))
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        code = main(argv)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def array() -> Iterator[EmbeddedArray]:
    """Eight small memory volumes."""
    with EmbeddedArray(eight_volumes(16 << 20)) as array:
        yield array
