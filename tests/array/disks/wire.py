"""An initiator written from RFC 7143, for tests that ask what an array answers to a single command."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

BLOCK = 512
_UNIT_ATTENTION = 6


@dataclass(frozen=True)
class Answer:
    """What became of a command."""

    status: int
    sense: bytes
    data: bytes

    @property
    def code(self) -> tuple[int, int, int]:
        """Sense key, additional sense code and its qualifier (SPC-4, fixed format); zeros for GOOD."""
        return (self.sense[2] & 15, self.sense[12], self.sense[13]) if self.sense else (0, 0, 0)


class Initiator:
    """One session of one connection, one command at a time."""

    def __init__(self, portal: str, target: str) -> None:
        host, port = portal.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._command, self._status = 1, 0
        keys = ["InitiatorName=iqn.2026-11.test:wire", "SessionType=Normal", f"TargetName={target}"]
        keys += ["HeaderDigest=None", "DataDigest=None", "InitialR2T=No", "ImmediateData=Yes"]
        keys += ["MaxRecvDataSegmentLength=262144", "FirstBurstLength=262144", "MaxBurstLength=262144"]
        text = "".join(f"{key}\0" for key in keys).encode()
        head = struct.pack(">BBBBB3s6sHIHHII16x", 0x43, 0x87, 0, 0, 0, len(text).to_bytes(3, "big"),
                           b"\x80\0\0\0\0\1", 0, 0, 0, 0, self._command, 0)  # fmt: skip
        self._send(head, text)
        answer, _ = self._receive()
        assert (answer[0] & 63, answer[36]) == (0x23, 0), answer.hex()

    def write(self, lun: int, lba: int, data: bytes) -> Answer:
        """WRITE (16), all of its data immediate."""
        return self._ask(lun, 0x8A, lba, data, len(data))

    def read(self, lun: int, lba: int, length: int) -> Answer:
        """READ (16)."""
        return self._ask(lun, 0x88, lba, b"", length)

    def close(self) -> None:
        """Drops the connection."""
        self._socket.close()

    def _ask(self, lun: int, operation: int, lba: int, out: bytes, length: int) -> Answer:
        while True:
            answer = self._once(lun, operation, lba, out, length)
            if answer.code[0] != _UNIT_ATTENTION:
                return answer

    def _once(self, lun: int, operation: int, lba: int, out: bytes, length: int) -> Answer:
        way = 0x20 if out else 0x40
        cdb = struct.pack(">BBQIBB", operation, 0, lba, length // BLOCK, 0, 0)
        head = struct.pack(">BBHB3sQIIII16s", 0x01, 0x80 | way | 1, 0, 0, len(out).to_bytes(3, "big"),
                           lun << 48, self._command, length, self._command, self._status, cdb)  # fmt: skip
        self._command += 1
        self._send(head, out)
        data = bytearray()
        while True:
            answer, segment = self._receive()
            match answer[0] & 63:
                case 0x25:  # Data-In, with the status in the last one
                    data += segment
                    if answer[1] & 1:
                        return Answer(answer[3], b"", bytes(data))
                case 0x21:
                    return Answer(answer[3], bytes(segment[2:]), bytes(data))
                case 0x20:
                    continue  # NOP-In: nothing that needs an answer here
                case other:
                    raise AssertionError(f"PDU {other:#x}")

    def _send(self, head: bytes, data: bytes) -> None:
        self._socket.sendall(head + data + bytes(-len(data) % 4))

    def _receive(self) -> tuple[bytes, bytes]:
        head = self._exactly(48)
        length = int.from_bytes(head[5:8], "big")
        segment = self._exactly(length + -length % 4)[:length]
        self._status = struct.unpack_from(">I", head, 24)[0] + 1
        return head, segment

    def _exactly(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            assert part, "the array closed the connection"
            parts += part
        return bytes(parts)


@contextlib.contextmanager
def logged_in(portal: str, target: str) -> Iterator[Initiator]:
    """A session for the time of the block."""
    initiator = Initiator(portal, target)
    try:
        yield initiator
    finally:
        initiator.close()
