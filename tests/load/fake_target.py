"""A target made of bytes, as RFC 7143 lays them out: a disk that logs everybody in, until a script takes over."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

IQN = "iqn.2026-11.lab.linerate:fake"
BLOCKS, BLOCK_BYTES = 8192, 512
BHS_BYTES = 48
NO_TAG = b"\xff\xff\xff\xff"
_NOP_OUT, _COMMAND, _LOGOUT = 0x00, 0x01, 0x06
_READ_16 = 0x88


class Connection:
    """One connection that has logged in."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self._stat_sn = 1
        self._exp_cmd_sn = 1

    def header(self, opcode: int, flags: int, tag: bytes, *, counts: bool = True) -> bytearray:
        """A basic header segment; `counts`: it takes a StatSN."""
        bhs = bytearray(BHS_BYTES)
        bhs[0], bhs[1], bhs[16:20] = opcode, flags, tag
        bhs[24:28] = self._stat_sn.to_bytes(4, "big")
        bhs[28:32] = self._exp_cmd_sn.to_bytes(4, "big")
        bhs[32:36] = (self._exp_cmd_sn + 31).to_bytes(4, "big")
        self._stat_sn += counts
        return bhs

    def send(self, bhs: bytearray, data: bytes = b"") -> None:
        """A PDU."""
        bhs[5:8] = len(data).to_bytes(3, "big")
        self.stream.sendall(bytes(bhs) + data + bytes(-len(data) % 4))

    def read(self) -> tuple[bytes, bytes]:
        """The next request: header and data. Raises EOFError."""
        bhs = self._exactly(BHS_BYTES)
        length = int.from_bytes(bhs[5:8], "big")
        return bhs, self._exactly(length + -length % 4)[:length]

    def log_in(self) -> None:
        """Accepts every offer, without authentication."""
        while True:
            bhs, text = self.read()
            self._exp_cmd_sn = int.from_bytes(bhs[24:28], "big")
            reply = self.header(0x23, bhs[1], bhs[16:20])
            reply[8:14] = bhs[8:14]
            done = bhs[1] & 0x83 == 0x83
            if done:
                reply[14:16] = b"\0\7"
            secure = bhs[1] & 0x0C == 0
            self.send(reply, b"AuthMethod=None\0TargetPortalGroupTag=1\0" if secure else text)
            if done:
                return

    def serve(self, is_enough: Callable[[int], bool]) -> None:
        """Is a disk until so many reads have come; the last one is left unanswered."""
        reads = 0
        while True:
            bhs, _ = self.read()
            reads += bhs[0] & 0x3F == _COMMAND and bhs[32] == _READ_16
            if is_enough(reads):
                return
            self._answer(bhs)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            piece = self.stream.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _answer(self, bhs: bytes) -> None:
        kind, tag = bhs[0] & 0x3F, bhs[16:20]
        if kind == _NOP_OUT and tag != NO_TAG:
            pong = self.header(0x20, 0x80, tag)
            pong[20:24] = NO_TAG
            self.send(pong)
        elif kind == _LOGOUT:
            self.send(self.header(0x26, 0x80, tag))
        elif kind == _COMMAND:
            self._exp_cmd_sn += 1
            self._command(bhs)

    def _command(self, bhs: bytes) -> None:
        tag, cdb = bhs[16:20], bhs[32:48]
        if cdb[0] == 0x00:
            self.send(self.header(0x21, 0x80, tag))
        elif cdb[0] == 0x12 and cdb[1] == 0:
            self._data_in(bhs, bytes((0, 0, 6, 2, 31)) + b" " * 31)
        elif cdb[0] == 0x9E:
            self._data_in(bhs, (BLOCKS - 1).to_bytes(8, "big") + BLOCK_BYTES.to_bytes(4, "big") + bytes(20))
        elif cdb[0] == _READ_16:
            self._data_in(bhs, bytes(int.from_bytes(cdb[10:14], "big") * BLOCK_BYTES))
        else:
            self._refuse(tag)

    def refuse(self, bhs: bytes) -> None:
        """Answers a command with CHECK CONDITION, ILLEGAL REQUEST."""
        self._exp_cmd_sn += 1
        self._refuse(bhs[16:20])

    def _refuse(self, tag: bytes) -> None:
        refusal = self.header(0x21, 0x80, tag)
        refusal[3] = 2
        self.send(refusal, bytes((0, 18, 0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0)))

    def _data_in(self, bhs: bytes, data: bytes) -> None:
        expected = int.from_bytes(bhs[20:24], "big")
        data = data[:expected]
        reply = self.header(0x25, 0x81 | (0x02 if len(data) < expected else 0), bhs[16:20])
        reply[20:24] = NO_TAG
        reply[44:48] = (expected - len(data)).to_bytes(4, "big")
        self.send(reply, data)


@contextmanager
def target(script: Callable[[Connection], None]) -> Iterator[str]:
    """URL of LUN 0 of a target that runs the script on every connection that has logged in."""
    connections: list[socket.socket] = []

    def run(stream: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            connection = Connection(stream)
            connection.log_in()
            script(connection)
            connection.serve(lambda reads: False)

    def listen(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream, _ = server.accept()
                connections.append(stream)
                threading.Thread(target=run, args=(stream,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = threading.Thread(target=listen, args=(server,))
        listener.start()
        try:
            yield f"iscsi://127.0.0.1:{server.getsockname()[1]}/{IQN}/0"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            listener.join()
            for stream in connections:
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)
                stream.close()
