"""The side that serves raw streams: bounded in time, to one host, one stream after the other, without any file."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from linerate.errors import HostError, UserError
from linerate.probe.raw import GRACE_S, SECONDS_MAX, line_of, read_line, received_mb_s, send_for

REQUEST_S = 5.0
"""A connection that has not asked by then is closed, so that it cannot keep others away."""
_BACKLOG = 4


def listen(place: str) -> socket.socket:
    """Listens on PORT of all addresses, or on ADDRESS:PORT. Raises UserError and HostError."""
    address, _, port = place.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not port.isdigit() or int(port) > 65_535:
        raise UserError(f"--serve {place}: no port", "write PORT, or ADDRESS:PORT")
    is_v6 = ":" in address
    has_both = not address and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (address, int(port)),
            family=socket.AF_INET6 if is_v6 or has_both else socket.AF_INET,
            backlog=_BACKLOG,
            dualstack_ipv6=has_both,
        )
    except OSError as error:
        raise HostError(f"--serve {place}: {error.strerror}", "choose another port or address") from error


def serve(listener: socket.socket, lifetime_s: float, tell: Callable[[str], None]) -> None:
    """Serves the first host that asks until the time is over; a stream that goes on then may end. Tells each stream."""
    end_s = time.monotonic() + lifetime_s
    host: str | None = None
    while (left_s := end_s - time.monotonic()) > 0:
        listener.settimeout(left_s)
        try:
            connection, (address, *_) = listener.accept()
        except TimeoutError:
            return
        with connection:
            if host in (None, address) and (done := _served(connection)):
                host = address
                tell(f"{address}: {done}")


def _served(connection: socket.socket) -> str:
    """Serves one stream. Words for what was done; none for a connection that asked for nothing that is known."""
    try:
        asked = read_line(connection, time.monotonic() + REQUEST_S)
        flow, seconds = asked.get("flow"), asked.get("seconds")
        is_known = (
            asked.get("linerate_raw") == 1 and flow in ("to", "from") and isinstance(seconds, int | float)
        )
        if not is_known or not 0 < float(seconds or 0) <= SECONDS_MAX:
            connection.sendall(line_of({"error": f"asks for nothing that is known, up to {SECONDS_MAX:g} s"}))
            return ""
        connection.sendall(line_of({"ready": True}))
    except (OSError, ValueError):
        return ""
    try:
        if flow == "from":
            send_for(connection, float(seconds or 0))
            return "sent"
        mb_s = received_mb_s(connection, float(seconds or 0))
        connection.settimeout(GRACE_S)
        connection.sendall(line_of({"mb_s": mb_s}))
    except OSError as error:
        return f"a stream broke: {error.strerror or 'no data in time'}"
    return f"received {mb_s:.0f} MB/s"
