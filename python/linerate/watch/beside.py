"""A page beside a command: a process of its own that reads what the command writes, for as long as that lasts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal

from linerate.errors import HostError

STOP_TIMEOUT_S = 6.0


@contextlib.contextmanager
def page_beside(kind: Literal["directory", "array"], name: str) -> Iterator[str]:
    """Gives the address of the page of a directory, which may still be to come, or of an array of this machine.

    The process ends with the `with` block, and with this process however that ends: it reads standard input. Raises
    HostError if it does not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "linerate.watch", kind, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the run
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            _, said = process.communicate()
            raise HostError(
                f"the page did not start: {said.strip() or 'no reason was given'}",
                "leave out --page, and call `linerate watch` later",
            )
        yield url
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
