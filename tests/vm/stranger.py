"""The stranger's host: the guest as an administrator and as a user without rights see it, by SSH with real keys."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import need
from tests.vm import network
from tests.vm.machine import Machine

NAME = "load1"
USER = "tester"
"""Has no rights on the host and no password."""
BOOT_TIMEOUT_S = 300.0
COMMAND_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Keys:
    """A pair for the administrator, one for the user, and the host's own; made for one run."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Keys:
        """New ones. Nothing reads them but ssh."""
        for name in ("admin", USER, "host"):
            command = [need.tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name]
            subprocess.run(command, cwd=folder, check=True)
        (folder / "known_hosts").write_text(f"{network.there(0)} {(folder / 'host.pub').read_text()}")
        return cls(folder)

    def on_the_host(self) -> dict[str, tuple[str, str]]:
        """Files there: path -> (mode and owner, text)."""
        return {
            "/etc/ssh/keys/root": ("0600 root root", self._text("admin.pub")),
            f"/etc/ssh/keys/{USER}": (f"0600 {USER} {USER}", self._text(f"{USER}.pub")),
            "/etc/ssh/ssh_host_ed25519_key": ("0600 root root", self._text("host")),
            "/etc/ssh/ssh_host_ed25519_key.pub": ("0644 root root", self._text("host.pub")),
        }

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def configuration(self) -> str:
        """As a user writes it into the file of ssh (docs/cluster.md, step 2)."""
        return f"""\
Host {NAME}
    HostName {network.there(network.CONTROL)}
    User {USER}
    IdentityFile {self.folder / USER}
    IdentitiesOnly yes
    UserKnownHostsFile {self.folder / "known_hosts"}
"""


class Stranger:
    """The guest, once SSH answers."""

    def __init__(self, machine: Machine, keys: Keys, folder: Path) -> None:
        self.machine = machine
        self.keys = keys
        self._folder = folder
        configuration = folder / "ssh_config"
        configuration.write_text(keys.configuration())
        programs = folder / "bin"
        programs.mkdir()
        ssh = programs / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {need.tool("ssh")} -F {configuration} "$@"\n')
        ssh.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        """For programs here: `ssh load1` finds the host, and state has a place of its own."""
        self._await()
        self.nic = self._adapters()
        """Net -> name of the adapter there."""

    def root(self, command: str, *, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """What a shell of the administrator there says; fails the test if the command fails."""
        done = self.attempt(command, timeout_s=timeout_s)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt(
        self, command: str, *, user: str = "root", timeout_s: float = COMMAND_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """The same for a command that may fail. Commands share a connection, because each login takes a second."""
        key = self.keys.folder / ("admin" if user == "root" else USER)
        words = [need.tool("ssh"), "-F", str(self._folder / "ssh_config"), "-i", str(key), "-l", user]
        words += ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ControlMaster=auto"]
        words += ["-o", f"ControlPath={self._folder / 'to-%r'}", "-o", "ControlPersist=yes"]
        shared = [*words, NAME, command]
        return subprocess.run(shared, capture_output=True, text=True, timeout=timeout_s, check=False)

    def start(self, command: str) -> subprocess.Popen[str]:
        """A command of the administrator that goes on, in a connection of its own."""
        words = [
            need.tool("ssh"),
            "-F",
            str(self._folder / "ssh_config"),
            "-i",
            str(self.keys.folder / "admin"),
        ]
        words += ["-l", "root", NAME, command]
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, path: str, text: str) -> None:
        """A file there, as root."""
        self.root(f"printf %s {shlex.quote(text)} > {path}")

    def reboot(self) -> None:
        """Restarts its kernel, and waits for SSH."""
        before = self.root("cat /proc/sys/kernel/random/boot_id")
        self.attempt("systemctl reboot")
        self._leave()
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while self._answered() in ("", before):
            assert time.monotonic() < deadline, f"no reboot\n{self.machine.said()}"
            self._leave()
            time.sleep(1)

    def _answered(self) -> str:
        done = self.attempt("cat /proc/sys/kernel/random/boot_id", timeout_s=30)
        return done.stdout if done.returncode == 0 else ""

    def _await(self) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while not self._answered():
            assert self.machine.running, f"QEMU ended\n{self.machine.said()}"
            assert time.monotonic() < deadline, f"no SSH after {BOOT_TIMEOUT_S:g} s\n{self.machine.said()}"
            time.sleep(0.5)

    def _leave(self) -> None:
        """Ends the shared connections."""
        for path in self._folder.glob("to-*"):
            words = [need.tool("ssh"), "-o", f"ControlPath={path}", "-O", "exit", NAME]
            subprocess.run(words, capture_output=True, check=False)
            path.unlink(missing_ok=True)

    def _adapters(self) -> dict[int, str]:
        listed = self.root("for nic in /sys/class/net/*; do echo $(cat $nic/address) ${nic##*/}; done")
        by_mac = dict(line.split() for line in listed.splitlines())
        return {net: by_mac[network.mac(net)] for net in network.NETS}

    def close(self) -> None:
        """Leaves it; the machine is ended by its owner."""
        self._leave()
