"""Hosts that exist as places for commands, workers and volumes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linerate.cluster import Endpoint, ssh_endpoint
from linerate.settings import HOST
from linerate.study.laboratory.measure import Placed
from linerate.study.model import RealHost, Settings
from linerate.workload.url import parse_target


def loading(hosts: Iterable[RealHost], settings: Settings) -> Sequence[RealHost]:
    """The hosts that make the load: all, or the one that the settings name."""
    named = settings.get(HOST)
    return [host for host in hosts if named in (None, host.name)]


def owners(hosts: Iterable[RealHost]) -> list[str]:
    """The host of each volume, in the order in which workloads take volumes."""
    return [host.name for host in hosts for _ in host.volumes]


def reached(host: RealHost) -> str:
    """How commands get there, for people."""
    if host.is_here:
        return "this machine"
    return f"ssh {host.ssh}" if host.ssh else " ".join(host.reach)


def place(host: RealHost) -> Endpoint:
    """Where its worker runs, and the process that holds its settings."""
    if host.is_here:
        return Endpoint(host.name, lambda command: command)
    if host.ssh is not None:
        return ssh_endpoint(host.name, host.ssh, host.python)
    return Endpoint(host.name, lambda command: (*host.reach, *command), python=host.python)


def placed_volume(url: str) -> Placed:
    """A volume with the secrets that the environment has for it."""
    target = parse_target(url)
    access = {
        "user": target.user,
        "secret": target.secret,
        "mutual_user": target.mutual_user,
        "mutual_secret": target.mutual_secret,
    }
    return Placed(target.url, iscsi=target.iscsi, access=access)
