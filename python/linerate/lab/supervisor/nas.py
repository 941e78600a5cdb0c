"""The NAS of a lab: Samba's smbd in the array's namespace, with one share and one user.

Its state and, unless the topology names a folder, its files are on a tmpfs that only the lab sees, and that ends with
the lab. smbd has a user namespace of its own, in which it is an ordinary user.
"""

from __future__ import annotations

import os
import pwd
import secrets
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from linerate.errors import HostError, UserError
from linerate.lab import system
from linerate.lab.cpu.used import processes_used_s
from linerate.lab.supervisor import smbd
from linerate.lab.supervisor.nodes import NodeNamespace, write_sysctl
from linerate.san import MEMORY_FOLDER, SMB_PORT, Array

_READY_S = 20.0
_LOOK_S = 0.02
_FROM_MEMORY = "aio read size = 0\naio write size = 0\n"
"""Nothing waits for a disk, so threads beside the one of the connection would only cost time."""


class NasServers:
    """The NAS of a lab, all with one user and one secret."""

    def __init__(self, arrays: Sequence[Array], nodes: Mapping[str, NodeNamespace]) -> None:
        self._arrays = {array.name: array for array in arrays if array.kind == "nas"}
        self._nodes = nodes
        self._secret = secrets.token_urlsafe(24)
        self._pids: dict[str, int] = {}
        self._used_s: dict[str, float] = {}

    def start(self) -> None:
        """Starts all at once and waits until they serve. Raises HostError for what this machine lacks."""
        if not self._arrays:
            return
        tools = smbd.programs(next(iter(self._arrays)))
        try:
            system.mount("tmpfs", MEMORY_FOLDER, "tmpfs")
        except OSError as error:
            raise HostError(f"a NAS has no memory for its files: {error}", "run the lab as root") from error
        with ThreadPoolExecutor(len(self._arrays)) as pool:
            started = pool.map(lambda array: self._started(array, tools), self._arrays.values())
            self._pids = dict(zip(self._arrays, started, strict=True))

    @property
    def pids(self) -> dict[str, int]:
        """The first process of each, by array."""
        return self._pids

    def login(self) -> dict[str, str] | None:
        """User and secret; None without a NAS."""
        return {"user": _user(), "secret": self._secret} if self._arrays else None

    def cpu_s(self) -> dict[str, float]:
        """CPU time of the processes of each so far, ended ones included, to 10 ms."""
        for name in self._arrays:
            _, inode = system.namespace_of(self._nodes[name].fd)
            used_s = processes_used_s(inode)
            # Ticks are rounded down for each process, also when its time becomes that of its parent.
            self._used_s[name] = max(used_s, self._used_s.get(name, 0.0))
        return dict(self._used_s)

    def _started(self, array: Array, tools: Mapping[str, str]) -> int:
        state = Path(MEMORY_FOLDER) / array.name
        files = Path(array.folder) if array.folder else state / "files"
        shares = {array.target: (files, "read only = no\n")}
        input_settings = "" if array.folder else _FROM_MEMORY
        configuration = smbd.write_configuration(state, SMB_PORT, input_settings, shares)
        if not array.folder:
            files.mkdir()
        _make_files(array, files)
        node = self._nodes[array.name]
        log = state / "log"
        # Only this thread moves, and its children are born where it is.
        with node.visit():
            if not write_sysctl("net.ipv4.ip_unprivileged_port_start", "0"):
                raise HostError(
                    f"the NAS {array.name} may not use port {SMB_PORT}", "use Linux 4.11 or later"
                )
            add = smbd.add_user_command(tools["unshare"], tools["pdbedit"], configuration, _user())
            _run(array, add, f"{self._secret}\n{self._secret}\n")
            daemon = subprocess.Popen(
                smbd.serve_command(tools["unshare"], tools["smbd"], configuration),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            _await_service(array, daemon, log)
        return daemon.pid


def _user() -> str:
    return pwd.getpwuid(smbd.UID).pw_name


def _make_files(array: Array, folder: Path) -> None:
    """A file for each volume, with all of its blocks: holes would be read faster than data.

    A file that is there is refused, because loads would write over it. After a failure none of the new files stays.
    """
    made: list[Path] = []
    for volume in array.volumes:
        path = folder / volume.file_name
        try:
            with path.open("xb") as file:
                made.append(path)
                os.posix_fallocate(file.fileno(), 0, volume.size_bytes)
        except OSError as error:
            for one in made:
                one.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                raise UserError(
                    f"the NAS {array.name}: {path} exists, and loads would write over it",
                    "move it away, or give another folder",
                ) from error
            hint = (
                "give a folder in which this user may write, with enough space"
                if array.folder
                else "give the volumes fewer bytes, or the array a folder"
            )
            raise HostError(f"the NAS {array.name} cannot make {volume.file_name}: {error}", hint) from error


def _run(array: Array, command: Sequence[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[-300:] or f"status {done.returncode}"
        raise HostError(f"the NAS {array.name} has no user: {said}", "see whether Samba runs on this machine")


def _await_service(array: Array, daemon: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until smbd accepts connections; called inside the array's namespace."""
    pause = threading.Event()
    for _ in range(round(_READY_S / _LOOK_S)):
        try:
            socket.create_connection(("127.0.0.1", SMB_PORT), 1.0).close()
        except OSError:
            if daemon.poll() is not None:
                break
            pause.wait(_LOOK_S)
        else:
            return
    said = log.read_text(errors="replace").strip()[-300:] if log.exists() else "it wrote no log"
    raise HostError(f"smbd of the NAS {array.name} does not start: {said}", "see whether Samba runs here")
