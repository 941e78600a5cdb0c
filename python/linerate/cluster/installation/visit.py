"""A host, visited over SSH by a program that needs only Python there (`there`): asked, installed on, cleaned up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from linerate import _core, rpc
from linerate.cluster.hosts import INSTALLATIONS, Endpoint
from linerate.cluster.installation import there
from linerate.cluster.installation.fit import check_fit
from linerate.cluster.installation.pack import Bundle
from linerate.errors import BY_BLAME, HostError, InternalError, LinerateError

_ANSWER_TIMEOUT_S = 30.0
_TRY_TIMEOUT_S = 150.0
_REMOVE_TIMEOUT_S = 300.0
_END_TIMEOUT_S = 5.0
_ROOM = 1.1
"""A file takes whole blocks."""
_FIRST_PYTHON = 'p=$(command -v "$1" || command -v python3) || { echo "no python3 there" >&2; exit 127; }; '
_RUN_IT = 'shift; exec "$p" "$@"'

_WAYS_OUT = (
    (
        "has changed",
        "another machine may answer there: compare its fingerprint with the host's console; if the host was installed "
        "anew, forget its old key (ssh-keygen -R) and connect once by hand (docs/cluster.md, step 3)",
    ),
    (
        "Host key verification failed",
        "connect once by hand and compare its fingerprint (docs/cluster.md, step 3)",
    ),
    ("Permission denied", "put your public key there: ssh-copy-id (docs/cluster.md, step 2)"),
    ("Could not resolve", "is the name right? ~/.ssh/config can give it an address"),
    ("timed out", "is it up, and does its firewall let SSH in?"),
    ("No route", "is it up, and is there a network to it?"),
    ("refused", "does sshd run there, on this port? ~/.ssh/config names another"),
    ("python", "install Python there; --python names one that is not on the search path"),
)
"""What ssh says -> what to do."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostDone:
    """What became of one host."""

    host: str
    text: str = ""
    error: LinerateError | None = None


class Visitor:
    """One host, as long as the `with` block takes."""

    def __init__(self, place: Endpoint, folder: str = INSTALLATIONS) -> None:
        """Starts the program there; `place.python` is the Python that is tried first. Raises HostError."""
        self.name = place.name
        peer = rpc.Peer(
            f"host {place.name}: the connection",
            late_hint="look at the host, then try again",
            gone_hint="can it be reached by ssh without a password?",
            error_prefix=f"host {place.name}: ",
            noisy=True,
        )
        command = place.wrap(program(place.python, "serve", folder))
        try:
            self._process = rpc.Process(peer, command, timeout_s=_ANSWER_TIMEOUT_S)
        except OSError as error:
            raise HostError(f"{error.strerror}: {error.filename}", "install it: openssh-client") from error
        try:
            self.facts: dict[str, Any] = self.ask("facts", version=_core.__version__)
        except HostError as error:
            self.close()
            raise HostError(error.message, way_out(error.message) or error.hint) from error
        except BaseException:
            self.close()
            raise

    def ask(self, method: str, *, timeout_s: float | None = None, **params: object) -> Any:
        """A method of `there.serve`. Raises LinerateError, naming the host."""
        return self._process.ask(method, params, timeout_s=timeout_s)

    def tried(self) -> dict[str, Any]:
        """Starts what is installed there; see `there.tried`."""
        found: dict[str, Any] = self.ask("tried", version=_core.__version__, timeout_s=_TRY_TIMEOUT_S)
        return found

    def close(self) -> None:
        """Ends the program there. A second call does nothing."""
        self._process.close(_END_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def program(python: str | None, *words: str) -> tuple[str, ...]:
    """The command that runs `there`: with the named Python, or with one of this version if the host has it."""
    text = Path(there.__file__).read_text("ascii")
    if python is not None:
        return (python, "-I", "-c", text, *words)
    same = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return ("sh", "-c", _FIRST_PYTHON + _RUN_IT, "linerate", same, "-I", "-c", text, *words)


def way_out(said: str) -> str:
    """What to do about a failure of ssh; empty for an unknown one."""
    return next((hint for text, hint in _WAYS_OUT if text in said), "")


def install(
    places: Sequence[Endpoint], bundle: Bundle, folder: str = INSTALLATIONS, *, again: bool = False
) -> list[HostDone]:
    """Brings the bundle to all hosts at once, unless they have it (`again`: also then)."""
    return _on_all(places, lambda place: _install(place, bundle, folder, again=again))


def remove(places: Sequence[Endpoint], folder: str = INSTALLATIONS, *, every: bool = False) -> list[HostDone]:
    """Removes this version from all hosts at once; with `every` all versions that `install` has brought."""
    return _on_all(places, lambda place: _remove(place, folder, every=every))


def _on_all(places: Sequence[Endpoint], work: Callable[[Endpoint], str]) -> list[HostDone]:
    def one(place: Endpoint) -> HostDone:
        try:
            return HostDone(place.name, work(place))
        except LinerateError as error:
            return HostDone(place.name, error=error)

    with ThreadPoolExecutor(len(places)) as pool:
        return list(pool.map(one, places))


def _install(place: Endpoint, bundle: Bundle, folder: str, *, again: bool) -> str:
    with Visitor(place, folder) as visitor:
        facts = visitor.facts
        check_fit(place.name, facts)
        marker = facts["installed"] or {}
        if marker.get("digest") == bundle.digest and not again and not visitor.tried()["error"]:
            return f"{bundle.version} is there already, in {facts['folder']}"
    if facts["free_bytes"] < _ROOM * bundle.unpacked_bytes:
        free_mb, needed_mb = facts["free_bytes"] / 1e6, _ROOM * bundle.unpacked_bytes / 1e6
        raise HostError(
            f"host {place.name}: {free_mb:,.0f} MB are free for {facts['folder']}, and Linerate takes "
            f"{needed_mb:,.0f} MB",
            "make room there, or name another folder: --folder",
        )
    done = _send(place, bundle, folder)
    return f"{bundle.version} installed, {done['python']}"


def _send(place: Endpoint, bundle: Bundle, folder: str) -> dict[str, Any]:
    """Streams the archive into the program there, and gives its answer."""
    command = place.wrap(program(place.python, "install", folder, bundle.version))
    content = os.open(f"/proc/self/fd/{bundle.file.fileno()}", os.O_RDONLY | os.O_CLOEXEC)  # from its start
    try:
        done = subprocess.run(command, stdin=content, capture_output=True, check=False)
    finally:
        os.close(content)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(b"{") and (answer := rpc.parsed(line)) is not None:
            if "error" in answer:
                kind = BY_BLAME.get(answer.get("blame", "us"), InternalError)
                raise kind(f"host {place.name}: {answer['error']}", str(answer.get("hint", "")))
            result: dict[str, Any] = answer["result"]
            return result
    said = done.stderr.decode(errors="replace").strip().splitlines()
    why = said[-1] if said else f"exit code {done.returncode}"
    raise HostError(f"host {place.name}: the installation broke off: {why}", way_out(why) or "try again")


def _remove(place: Endpoint, folder: str, *, every: bool) -> str:
    with Visitor(place, folder) as visitor:
        versions = None if every else [_core.__version__]
        removed = visitor.ask("remove", versions=versions, timeout_s=_REMOVE_TIMEOUT_S)["removed"]
        left = [version for version in visitor.facts["versions"] if f"/{version}" not in "".join(removed)]
        if removed:
            return f"removed {', '.join(removed)}"
        others = f"; --all removes the others: {', '.join(left)}" if left and not every else ""
        return f"nothing of {_core.__version__} in {visitor.facts['folder']}{others}"
