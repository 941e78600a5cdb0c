"""Secrets of an array file: where they come from, what they must be, and what to warn of.

A secret is text in UTF-8. A line end at the end of its file or variable is not part of it; nothing else is removed.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linerate.array.config import ArrayConfig

SECRET_KEYS = ("secret", "mutual_secret", "chap_secret")
"""Keys of an array file that hold a secret; with `_file` or `_env` behind them they say where it is."""

CHAP_BYTES_MIN = 12
"""96 bits: the least that RFC 7143 section 9.2.1 permits without IPsec, which an array cannot verify."""

CHAP_BYTES_MAX = 255
"""Initiators take no more."""

_FILE_BYTES_MAX = 4096


class SecretError(Exception):
    """A secret that cannot be used: what is wrong, and the way out. Its value is in neither."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def chap_fault(secret: str) -> str | None:
    """Why a CHAP secret protects nothing; None if it does."""
    length = len(secret.encode())
    if length == 0:
        return f"the secret is empty; RFC 7143 (9.2.1) asks for at least {CHAP_BYTES_MIN} bytes, random ones"
    if length < CHAP_BYTES_MIN:
        return (
            f"the secret has {length} bytes; RFC 7143 (9.2.1) asks for at least {CHAP_BYTES_MIN} (96 bits), "
            "random ones; Windows takes 12 to 16"
        )
    if length > CHAP_BYTES_MAX:
        return f"the secret has {length} bytes; initiators take at most {CHAP_BYTES_MAX}"
    return None


def secret_in_variable(variable: str) -> str:
    """The secret in an environment variable. Raises SecretError."""
    if variable not in os.environ:
        raise SecretError(f"{variable} is not set", f"export {variable} and try again")
    return _one_line(os.environ[variable], variable)


def secret_in_file(path: Path) -> str:
    """The secret in a file that only its owner can read or replace. Raises SecretError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SecretError(f"{path}: {error.strerror}", "name a readable file") from error
    with open(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise SecretError(f"{path}: not a file", "name a file that holds the secret and nothing else")
        _is_private(path, state)
        raw = file.read(_FILE_BYTES_MAX + 1)
    if len(raw) > _FILE_BYTES_MAX:
        raise SecretError(f"{path}: too long for a secret", "the file holds the secret and nothing else")
    try:
        return _one_line(raw.decode(), str(path))
    except UnicodeDecodeError as error:
        raise SecretError(f"{path}: not a text file", "the file holds the secret as text in UTF-8") from error


def _is_private(path: Path, state: os.stat_result) -> None:
    if state.st_uid not in (0, os.geteuid()):
        raise SecretError(
            f"{path}: belongs to another user, who may read and change it", f"chown $USER {path}"
        )
    if stat.S_IMODE(state.st_mode) & 0o077:
        raise SecretError(
            f"{path}: others may read the secret (mode {stat.S_IMODE(state.st_mode):04o})",
            f"chmod 600 {path}",
        )
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SecretError(
                f"{path}: everyone may replace it, as {folder} is writable by all", f"chmod o-w {folder}"
            )


def _one_line(text: str, where: str) -> str:
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise SecretError(f"{where} is empty", f"put a secret there, for example: {_random_line(where)}")
    if not secret.isprintable():
        raise SecretError(
            f"{where} holds several lines, or characters that cannot be typed",
            "it holds the secret and nothing else",
        )
    return secret


def _random_line(where: str) -> str:
    command = "openssl rand -base64 12"  # 12 bytes, 16 characters: what Windows takes, too
    return f"(umask 077; {command} > {where})" if "/" in where else f'export {where}="$({command})"'


def secret_warnings(path: Path, config: ArrayConfig) -> Iterator[str]:
    """What the owner of an array file should know about its secrets; none of them is shown."""
    mode = path.stat().st_mode
    if mode & (stat.S_IRGRP | stat.S_IROTH) and _holds_secret(tomllib.loads(path.read_text("utf-8"))):
        yield f"{path} holds a secret and others may read it: chmod 600 {path}, or move it out (secret_file)"
    users: dict[str, str] = {}
    for target in config.targets:
        if target.chap is None:
            continue
        sides = [(target.chap.user, target.chap.secret)]
        if target.chap.mutual_user is not None and target.chap.mutual_secret is not None:
            sides.append((target.chap.mutual_user, target.chap.mutual_secret))
        for user, secret in sides:
            known = users.setdefault(secret.get_secret_value(), user)
            if known != user:
                yield (
                    f"{target.name}: the users {known} and {user} have the same CHAP secret, so each can pretend "
                    "to be the other (RFC 7143 section 9.2.1): give each its own"
                )


def _holds_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key in SECRET_KEYS or _holds_secret(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_holds_secret, value))
