"""The lab's abstract Unix socket, over which a command sends requests (`linerate.rpc`) to the supervisor.

Each side identifies the other by the credentials that the kernel gives for the socket.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

from linerate import rpc
from linerate.errors import HostError, UserError
from linerate.lab import system

ANSWER_TIMEOUT_S = 30.0

_HOLDER_TIMEOUT_S = 0.5
_LOOK_S = 0.01

_PREFIX = "linerate-lab"
NAME_FORM = "letters, digits and hyphens, at most 48, a letter or digit first"
_STEM_MAX = 39
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,47}")


def checked_name(name: str) -> str:
    """A lab's name, if it is one. Raises UserError."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is not a valid lab name", f"use {NAME_FORM}")
    return name


def name_after(text: str) -> str:
    """A lab's name made of any text, such as a topology's: `my_san` is my-san. There is room for an ending."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text)[:_STEM_MAX].strip("-") or "lab"


def address(name: str) -> str:
    """The abstract socket of this user's lab of that name."""
    return f"\0{_PREFIX}/{system.outer_uid()}/{name}"


def names() -> list[str]:
    """The labs of this user that are up, found in the kernel's own list of sockets.

    Anybody may bind a socket of any name: what is not served by a process of this user is not listed.
    """
    start = f"@{_PREFIX}/{system.outer_uid()}/"
    found = set()
    # A name may be any bytes: ends of lines, and what is no text at all.
    for line in Path("/proc/net/unix").read_bytes().decode(errors="replace").split("\n"):
        path = line.split(" ", maxsplit=7)[-1].lstrip(" ")
        name = path.removeprefix(start)
        if name != path and _NAME.fullmatch(name):
            found.add(name)
    return sorted(name for name in found if holder(name) == os.geteuid())


def holder(name: str) -> int | None:
    """The user whose process serves the socket of a lab of that name, as seen from here; None if there is none."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            _connect(asking, name, _HOLDER_TIMEOUT_S)  # somebody who never accepts shall not hold us up
        except OSError:
            return None
        return system.peer_of(asking)[1]


def _connect(asking: socket.socket, name: str, timeout_s: float) -> None:
    """Connects to a lab. It may be too busy to accept at once, for instance while it is built. Raises OSError."""
    asking.setblocking(False)
    pause = threading.Event()
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return asking.connect(address(name))
        except BlockingIOError:  # the queue is full, and the kernel does not say when there is room
            if time.monotonic() >= deadline_s:
                raise
            pause.wait(_LOOK_S)


class _Client(rpc.Client):
    def ended(self) -> HostError:
        return HostError(
            "the lab does not exist any more: its supervisor was killed or failed, and the kernel removed all of it",
            "bring it up again",
        )


class LabConnection:
    """A command's requests to the supervisor of a lab."""

    def __init__(self, name: str) -> None:
        """Connects to the lab of that name. Raises UserError when there is none, or when it is someone else's."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            _connect(self._socket, name, ANSWER_TIMEOUT_S)
        except ConnectionRefusedError as error:
            self._socket.close()
            raise UserError(f"no lab named {name} is up", _known()) from error
        except BlockingIOError as error:
            self._socket.close()
            what = f"the lab {name} has taken no command for {ANSWER_TIMEOUT_S:.0f} s"
            raise HostError(
                what, "look what holds its supervisor (linerate-lab) up, and try again"
            ) from error
        except OSError as error:
            self._socket.close()
            raise HostError(f"the lab {name} cannot be reached: {error}", "try again") from error
        self.supervisor_pid, uid = system.peer_of(self._socket)
        if uid != os.geteuid():
            self._socket.close()
            raise UserError(f"the lab {name} belongs to user {uid}", "use a lab of your own: linerate lab up")
        self.supervisor = system.ProcessEnd.of_peer(self._socket)
        """The supervisor itself: its number may be another's by the time that it is to end."""
        peer = rpc.Peer(
            f"the lab's supervisor, process {self.supervisor_pid},",
            late_hint=f"try again; kill -9 {self.supervisor_pid} removes the lab and everything in it",
            gone_hint="bring it up again",
        )
        fd = self._socket.fileno()
        self._client = _Client(peer, fd, fd, timeout_s=ANSWER_TIMEOUT_S)

    def ask(self, method: str, **parameters: Any) -> Any:
        """One request and its answer; see `rpc.Client.ask`."""
        return self._client.ask(method, parameters)

    def close(self) -> None:
        """Hangs up; the lab stays."""
        self._socket.close()
        self.supervisor.close()


def _known() -> str:
    labs = names()
    return f"labs that are up: {', '.join(labs)}" if labs else "linerate lab up TOPOLOGY makes one"
