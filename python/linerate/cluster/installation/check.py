"""Everything that a run on a host needs, tried one by one: `linerate hosts check`."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from linerate import _core
from linerate.analysis.rules.hosts import WALL_CLOCKS_APART_MAX_S
from linerate.cluster.clock import UNCERTAINTY_MAX_NS, best_offset
from linerate.cluster.hosts import INSTALLATIONS, Endpoint
from linerate.cluster.installation.fit import check_fit, python_text
from linerate.cluster.installation.visit import Visitor
from linerate.cluster.ports import PortRange
from linerate.errors import HostError, LinerateError

_CLOCK_ASKED = 10
_SPOOL_BYTES_MIN = 1 << 30
_NETWORK_TIMEOUT_S = 5.0

State = Literal["ok", "note", "fails"]
_Look = Callable[[], tuple[State, str]]


@dataclass(frozen=True, slots=True)
class HostFinding:
    """One line: what was tried, whether it works (`note`: a run does without it), and what was found."""

    name: str
    state: State
    text: str


def check(
    place: Endpoint,
    digest: str,
    *,
    folder: str = INSTALLATIONS,
    address: str | None = None,
    ports: PortRange | None = None,
) -> Iterator[HostFinding]:
    """Tries a host and gives what it finds, as it finds it. `digest` is that of what this machine would install.

    `address` is this machine's on the control network, as of `Cluster`; None: that of its name.
    """
    began = time.monotonic()
    try:
        visitor = Visitor(place, folder)
    except LinerateError as error:
        yield HostFinding("SSH", "fails", _told(error))
        return
    with visitor:
        facts = visitor.facts
        yield HostFinding("SSH", "ok", f"as {facts['user']}, answered in {time.monotonic() - began:.1f} s")
        yield from _guarded("Python", lambda: _python(visitor))
        yield from _guarded("Linerate", lambda: _linerate(visitor, digest))
        yield from _guarded("clock", lambda: _clock(visitor))
        yield from _guarded("space", lambda: _space(visitor))
        yield from _guarded("sudo", lambda: _sudo(visitor))
        yield from _guarded("ports", lambda: _ports(visitor, address, ports))


def _guarded(name: str, look: _Look) -> Iterator[HostFinding]:
    """A line that cannot be found out is one that fails."""
    try:
        state, text = look()
    except LinerateError as error:
        state, text = "fails", _told(error)
    yield HostFinding(name, state, text)


def _told(error: LinerateError) -> str:
    return f"{error.message} -> {error.hint}" if error.hint else error.message


def _python(visitor: Visitor) -> tuple[State, str]:
    facts = visitor.facts
    check_fit(visitor.name, facts)
    version = python_text(tuple(facts["python"]))
    return "ok", f"{version}, {facts['machine']}, {facts['libc']}, {facts['executable']}"


def _linerate(visitor: Visitor, digest: str) -> tuple[State, str]:
    facts = visitor.facts
    marker = facts["installed"]
    if marker is None:
        others = f" (there is {', '.join(facts['versions'])})" if facts["versions"] else ""
        return (
            "fails",
            f"no {_core.__version__} in {facts['folder']}{others} -> `linerate hosts install` brings it; "
            "one that was installed by pip is named with --hosts-python",
        )
    found = visitor.tried()
    if found["error"] or found["version"] != _core.__version__:
        what = found["error"] or f"it says that it is {found['version']}"
        return "fails", f"{_core.__version__} does not start: {what} -> `linerate hosts install --again`"
    if marker["digest"] != digest:
        return (
            "fails",
            f"{_core.__version__}, but not the same files as here -> `linerate hosts install` brings these",
        )
    return "ok", f"{_core.__version__} in {facts['folder']}, starts in {found['seconds']:.1f} s"


def _clock(visitor: Visitor) -> tuple[State, str]:
    samples = []
    for _ in range(_CLOCK_ASKED):
        asked = time.time_ns()
        shown = visitor.ask("clock_ns")
        samples.append((asked, shown, time.time_ns()))
    offset = best_offset(samples)
    ahead_s = offset.offset_ns / 1e9
    how = f"{abs(ahead_s):.3f} s {'ahead' if ahead_s > 0 else 'behind'}, give or take "
    text = f"{how}{offset.uncertainty_ns / 1e9:.3f} s"
    if offset.uncertainty_ns > UNCERTAINTY_MAX_NS:
        limit_ms = UNCERTAINTY_MAX_NS / 1e6
        return "note", f"{text}; a run needs {limit_ms:g} ms or less, over a faster way than SSH"
    if abs(ahead_s) > WALL_CLOCKS_APART_MAX_S:
        return "note", f"{text}; runs measure this and are not changed by it, logs there have other times"
    return "ok", text


def _space(visitor: Visitor) -> tuple[State, str]:
    facts = visitor.facts
    text = f"{_gb(facts['free_bytes'])} for {facts['folder']}, {_gb(facts['spool_free_bytes'])} for intervals in "
    text += str(facts["spool_folder"])
    if facts["spool_free_bytes"] < _SPOOL_BYTES_MIN:
        return "fails", f"{text} -> make room there, or set TMPDIR for this user"
    return "ok", text


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _sudo(visitor: Visitor) -> tuple[State, str]:
    if visitor.facts["root"]:
        return "ok", "root: settings can be changed"
    allowed = visitor.ask("sudo")
    if allowed == "settings":
        return "ok", "settings can be changed through sudo"
    why = "" if allowed == "nothing" else f" ({allowed})"
    return (
        "note",
        f"settings cannot be changed{why}; only studies that change some need it (docs/cluster.md, step 5)",
    )


def _ports(visitor: Visitor, address: str | None, ports: PortRange | None) -> tuple[State, str]:
    """Both directions: the host to this machine, then this machine to the host."""
    here = address or _own_address()
    word = secrets.token_hex(8)
    try:
        server = socket.create_server(
            (here, ports.free(here) if ports else 0),
            family=socket.AF_INET6 if ":" in here else socket.AF_INET,
        )
    except OSError as error:
        raise HostError(
            f"cannot listen on {here}: {error.strerror or error}", "--hosts-address names another"
        ) from error
    with server:
        server.settimeout(_NETWORK_TIMEOUT_S)
        port = server.getsockname()[1]
        reached = visitor.ask("reach", address=here, port=port, word=word)
        if reached["error"] or not _heard(server, word):
            why = reached["error"] or "another machine has answered"
            raise HostError(
                f"from there {here} port {port} cannot be reached: {why}",
                "name this machine's address with --hosts-address, and see the firewalls",
            )
    first, last = (ports.first, ports.last) if ports else (0, 0)
    listening = visitor.ask("listen", address=reached["address"], first=first, last=last)
    if listening["error"]:
        raise HostError(
            f"there is no free port of {ports} there: {listening['error']}",
            "name another range: --hosts-ports",
        )
    there = reached["address"], listening["port"]
    try:
        socket.create_connection(there, timeout=_NETWORK_TIMEOUT_S).close()
    except OSError as error:
        raise HostError(
            f"from here {there[0]} port {there[1]} cannot be reached: {error.strerror or error}",
            "see the firewall there; --hosts-ports gives it a fixed range",
        ) from error
    return "ok", f"{there[0]} port {there[1]} from here, {here} port {port} from there"


def _own_address() -> str:
    """As dask.distributed finds it for a scheduler that was given none."""
    from distributed.utils import get_ip

    return str(get_ip())


def _heard(server: socket.socket, word: str) -> bool:
    try:
        end, _ = server.accept()
        with end:
            end.settimeout(_NETWORK_TIMEOUT_S)
            return end.recv(len(word)) == word.encode("ascii")
    except OSError:
        return False
