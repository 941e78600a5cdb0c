"""Raw TCP beside iSCSI: what one connection carries between this host and the far side, if that runs Linerate too.

The far side runs `linerate probe --serve PORT` (`server`), and `linerate probe URL --raw HOST:PORT` asks it (`client`).
A connection is one stream. The client sends a line of JSON:

    {"linerate_raw": 1, "flow": "to" or "from", "seconds": S}

The server answers {"ready": true} or {"error": TEXT}. Then data flows to the server or from it for that long, and the
sender of the data closes its side. The receiver measures: a stream "to" ends with the server's {"mb_s": RATE}.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from linerate.errors import UserError

SECONDS_MAX = 60.0
"""Longest stream."""
LINE_BYTES_MAX = 256
PIECE_BYTES = 1 << 20
"""One call moves so much. The socket's own buffers are left to the kernel's tuning: a fixed size turns it off."""
GRACE_S = 5.0
"""How much longer than the asked time a stream, or an answer, may take."""
_WARM_UP_SHARE = 0.2


def parse_peer(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT or [ADDRESS]:PORT. Raises UserError."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UserError(f"--raw {text}: not HOST:PORT", "for example --raw 10.0.0.5:9000")
    return host, int(port)


def line_of(message: dict[str, Any]) -> bytes:
    """As it is sent."""
    return json.dumps(message).encode() + b"\n"


def read_line(stream: socket.socket, deadline_s: float) -> dict[str, Any]:
    """The next line. Raises OSError (TimeoutError too) and ValueError; reads nothing beyond its end."""
    line = b""
    while not line.endswith(b"\n"):
        if len(line) >= LINE_BYTES_MAX:
            raise ValueError("a line without end")
        stream.settimeout(left_s(deadline_s))
        piece = stream.recv(1)
        if not piece:
            raise ValueError("the connection was closed")
        line += piece
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def send_for(stream: socket.socket, seconds: float) -> None:
    """Sends without a pause for that long. Raises OSError, also if nothing could be sent for a while."""
    piece = bytes(PIECE_BYTES)
    end_s = time.monotonic() + seconds
    while (now_s := time.monotonic()) < end_s:
        stream.settimeout(end_s - now_s + GRACE_S)
        stream.send(piece)


def received_mb_s(stream: socket.socket, seconds: float) -> float:
    """Receives until the sender closes, and gives the rate without the first fifth of the time. MB are 10^6 bytes.

    Raises OSError, also if the sender does not close in time.
    """
    into = bytearray(PIECE_BYTES)
    began_s = time.monotonic()
    warm_s, deadline_s = began_s + _WARM_UP_SHARE * seconds, began_s + seconds + GRACE_S
    counted, first_s, last_s = 0, began_s, began_s
    is_warm = False
    while True:
        stream.settimeout(left_s(deadline_s))
        got = stream.recv_into(into)
        now_s = time.monotonic()
        if not got:
            return counted / (last_s - first_s) / 1e6 if last_s > first_s else 0.0
        if is_warm:
            counted, last_s = counted + got, now_s
        elif now_s >= warm_s:
            is_warm, first_s, last_s = True, now_s, now_s


def left_s(deadline_s: float) -> float:
    """Time until then. Raises TimeoutError once it is over."""
    left = deadline_s - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
