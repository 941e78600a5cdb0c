"""The side that asks for a raw stream, in either direction."""

from __future__ import annotations

import socket
import time

from linerate.errors import HostError
from linerate.probe.raw import GRACE_S, SECONDS_MAX, line_of, read_line, received_mb_s, send_for


def raw_mb_s(peer: tuple[str, int], seconds: float, *, is_to_peer: bool) -> float:
    """What one connection carries to the peer, or from it. MB are 10^6 bytes. Raises HostError."""
    where = f"raw TCP with {peer[0]} port {peer[1]}"
    seconds = min(seconds, SECONDS_MAX)
    try:
        with socket.create_connection(peer, timeout=GRACE_S) as stream:
            flow = "to" if is_to_peer else "from"
            stream.sendall(line_of({"linerate_raw": 1, "flow": flow, "seconds": seconds}))
            answer = read_line(stream, time.monotonic() + GRACE_S)
            if answer.get("ready") is not True:
                raise HostError(
                    f"{where}: {answer.get('error', 'no answer')}", "start it anew on the far side"
                )
            if not is_to_peer:
                return received_mb_s(stream, seconds)
            send_for(stream, seconds)
            stream.shutdown(socket.SHUT_WR)
            return float(read_line(stream, time.monotonic() + seconds + 2 * GRACE_S)["mb_s"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error) or "no answer in time"
        raise HostError(
            f"{where}: {reason}",
            f"`linerate probe --serve {peer[1]}` must run there, and serves the first host that asks",
        ) from error
