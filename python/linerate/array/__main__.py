"""The process behind `EmbeddedArray`: a line of configuration in, a line of portals out; then requests and answers.

It serves until its input ends. A line is `{"change": ArrayChange}`, answered with `{"changed": true}`, `{"stats":
true}`, answered with `{"stats": {...}}`, or `{"manage": command}`, answered with `{"reply": {...}}`; what cannot be
done is answered with `{"error": ..., "hint": ..., "blame": ...}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

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
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(array, json.loads(line))) + "\n")
        sys.stdout.flush()
    array.stop()
    return 0


def _answer(array: _core.Array, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if "change" in asked:
            array.change(json.dumps(asked["change"]))
            return {"changed": True}
        if "manage" in asked:
            return {"reply": json.loads(array.manage(json.dumps(asked["manage"])))}
        return {"stats": array.stats()}
    except LinerateError as error:
        return {"error": error.message, "hint": error.hint, "blame": error.blame}


if __name__ == "__main__":
    sys.exit(main())
