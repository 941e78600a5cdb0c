"""The process of `beside`: serves a page until standard input closes, and prints its address first."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from linerate.array.control import ControlClient, find
from linerate.errors import LinerateError
from linerate.watch.array import ArraySource
from linerate.watch.server import PageServer
from linerate.watch.source import DirectorySource

NICENESS = 10
"""The load comes first."""


def main(kind: str, name: str) -> int:
    """Serves. The exit code of the error if it cannot."""
    os.nice(NICENESS)
    try:
        source = ArraySource(ControlClient.at(find(name))) if kind == "array" else DirectorySource(Path(name))
        server = PageServer(source)
    except LinerateError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
    print(server.url, flush=True)
    threading.Thread(target=_end_with_input, args=(server,), daemon=True).start()
    server.run()
    return 0


def _end_with_input(server: PageServer) -> None:
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
