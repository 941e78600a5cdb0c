"""The fabric's process: JSON lines on standard input, one answer per line on standard output.

The first line is a FabricSpec. Once all TAPs exist the answer is `{"ready": {}}`. Then, in any order:

- `{"stats": {}}` is answered by `{"stats": {...}}`, the counters so far,
- `{"change": ChangeSpec}` by `{"changed": {"monotonic_ns": ...}}`, the instant at which it took effect,
- `{"stop": {}}`, or the end of the input, ends the process: the TAPs vanish with it.

A request may have a number, `{"id": 7, "stats": {}}`; its answer then has the same. A refusal is answered by
`{"error": {"blame": ..., "message": ..., "hint": ...}}`; after the first line the fabric goes on as it was. Only the
data plane is imported here, so that the process is up within a tenth of a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import IO, Any

from linerate._core import Fabric
from linerate.errors import LinerateError, UserError


def main() -> int:
    """Serves until the input ends."""
    first = sys.stdin.readline()
    if not first:
        return 0
    _go_first()
    try:
        fabric = Fabric.start(first)
    except LinerateError as error:
        _say(sys.stdout, _refusal(error))
        return error.exit_code
    _say(sys.stdout, {"ready": {}})
    try:
        for line in sys.stdin:
            answer = _answer(fabric, line)
            if answer is None:
                break
            _say(sys.stdout, answer)
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # whoever asked is gone or going
    finally:
        fabric.stop()
    return 0


def _go_first() -> None:
    """Takes the fabric before other work of this host, as far as that is allowed: it stands in for hardware.

    Linux shares processors out among sessions first, so a session of its own counts for more than any priority. The
    end of the input ends the process, so it needs no terminal's signals.
    """
    with contextlib.suppress(OSError):
        os.setsid()
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as autogroup:
            autogroup.write("-20")


def _answer(fabric: Fabric, line: str) -> dict[str, Any] | None:
    """The answer to one request; None for stop."""
    number: dict[str, Any] = {}
    try:
        message = _parsed(line)
        if "id" in message:
            number["id"] = message.pop("id")
        request, body = _request(message, line)
        if request == "stop":
            return None
        return number | _REQUESTS[request](fabric, body)
    except LinerateError as error:
        return number | _refusal(error)


def _parsed(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise UserError(f"not a request: {error}", "send one JSON object per line") from error
    return message if isinstance(message, dict) else {}


def _request(message: dict[str, Any], line: str) -> tuple[str, object]:
    if len(message) == 1:
        request, body = next(iter(message.items()))
        if request in _REQUESTS or request == "stop":
            return request, body
    raise UserError(f"not a request: {line.strip()}", "send {stats: {}}, {change: {...}} or {stop: {}}")


def _stats(fabric: Fabric, _: object) -> dict[str, Any]:
    return {"stats": fabric.stats()}


def _change(fabric: Fabric, body: object) -> dict[str, Any]:
    return {"changed": {"monotonic_ns": fabric.change(json.dumps(body))}}


_REQUESTS: dict[str, Callable[[Fabric, object], dict[str, Any]]] = {"stats": _stats, "change": _change}


def _refusal(error: LinerateError) -> dict[str, Any]:
    return {"error": {"blame": error.blame, "message": error.message, "hint": error.hint}}


def _say(stream: IO[str], message: dict[str, Any]) -> None:
    print(json.dumps(message), file=stream, flush=True)


if __name__ == "__main__":
    sys.exit(main())
