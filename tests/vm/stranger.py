"""The stranger's host: the guest as an administrator and as a user without rights see it, by SSH with real keys."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import need
from tests.vm import network
from tests.vm.machine import Machine

NAME = "load1"
USER = "tester"
"""Has no rights on the host and no password."""
_ADMIN = "admin"
BOOT_TIMEOUT_S = 300.0
COMMAND_TIMEOUT_S = 120.0
LINERATE_TIMEOUT_S = 1200.0

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Keys:
    """A pair for the administrator, one for the user, and the host's own; made for one run."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Keys:
        """New ones. Nothing reads them but ssh."""
        for name in (_ADMIN, USER, "host"):
            command = [need.tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name]
            subprocess.run(command, cwd=folder, check=True)
        (folder / "known_hosts").write_text(f"{network.there(0)} {(folder / 'host.pub').read_text()}")
        return cls(folder)

    def on_the_host(self) -> dict[str, tuple[str, str]]:
        """Files there: path -> (mode and owner, text)."""
        return {
            "/etc/ssh/keys/root": ("0600 root root", self._text(f"{_ADMIN}.pub")),
            f"/etc/ssh/keys/{USER}": (f"0600 {USER} {USER}", self._text(f"{USER}.pub")),
            "/etc/ssh/ssh_host_ed25519_key": ("0600 root root", self._text("host")),
            "/etc/ssh/ssh_host_ed25519_key.pub": ("0644 root root", self._text("host.pub")),
        }

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def configuration(self) -> str:
        """As a user writes it into the file of ssh (docs/cluster.md, step 2), and a way in for the tests."""
        known = self.folder / "known_hosts"
        return f"""\
Host {NAME}
    HostName {network.there(network.CONTROL)}
    User {USER}
    IdentityFile {self.folder / USER}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
Host {_ADMIN}
    HostName {network.there(network.ADMIN)}
    HostKeyAlias {network.there(network.CONTROL)}
    User root
    IdentityFile {self.folder / _ADMIN}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    BatchMode yes
    ConnectTimeout 5
    ServerAliveInterval 5
"""


class Stranger:
    """The guest, once SSH answers."""

    def __init__(self, machine: Machine, keys: Keys, folder: Path) -> None:
        self.machine = machine
        self.keys = keys
        self._folder = folder
        self._configuration = folder / "ssh_config"
        self._configuration.write_text(keys.configuration())
        programs = folder / "bin"
        programs.mkdir()
        ssh = programs / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {need.tool("ssh")} -F {self._configuration} "$@"\n')
        ssh.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        """For programs here: `ssh load1` finds the host, and state has a place of its own."""
        self._shared: subprocess.Popen[bytes] | None = None
        self._await()
        self.nic = self._adapters()
        """Net -> name of the adapter there."""

    def linerate(self, *words: str | Path, timeout_s: float = LINERATE_TIMEOUT_S) -> Done:
        """`linerate` here, to its end."""
        command = [sys.executable, "-m", "linerate.cli", *map(str, words)]
        return subprocess.run(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def root(self, command: str, *, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """What a shell of the administrator there says; fails the test if the command fails."""
        done = self.attempt(command, timeout_s=timeout_s)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt(self, command: str, *, timeout_s: float = COMMAND_TIMEOUT_S) -> Done:
        """The same for a command that may fail."""
        return subprocess.run(
            [*self._ssh(_ADMIN), command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def user(self, command: str) -> Done:
        """What a shell of the user there says."""
        return subprocess.run(
            [*self._ssh(NAME), command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def start(self, command: str) -> subprocess.Popen[str]:
        """A command of the administrator that goes on."""
        return subprocess.Popen(
            [*self._ssh(_ADMIN), command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _ssh(self, name: str) -> list[str]:
        """Commands of the administrator share a connection where there is one: each login takes a second."""
        words = [need.tool("ssh"), "-F", str(self._configuration)]
        return [*words, *(("-S", str(self._folder / "shared")) if name == _ADMIN else ()), name]

    def write(self, path: str, text: str) -> None:
        """A file there, as root."""
        self.root(f"printf %s {shlex.quote(text)} > {path}")

    def power_cut(self) -> None:
        """Takes its power away and gives it back, and waits for SSH."""
        before = self._boot()
        self._leave()
        self.machine.reset()
        self._await(before)

    def _boot(self) -> str:
        """Names this start of its kernel; empty while SSH does not answer."""
        done = self.attempt("cat /proc/sys/kernel/random/boot_id")
        return done.stdout if done.returncode == 0 else ""

    def _await(self, before: str = "") -> None:
        """Waits until SSH answers after another start, and opens the shared connection."""
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while self._boot() in ("", before):
            assert self.machine.running, f"QEMU ended\n{self.machine.said()}"
            assert time.monotonic() < deadline, f"no SSH after {BOOT_TIMEOUT_S:g} s\n{self.machine.said()}"
            time.sleep(0.5)
        words = [need.tool("ssh"), "-F", str(self._configuration), "-M", "-N"]
        self._shared = subprocess.Popen(
            [*words, "-S", str(self._folder / "shared"), _ADMIN],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _leave(self) -> None:
        """Ends the shared connection."""
        if self._shared is not None:
            self._shared.terminate()
            self._shared.wait()
            (self._folder / "shared").unlink(missing_ok=True)
            self._shared = None

    def _adapters(self) -> dict[int, str]:
        listed = self.root("for nic in /sys/class/net/*; do echo $(cat $nic/address) ${nic##*/}; done")
        by_mac = dict(line.split() for line in listed.splitlines())
        return {net: by_mac[network.mac(net)] for net in network.NETS}

    def close(self) -> None:
        """Leaves it; the machine is ended by its owner."""
        self._leave()
