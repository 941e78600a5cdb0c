"""The keeper process: one order in, one answer out, then it serves until it is told or its command has gone."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any

from linerate.errors import InternalError, LinerateError
from linerate.lab import protocol, system

if TYPE_CHECKING:
    from linerate.lab.keeper.build import Built
    from linerate.lab.keeper.serve import Loop


def main() -> int:
    """Builds and keeps the lab that standard input orders."""
    order = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system.name_process("linerate-lab")
    try:
        lab, loop = _up(order)
        answer: dict[str, Any] = {"value": None}
    except LinerateError as error:
        answer = protocol.error_answer(error)
    except Exception as error:
        traceback.print_exc()
        answer = protocol.error_answer(InternalError(f"the lab could not be built: {error}"))
    try:
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
    except BrokenPipeError:
        return 1  # the command has gone meanwhile: nobody wants the lab any more
    if "error" in answer:
        return 1
    if not lab.attached:
        _let_go()
    loop.run()
    return 0


def _up(order: dict[str, Any]) -> tuple[Built, Loop]:
    from linerate.lab.keeper.build import build
    from linerate.lab.keeper.serve import Loop
    from linerate.lab.keeper.service import Service

    lab = build(order)
    return lab, Loop(lab.listener, Service(lab), attached=lab.attached)


def _let_go() -> None:
    """A detached keeper holds on to nothing of the terminal that it was started from."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
