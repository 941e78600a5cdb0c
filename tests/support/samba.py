"""A Samba server (smbd) of its own for tests, without root's rights, on a port of one address."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linerate.lab.supervisor import smbd
from linerate.results import files

from tests.support import need
from tests.support.serving import free_ports

USER = "nobody"
PASSWORD = "secret-of-the-test"
READY_S = 10.0
IN_USE_S = 30.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Samba:
    """A server with two shares of one folder, `share` and `readonly`."""

    port: int
    folder: Path
    pid: int
    address: str = LOOPBACK

    def url(self, path: str, share: str = "share", login: str = USER) -> str:
        """The URL of a file; the password comes from the environment."""
        return f"smb://{login}@{self.address}:{self.port}/{share}/{path}"

    def path(self, name: str) -> Path:
        """A file of the shared folder."""
        return self.folder / "share" / name

    def lock_account(self) -> None:
        """Locks the user's account, as too many wrong passwords do."""
        self._as_server("pdbedit", "-c", "[L]", "-u", USER)

    def withdraw(self, share: str = "share") -> None:
        """Takes a share away: out of the configuration, and from the clients that have it open."""
        file = self.folder / "smb.conf"
        before, _, rest = file.read_text().partition(f"[{share}]\n")
        _, bracket, after = rest.partition("[")
        file.write_text(before + bracket + after)
        self._as_server("smbcontrol", "smbd", "reload-config")
        self._as_server("smbcontrol", "smbd", "close-share", share)

    def _as_server(self, tool: str, *words: str) -> None:
        """Runs a tool of Samba as the user that the server is."""
        configuration = f"--configfile={self.folder / 'smb.conf'}"
        command = (need.tool("unshare"), *smbd.AS_USER, need.tool(tool), configuration, *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def smbclient(self, command: str, *options: str) -> str:
        """Runs one command of Samba's own client on the share."""
        login = ("-U", f"{USER}%{PASSWORD}", *options)
        words = (f"//{self.address}/share", "-p", str(self.port), *login, "-c", command)
        tool = (need.tool("smbclient"), "-s", str(self.folder / "smb.conf"))
        done = subprocess.run([*tool, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def samba(
    folder: Path, settings: str = "", *, address: str = LOOPBACK, limit_bytes: int | None = None
) -> Iterator[Samba]:
    """Starts it with further global settings; ended on leaving. With `limit_bytes` the shares have so much space, in a
    mount namespace of the server's own."""
    tools = {name: need.tool(name) for name in ("unshare", "smbd", "pdbedit")}
    shared = folder / "share"
    shared.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    shares = {"share": (shared, "read only = no\n"), "readonly": (shared, "read only = yes\n")}
    only = f"interfaces = {address}\nbind interfaces only = yes\n"
    file = smbd.write_configuration(folder, port, f"{only}{settings}", shares)
    added = subprocess.run(
        smbd.add_user_command(tools["unshare"], tools["pdbedit"], file, USER),
        input=f"{PASSWORD}\n{PASSWORD}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if added.returncode:
        need.missing(f"smbd has no user here: {added.stderr.strip()[-200:]}")
    command = smbd.serve_command(tools["unshare"], tools["smbd"], file)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if limit_bytes is not None:
        mount = f'mount -t tmpfs -o size={limit_bytes} tmpfs {shared} && exec "$@"'
        command = (
            tools["unshare"],
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            mount,
            "sh",
            *command,
        )
    with subprocess.Popen(command, start_new_session=True, **pipes) as daemon:
        try:
            _wait_until_ready(daemon, (address, port), folder)
            yield Samba(port, folder, daemon.pid, address)
        finally:
            # Its processes for connections end with it only after this signal.
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(READY_S)
            _end_helpers(file)


def _end_helpers(configuration: Path) -> None:
    """Ends samba-dcerpcd and what it started: smbd starts it in a session of its own when a client lists the shares."""
    deadline = time.monotonic() + READY_S
    while helpers := helpers_of(configuration):
        assert time.monotonic() < deadline, f"helpers of smbd do not end: {helpers}"
        for pid in helpers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def helpers_of(configuration: Path) -> list[int]:
    """The processes that smbd started for a configuration, by the option that it gives them."""
    option, found = f"--configfile={configuration}".encode(), []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if option in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def when_in_use(run: Path, act: Callable[[], None]) -> threading.Thread:
    """Starts a thread that acts once a run has written an interval, or after 30 s. `run`: its directory."""
    spool = run / files.SPOOL

    def wait_and_act() -> None:
        deadline = time.monotonic() + IN_USE_S
        while not (spool.exists() and spool.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.1)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def _wait_until_ready(daemon: subprocess.Popen[bytes], place: tuple[str, int], folder: Path) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            socket.create_connection(place, 1.0).close()
            return
        except OSError:
            if daemon.poll() is not None or time.monotonic() > deadline:
                log = folder / "log"
                said = log.read_text(errors="replace")[-300:] if log.exists() else "no log"
                need.missing(f"smbd does not start here: {said}")
            time.sleep(0.02)
