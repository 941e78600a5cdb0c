"""The process behind `EmbeddedArray`: one configuration line in, one line of portals out, serves until input ends."""

from __future__ import annotations

import json
import sys

from linerate import _core
from linerate.errors import LinerateError


def main() -> int:
    """Serves the array that standard input describes until standard input closes."""
    try:
        array = _core.Array.start(sys.stdin.readline())
    except LinerateError as error:
        sys.stdout.write(json.dumps({"error": error.message, "hint": error.hint}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps({"portals": array.portals}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    array.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
