"""An array as a service of systemd: its unit, and what it tells the service manager (sd_notify(3))."""

from __future__ import annotations

import os
import pwd
import socket
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from linerate.array.credentials import SECRET_KEYS
from linerate.array.file import parse_array_text, read_array_text
from linerate.errors import UserError, quote

OPEN_FILES = 65536


def notify(state: str) -> bool:
    """Tells the service manager, if there is one: `READY=1`, `STOPPING=1`, `STATUS=...`. False if it cannot be told."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return True
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.connect("\0" + address[1:] if address.startswith("@") else address)
            sender.send(state.encode())
    except OSError:
        return False
    return True


def unit_text(file: Path, user: str = "root") -> str:
    """A unit that serves an array file as a user. Raises UserError for a wrong file, or a user that there is not."""
    file = file.absolute()
    text = read_array_text(file)
    name = parse_array_text(text, name=str(file), folder=file.parent, secrets=False).name
    raw = tomllib.loads(text)
    folders = sorted({str(path.parent) for path in _written(raw, file.parent)})
    unit = f"linerate-{name}.service"
    command = [sys.executable, "-m", "linerate.cli", "array", "serve", str(file)]
    variables = sorted(_variables(raw))
    lines = [
        f"# The array {name} as a service:",
        f"#   linerate array unit {quote(file)} > /etc/systemd/system/{unit}",
        f"#   systemctl daemon-reload && systemctl enable --now {unit}",
        "[Unit]",
        f"Description=Linerate array {_escaped(name)}",
        "Wants=network-online.target",
        "After=network-online.target",
        *(f"RequiresMountsFor={_quoted(folder)}" for folder in folders),
        "",
        "[Service]",
        "Type=notify",
        f"ExecStart={' '.join(_quoted(word) for word in command)}",
        f"User={user}",
        *([f"# {', '.join(variables)}; mode 0600"] if variables else []),
        *([f"EnvironmentFile=/etc/linerate/{_escaped(name)}.env"] if variables else []),
        *_state(user),
        *(f"ReadWritePaths={_quoted(folder)}" for folder in folders),
        *_SERVICE.splitlines(),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


_SERVICE = f"""\
# A wrong array file (exit code 2) is not mended by a restart.
Restart=on-failure
RestartSec=5s
RestartPreventExitStatus=2
TimeoutStartSec=5min
TimeoutStopSec=1min
UMask=0077
# A file per connection and disk; io_uring locks its memory.
LimitNOFILE={OPEN_FILES}
LimitMEMLOCK=infinity
OOMScoreAdjust=-900
NoNewPrivileges=yes
ProtectSystem=strict
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_DAC_OVERRIDE
SystemCallArchitectures=native
SystemCallFilter=@system-service"""


def _state(user: str) -> Iterator[str]:
    """Where the array announces itself, so that the other verbs of the same user find it."""
    try:
        home = Path(pwd.getpwnam(user).pw_dir)
    except KeyError as error:
        raise UserError(f"--user {user}: there is no such user", "useradd --system makes one") from error
    if home.is_dir():
        state = home / ".local" / "state" / "linerate"
        while not state.is_dir():
            state = state.parent
        yield f"ReadWritePaths={_quoted(str(state))}"
    else:
        yield "StateDirectory=linerate"
        yield "Environment=XDG_STATE_HOME=%S/linerate"


def _written(raw: dict[str, Any], folder: Path) -> Iterator[Path]:
    """Files that the array writes."""
    disks = raw.get("storage", {}).get("disks", [])
    volumes = [volume for target in raw.get("targets", []) for volume in target.get("volumes", [])]
    for table in (*disks, *volumes):
        if isinstance(table.get("path"), str):
            path = folder / table["path"]
            if not path.is_relative_to("/dev"):
                yield path.absolute()
    for key in ("token_file", "identity"):
        if isinstance(made := raw.get("control", {}).get(key), str):
            yield (folder / made).absolute()


def _variables(value: Any) -> Iterator[str]:
    """Environment variables from which an array file takes secrets."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key.removesuffix("_env") in SECRET_KEYS and key.endswith("_env"):
                yield str(item)
            yield from _variables(item)
    elif isinstance(value, list):
        for item in value:
            yield from _variables(item)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """A word as systemd reads it: specifiers and quotes are taken literally."""
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if any(one in escaped for one in " \t\"'\\;") else escaped
