"""Where the verbs of `linerate array` find an array that serves on this machine.

A file per array in the user's state folder, readable by its owner alone, says where the control API is;
beside it is the owner's Unix socket, by which the verbs get in without a token, also when the TCP
port is busy. The array holds a lock on the file as long as it lives: a file without a lock is a
remnant of an array that was killed, and is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from linerate.errors import HostError, UserError

TOKEN_BYTES = 32
SOCKET = ".socket"


@dataclass(frozen=True, slots=True)
class Registration:
    """How to reach an array that serves."""

    name: str
    url: str
    pid: int
    token: str
    """For the URL."""
    socket: str = ""
    """Path of the owner's socket."""
    certificate: str | None = None
    """PEM file to trust, where the URL is https."""

    def __repr__(self) -> str:
        return f"Registration({self.name!r}, {self.url!r}, {self.pid})"


def folder() -> Path:
    """The folder with a file for each array of this user."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "linerate" / "arrays"


def new_path() -> Path:
    """For the file of an array that begins to serve; its folder is there. Raises HostError."""
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(folder().stat().st_mode) & 0o077:
            folder().chmod(0o700)
    except OSError as error:
        raise _no_place(folder(), error) from error
    return folder() / f"{secrets.token_hex(8)}.json"


def owner_socket(path: Path) -> socket.socket:
    """Listens beside a place's file, for processes of its owner. Raises HostError."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path.with_suffix(SOCKET)) as address:
            listening.bind(address)
        path.with_suffix(SOCKET).chmod(0o600)  # the folder is private, so no one else was in before
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise _no_place(path.with_suffix(SOCKET), error) from error
    return listening


@contextlib.contextmanager
def short_address(path: Path) -> Iterator[str]:
    """An address of a socket that fits, however long its path is. Raises OSError."""
    held = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{held}/{path.name}"
    finally:
        os.close(held)


class Announcement:
    """The file of an array that serves, from `with` to its end."""

    def __init__(self, place: Registration, path: Path | None = None) -> None:
        self._place = place
        self._path = path or new_path()
        self._held: int | None = None

    def __enter__(self) -> Announcement:
        """Writes the file. Raises HostError if it cannot be written."""
        try:
            draft = self._path.with_suffix(".new")  # not visible before it is whole and locked
            self._held = _new_private_file(draft)
            fcntl.flock(self._held, fcntl.LOCK_EX)
            os.write(self._held, json.dumps(asdict(self._place)).encode())
            draft.rename(self._path)
        except OSError as error:
            raise _no_place(self._path, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self._path)
        if self._held is not None:
            os.close(self._held)


def running() -> list[Registration]:
    """The arrays of this user that serve now, by name."""
    found = [place for path in sorted(folder().glob("*.json")) if (place := _read(path)) is not None]
    return sorted(found, key=lambda place: (place.name, place.pid))


def find(name: str | None) -> Registration:
    """The array of that name; without a name, the only one. Raises UserError."""
    places = running()
    fitting = [place for place in places if name in (None, place.name, str(place.pid))]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(f"{place.name} (process {place.pid})" for place in fitting or places)
    if fitting:
        raise UserError(f"several arrays serve: {listed}", "say which one: --array NAME, or --array PROCESS")
    if places:
        raise UserError(f"no array named {name} serves; there are: {listed}", "say --array NAME")
    raise UserError(
        "no array of this user serves on this machine",
        "start one: linerate array serve FILE.toml; or name one elsewhere: --array URL --token-file FILE",
    )


def token_of(path: Path | None) -> str:
    """The token in a file, which is made if it is missing; without a file a new token. Raises UserError, HostError."""
    if path is None:
        return secrets.token_urlsafe(TOKEN_BYTES)
    try:
        with contextlib.suppress(FileExistsError):
            made = _new_private_file(path)
            os.write(made, secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n")
            os.close(made)
    except OSError as error:
        raise HostError(
            f"{path}: {error.strerror}", "the token is kept there: name a file that can be made"
        ) from error
    return read_token(path)


def read_token(path: Path) -> str:
    """The token in a file that only its owner can read. Raises UserError."""
    try:
        mode, token = path.stat().st_mode, path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(
            f"{path}: {reason}", "name the token file of the array: control.token_file"
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(f"{path}: others may read the token", f"chmod 600 {path}")
    if len(token) < TOKEN_BYTES:
        raise UserError(
            f"{path}: a token has at least {TOKEN_BYTES} characters",
            "copy it whole; at the array itself, remove its file to get a new one",
        )
    return token


def _new_private_file(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _read(path: Path) -> Registration | None:
    """What a file says; None if its array is gone: then the file goes, too."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            if _is_free(file.fileno()):
                _remove(path)
                return None
            return Registration(**json.load(file))
    except (OSError, ValueError, TypeError):  # another user's, or about to be written
        return None


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(path: Path) -> None:
    for one in (path, path.with_suffix(SOCKET)):
        with contextlib.suppress(OSError):
            one.unlink()


def _no_place(path: Path, error: OSError) -> HostError:
    return HostError(
        f"{path}: {error.strerror or error}",
        "the array's address, token and socket are kept there; set XDG_STATE_HOME to a folder that can be written",
    )
