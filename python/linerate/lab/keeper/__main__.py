"""The keeper process: one order in, one answer out, then it serves until it is told or its command has gone."""

from __future__ import annotations

import json
import os
import signal
import sys

from linerate.errors import LinerateError
from linerate.lab import protocol, system


def main() -> int:
    """Builds and keeps the lab that standard input orders."""
    # Before anything that takes time: a command that is killed meanwhile must not leave this process behind.
    order = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system.name_process("linerate-lab")
    try:
        from linerate.lab.keeper.build import build
        from linerate.lab.keeper.serve import Loop
        from linerate.lab.keeper.service import Service

        lab = build(order)
        loop = Loop(lab.listener, Service(lab), attached=lab.attached)
    except LinerateError as error:
        _answer(protocol.error_answer(error))
        return error.exit_code
    _answer({"value": None})
    if not lab.attached:
        _let_go()
    loop.run()
    return 0


def _answer(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _let_go() -> None:
    """A detached keeper holds on to nothing of the terminal that it was started from."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
