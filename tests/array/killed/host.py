"""A host in a few lines: one iSCSI session that reads and writes single blocks and says what was acknowledged.

It knows just enough of RFC 7143 for that. Every failure is an OSError; then the session is over.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType

BLOCK_BYTES = 512
_TIMEOUT_S = 10.0
_LOGIN, _LOGIN_ANSWER = 0x43, 0x23
_COMMAND, _ANSWER, _DATA_IN = 0x01, 0x21, 0x25
_LAST, _READS, _WRITES, _SIMPLE = 0x80, 0x40, 0x20, 0x01
_HAS_STATUS = 0x01
_GOOD, _CHECK_CONDITION = 0x00, 0x02
_READ_10, _WRITE_10 = 0x28, 0x2A
_IS_CAPACITY_CHANGED_AND_THE_LIKE = (
    6  # sense key UNIT ATTENTION: the command was not done, and may be repeated
)


class Host:
    """A session. Use it in a `with` block."""

    def __init__(self, port: int, target: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._tag = self._command = self._expected = 0
        try:
            self._log_in(target)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def write(self, lun: int, block: int, data: bytes) -> None:
        """Returns when the array has acknowledged it."""
        cdb = struct.pack(">BBIBHB", _WRITE_10, 0, block, 0, len(data) // BLOCK_BYTES, 0)
        self._do(lun, cdb, data, 0)

    def read(self, lun: int, block: int, blocks: int) -> bytes:
        """The bytes of `blocks` blocks."""
        return self._do(
            lun, struct.pack(">BBIBHB", _READ_10, 0, block, 0, blocks, 0), b"", blocks * BLOCK_BYTES
        )

    def _log_in(self, target: str) -> None:
        keys = {
            "InitiatorName": "iqn.2026-11.lab.linerate:host",
            "TargetName": target,
            "SessionType": "Normal",
            "HeaderDigest": "None",
            "DataDigest": "None",
            "MaxRecvDataSegmentLength": "262144",
        }
        text = "".join(f"{key}={value}\0" for key, value in keys.items()).encode()
        # From the operational stage straight to the full feature phase; version 0, ISID, TSIH 0.
        opening = struct.pack(">BBH", _LOGIN, 0x87, 0)
        ids = struct.pack(">6sHIIII16x", b"\x80\0\0\0\0\1", 0, 0, 0, 0, 0)
        self._send(opening, ids, text)
        header, _ = self._receive()
        if header[0] != _LOGIN_ANSWER or header[36]:
            raise OSError(f"the login was refused: status {header[36]:#x}")
        (status,) = struct.unpack(">I", header[24:28])
        self._expected = status + 1

    def _do(self, lun: int, cdb: bytes, data: bytes, read_bytes: int) -> bytes:
        while True:
            status, sense, got = self._once(lun, cdb, data, read_bytes)
            if status == _GOOD:
                return got
            if status != _CHECK_CONDITION or sense & 0x0F != _IS_CAPACITY_CHANGED_AND_THE_LIKE:
                raise OSError(f"status {status:#x}, sense key {sense & 0x0F:#x}")

    def _once(self, lun: int, cdb: bytes, data: bytes, read_bytes: int) -> tuple[int, int, bytes]:
        self._tag += 1
        way = _WRITES if data else _READS
        opening = struct.pack(">BBH", _COMMAND, _LAST | way | _SIMPLE, 0)
        numbers = (self._tag, len(data) or read_bytes, self._command, self._expected)
        self._send(opening, struct.pack(">BB6xIIII16s", 0, lun, *numbers, cdb), data)
        self._command += 1
        got = bytearray(read_bytes)
        while True:
            header, payload = self._receive()
            (status_number,) = struct.unpack(">I", header[24:28])
            if header[0] == _DATA_IN:
                (offset,) = struct.unpack(">I", header[40:44])
                got[offset : offset + len(payload)] = payload
                if not header[1] & _HAS_STATUS:
                    continue
            elif header[0] != _ANSWER:
                continue
            self._expected = status_number + 1
            sense = payload[4] if header[0] == _ANSWER and len(payload) > 4 else 0
            return header[3], sense, bytes(got)

    def _send(self, opening: bytes, rest: bytes, data: bytes) -> None:
        padding = b"\0" * (-len(data) % 4)
        self._socket.sendall(opening + len(data).to_bytes(4, "big") + rest + data + padding)

    def _receive(self) -> tuple[bytes, bytes]:
        header = self._exactly(48)
        length = int.from_bytes(header[5:8], "big")
        return header, self._exactly(length + -length % 4)[:length]

    def _exactly(self, count: int) -> bytes:
        got = bytearray()
        while len(got) < count:
            piece = self._socket.recv(count - len(got))
            if not piece:
                raise ConnectionError("the array has hung up")
            got += piece
        return bytes(got)
