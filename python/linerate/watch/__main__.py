"""The process of `beside`: serves the page of a directory until standard input closes; prints its address first."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from linerate.errors import LinerateError
from linerate.watch.server import PageServer
from linerate.watch.source import DirectorySource

NICENESS = 10
"""The load comes first."""


def main(directory: str, port: str) -> int:
    """Serves. Exit code 1 if the port cannot be had."""
    os.nice(NICENESS)
    try:
        server = PageServer(DirectorySource(Path(directory)), int(port))
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
