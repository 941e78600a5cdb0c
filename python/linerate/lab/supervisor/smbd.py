"""How Samba's smbd runs without root's rights: its folders, its configuration, the user that it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from linerate.errors import HostError

UID = 65534
"""Every passwd file has this user. As root of a user namespace smbd cannot give its groups up and ends."""
AS_USER = ("--user", f"--map-user={UID}", f"--map-group={UID}")
"""Options of unshare(1)."""
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_FOLDERS = ("private", "lock", "state", "cache", "pid", "ncalrpc")
_GLOBAL = """\
[global]
server role = standalone server
private dir = {state}/private
lock directory = {state}/lock
state directory = {state}/state
cache directory = {state}/cache
pid directory = {state}/pid
ncalrpc dir = {state}/ncalrpc
passdb backend = tdbsam:{state}/private/passdb.tdb
log file = {state}/log
smb ports = {port}
disable netbios = yes
disable spoolss = yes
load printers = no
printing = bsd
printcap name = /dev/null
"""
_SHARE = """\
[{name}]
path = {folder}
"""


def programs(array: str) -> dict[str, str]:
    """The programs that serve a NAS, with their paths. Raises HostError for one that is not installed, with its Debian
    package."""
    path = f"{os.environ.get('PATH', '')}:{_SBIN}"
    found: dict[str, str] = {}
    for program, package in (("smbd", "samba"), ("pdbedit", "samba"), ("unshare", "util-linux")):
        place = shutil.which(program, path=path)
        if place is None:
            raise HostError(
                f"{array} is a NAS, and this machine has no {program}",
                f"install it: sudo apt install {package}",
            )
        found[program] = place
    return found


def write_configuration(
    state: Path, port: int, settings: str, shares: Mapping[str, tuple[Path, str]]
) -> Path:
    """Makes the folders of smbd's state and its file smb.conf (smb.conf(5)), and gives the file's path.

    `settings` are further global lines; a share has a folder and further lines.
    """
    for name in _FOLDERS:
        (state / name).mkdir(parents=True, exist_ok=True)
    parts = [_GLOBAL.format(state=state, port=port), settings, "\n"]
    for name, (folder, lines) in shares.items():
        parts += [_SHARE.format(name=name, folder=folder), lines, "\n"]
    file = state / "smb.conf"
    file.write_text("".join(parts))
    return file


def serve_command(unshare: str, smbd: str, configuration: Path) -> tuple[str, ...]:
    """The command that serves. When smbd ends, it ends its whole process group: give it one of its own."""
    return (unshare, *AS_USER, smbd, "--foreground", "--no-process-group", "-s", str(configuration))


def add_user_command(unshare: str, pdbedit: str, configuration: Path, user: str) -> tuple[str, ...]:
    """The command that adds a user; it reads the secret twice from standard input."""
    return (unshare, *AS_USER, pdbedit, "-s", str(configuration), "-a", "-t", "-u", user)
