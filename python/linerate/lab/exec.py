"""Runs a command inside a node of a lab: `python -m linerate.lab.exec SUPERVISOR_PID NETWORK -- COMMAND...`

The command is in the node's network namespace and in the lab's process namespace, so that it ends when the lab goes
down. It has /sys of the node and /proc of the lab, and its controlling terminal is the caller's: a shell works as
usual. Its exit status is passed on, 128 + N for signal N, as shells do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from linerate.errors import LinerateError, UserError
from linerate.lab import system
from linerate.lab.enter import join
from linerate.node import mark_lab

_NOT_FOUND = 127


def run_inside(supervisor_pid: int, network: str, command: Sequence[str]) -> int:
    """Runs the command to its end and returns its status. The calling process itself moves into the node.

    Raises HostError when the lab cannot be entered, UserError when it has gone.
    """
    try:
        network_fd = system.open_namespace(network)
        processes_fd = system.open_namespace(f"/proc/{supervisor_pid}/ns/pid")
    except FileNotFoundError as error:
        raise UserError("the lab does not exist any more", "linerate lab up brings it up again") from error
    join(supervisor_pid)
    system.setns(processes_fd, system.CLONE_NEWPID)
    system.setns(network_fd, system.CLONE_NEWNET)
    mark_lab()
    system.own_mounts()
    with contextlib.suppress(
        OSError
    ):  # then the outer /sys stays, and tools that look there miss the interfaces
        system.mount("sysfs", "/sys", "sysfs")
    child = os.fork()
    if child == 0:
        _become(command)
    # Ctrl-C reaches the command by the terminal; what it makes of it is its own affair.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(command: Sequence[str]) -> None:
    system.die_with_parent(signal.SIGKILL)
    # Our parent is outside of this process namespace; another one has inherited us, before the line above.
    if os.getppid() != 0:
        os._exit(128 + signal.SIGKILL)
    with contextlib.suppress(OSError):  # then programs that look for themselves there find somebody else
        system.mount("proc", "/proc", "proc")
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        sys.stderr.write(f"linerate: {command[0]}: {error.strerror}\n")
        os._exit(_NOT_FOUND)


def main() -> int:
    """The command line of the module."""
    supervisor_pid, network, _, *command = sys.argv[1:]
    try:
        return run_inside(int(supervisor_pid), network, command)
    except LinerateError as error:
        sys.stderr.write(f"linerate: {error.message}\n  -> {error.hint}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
