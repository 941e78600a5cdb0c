"""What an audit reads of a Linux host: files below a root folder, the answers of commands, settings over netlink.

Nothing is written. Every part can be replaced, so that captured facts of another host are read in the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linerate.advice.facts import THIS_HOST
from linerate.errors import HostError
from linerate.host import HostTarget, Shown, read

_TEXT_BYTES_MAX = 1 << 20
_COMMAND_S_MAX = 2.0
_CONNECT_S_MAX = 0.5
COMMANDS = frozenset(("ip", "ss", "ping", "ethtool", "lldpctl", "dcb", "multipathd", "iscsiadm"))
"""Programs that are run, each with arguments that only show something."""
SETTINGS = (
    "mtu",
    "checksum_offload",
    "lso",
    "rsc",
    "interrupt_moderation_us",
    "rx_ring_frames",
    "tx_ring_frames",
    "flow_control",
    "rss",
    "receive_window_autotuning",
    "receive_buffer_max_bytes",
    "delayed_ack",
)
"""Settings of the catalogue that rules ask for."""


def run_command(arguments: Sequence[str]) -> str:
    """What a command prints. Raises HostError when it is missing, fails or takes longer than 2 s."""
    assert arguments[0] in COMMANDS
    program = shutil.which(arguments[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise HostError(f"{arguments[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *arguments[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_S_MAX,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{arguments[0]} gave no answer within {_COMMAND_S_MAX:g} s") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().partition("\n")[0] or f"exit {done.returncode}"
        raise HostError(f"{' '.join(arguments[:2])} failed: {reason}")
    return done.stdout.decode(errors="replace")


def read_settings(devices: Sequence[str]) -> list[Shown]:
    """The settings of this host and of its ports."""
    return read(HostTarget(socket.gethostname(), tuple(devices)), SETTINGS)


def connects(address: str, port: int) -> bool:
    """Whether a TCP connection is accepted within half a second."""
    try:
        with socket.create_connection((address, port), timeout=_CONNECT_S_MAX):
            return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class LinuxSource:
    """A Linux host, or what was captured of one. `file_system` gives total and free bytes of a mounted path."""

    root: Path = Path("/")
    run: Callable[[Sequence[str]], str] = run_command
    settings: Callable[[Sequence[str]], list[Shown]] = read_settings
    connects: Callable[[str, int], bool] = connects
    file_system: Callable[[str], os.statvfs_result] = os.statvfs
    name: str = THIS_HOST

    def text(self, path: str) -> str:
        """A file's text without blanks around it; at most 1 MiB of it. Raises OSError."""
        descriptor = os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            return file.read(_TEXT_BYTES_MAX).decode(errors="replace").strip()

    def maybe(self, path: str) -> str | None:
        """A file's text; None where it cannot be read."""
        try:
            return self.text(path)
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """A file's number; None where there is none."""
        try:
            return int(self.text(path))
        except (OSError, ValueError):
            return None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none where it is missing."""
        try:
            return sorted(os.listdir(self.root / folder))
        except OSError:
            return []

    def link(self, path: str) -> str:
        """Where a symbolic link leads, as it is written there; empty where there is none."""
        try:
            return os.readlink(self.root / path)
        except OSError:
            return ""

    def json(self, *arguments: str) -> Any:
        """A command's answer in JSON. Raises HostError, also when it is not JSON."""
        try:
            return json.loads(self.run(arguments) or "null")
        except (ValueError, RecursionError) as error:
            raise HostError(f"{' '.join(arguments[:2])} did not answer in JSON") from error
