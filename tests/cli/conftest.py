"""The command line as users start it: a process of its own, with its exit code and its two outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray, eight_volumes

COMMAND = (sys.executable, "-m", "linerate.cli")
TIMEOUT_S = 60.0


def environment(**more: str) -> dict[str, str]:
    """Ours without what would change the output."""
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return plain | {"COLUMNS": "100", "TERM": "xterm-256color"} | more


def linerate(*words: str | Path, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `linerate` to its end."""
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**env),
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def array() -> Iterator[EmbeddedArray]:
    """Eight small memory volumes."""
    with EmbeddedArray(eight_volumes(16 << 20)) as array:
        yield array
