"""Where the workers of a cluster run: how a command gets onto a host, and under which address it listens there."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from linerate import _core
from linerate.errors import UserError
from linerate.workload.hosts import LoadHost, is_ssh_word

if TYPE_CHECKING:
    from linerate.lab import Lab

Command = Sequence[str]
SSH_OPTIONS = (
    *("-T", "-a", "-x"),  # no terminal, no agent and no display of ours on the host
    *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),  # asks nothing: an unknown host is refused
    *("-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no"),
    *("-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
)
"""Keys, ports and jump hosts are for ~/.ssh/config; options here override it."""
INSTALLATIONS = "~/.local/share/linerate-hosts"
"""Where `linerate hosts install` puts Linerate on a host: a folder for each version."""
_FIND = (
    f'p="$HOME/{INSTALLATIONS[2:]}/{_core.__version__}/bin/python"; [ -x "$p" ] || p=python3; exec "$p" "$@"'
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host of a cluster."""

    name: str
    wrap: Callable[[Command], Command]
    """Makes of a command line one that runs it there, with this process's standard input."""
    address: str | None = None
    """The worker listens here, on the control network; None: where it reaches the scheduler from."""
    python: str | None = sys.executable
    """Has Linerate there; None: what `linerate hosts install` has brought there, else `python3`."""

    def command(self, module: str, *words: str, sudo: bool = False) -> Command:
        """Runs a module of Linerate there; as root with `sudo`, by a Python that only root can change."""
        started = ("-P", "-m", module, *words)
        if sudo:
            return self.wrap(("sudo", "-n", self.python or "python3", *started))
        if self.python is not None:
            return self.wrap((self.python, *started))
        return self.wrap(("sh", "-c", _FIND, "linerate", *started))


def local_endpoint(name: str) -> Endpoint:
    """This machine, in its own namespace: for trying a plan, and for tests."""
    return Endpoint(name, lambda command: command, "127.0.0.1")


def lab_endpoints(lab: Lab, hosts: Sequence[str] | None = None) -> tuple[Endpoint, ...]:
    """Hosts of a lab, all of them if none is named. Workers listen on the lab's control network."""
    known = {host.name: host.control_address for host in lab.topology.hosts}
    for host in hosts or ():
        if host not in known:
            raise UserError(f"{lab.name} has no host {host}", f"its hosts are {', '.join(known)}")
    return tuple(Endpoint(host, partial(lab.inside, host), known[host]) for host in hosts or known)


def ssh_endpoints(hosts: Sequence[str], python: str | None = None) -> tuple[Endpoint, ...]:
    """Real hosts by SSH, `[user@]host`, without a password; `python` has Linerate there (see `Endpoint`)."""
    names = [host.rpartition("@")[2] for host in hosts]
    if not all(is_ssh_host(host) for host in hosts):
        raise UserError(f"--hosts {','.join(hosts)}: not a list of hosts", "write [user@]host,[user@]host")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(
            f"--hosts {','.join(hosts)}: {twice} is named twice", "name each host once: it has one worker"
        )
    return tuple(ssh_endpoint(name, host, python) for name, host in zip(names, hosts, strict=True))


def file_endpoints(hosts: Sequence[LoadHost], python: str | None = None) -> tuple[Endpoint, ...]:
    """The hosts of a workload file: by SSH, and this machine without it; `python` has Linerate on the others."""
    return tuple(
        local_endpoint(host.label) if host.is_here else ssh_endpoint(host.label, host.address, python)
        for host in hosts
    )


def ssh_endpoint(name: str, host: str, python: str | None = None) -> Endpoint:
    """A real host by SSH, under a name of its own."""
    return Endpoint(name, partial(_ssh, host), python=python)


def is_ssh_host(text: str) -> bool:
    """`[user@]host` and nothing that ssh would take for an option."""
    user, at, host = text.rpartition("@")
    return all(is_ssh_word(word) for word in ((user, host) if at else (host,)))


def _ssh(host: str, command: Command) -> Command:
    return ("ssh", *SSH_OPTIONS, "--", host, shlex.join(command))
