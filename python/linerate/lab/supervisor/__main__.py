"""The supervisor process: one request with the topology, then it serves until `down` or its command's end."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from linerate import rpc
from linerate.lab import system

if TYPE_CHECKING:
    from linerate.lab.supervisor.serve import Loop


def main() -> int:
    """Builds and keeps the lab that standard input orders."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system.name_process("linerate-lab")
    loops: list[Loop] = []
    request = sys.stdin.buffer.readline()
    answer = rpc.answer(request, {"up": lambda **order: loops.append(_up(order))})
    try:
        os.write(sys.stdout.fileno(), answer)
    except BrokenPipeError:
        return 1  # the command has ended: the lab is not needed any more
    if not loops:
        return 1
    if not loops[0].attached:
        _let_go()
    loops[0].run()
    return 0


def _up(order: dict[str, Any]) -> Loop:
    from linerate.lab.supervisor.build import build
    from linerate.lab.supervisor.serve import Loop
    from linerate.lab.supervisor.service import LabService

    lab = build(order)
    return Loop(lab.listener, LabService(lab), attached=lab.attached)


def _let_go() -> None:
    """A detached supervisor holds on to nothing of the terminal that it was started from."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
