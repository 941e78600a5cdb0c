"""An initiator of few words, written from RFC 7143: login requests with CHAP over a plain socket."""

from __future__ import annotations

import hashlib
import socket
import struct
from types import TracebackType
from typing import Self

SECURITY, OPERATIONAL, FULL = 0, 1, 3


class Wire:
    """One connection to a portal."""

    def __init__(self, portal: str) -> None:
        host, port = portal.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def login(self, stage: int, pairs: dict[str, str], to: int | None = None) -> tuple[int, dict[str, str]]:
        """A login request and its answer: status and pairs (11.12, 11.13)."""
        text = "".join(f"{key}={value}\0" for key, value in pairs.items()).encode()
        flags = stage << 2 | (0 if to is None else 0x80 | to)
        header = struct.pack(
            ">BBBB I 6s H I HH II 16x", 0x43, flags, 0, 0, len(text), b"\x80\0\0\0\0\1", 0, 0, 0, 0, 1, 0
        )
        self.socket.sendall(header + text + bytes(-len(text) % 4))
        answer = self._exactly(48)
        (length,) = struct.unpack(">I", b"\0" + answer[5:8])
        data = self._exactly(length + -length % 4)[:length]
        (status,) = struct.unpack(">H", answer[36:38])
        return status, dict(pair.split("=", 1) for pair in data.decode().split("\0") if pair)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, "the array closed the connection"
            data += more
        return data

    def login_at_once(self, initiator: str, target: str) -> int:
        """The status of a login without security stage."""
        names = {"InitiatorName": initiator, "TargetName": target}
        return self.login(OPERATIONAL, names, FULL)[0]

    def prove(self, initiator: str, target: str, user: str, secret: str) -> int:
        """The status of a login with CHAP and MD5 (12.1.3)."""
        names = {"InitiatorName": initiator, "TargetName": target, "AuthMethod": "CHAP"}
        status, _ = self.login(SECURITY, names)
        assert status == 0
        status, asked = self.login(SECURITY, {"CHAP_A": "5"})
        assert status == 0
        challenge = bytes.fromhex(asked["CHAP_C"].removeprefix("0x"))
        proof = hashlib.md5(bytes([int(asked["CHAP_I"])]) + secret.encode() + challenge).hexdigest()
        return self.login(SECURITY, {"CHAP_N": user, "CHAP_R": f"0x{proof}"}, FULL)[0]
