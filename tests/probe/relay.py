"""A relay between a host and an array that holds the last small segment of chosen I/Os back for 40 ms.

So Nagle's algorithm on one side and delayed acknowledgements on the other look like to a host.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEADER_BYTES = 48  # basic header segment (RFC 7143 11.2.1)
COMMAND, DATA_IN = 0x01, 0x25
OPCODE = 0x3F
LAST_BYTES = 200
DELAY_S = 0.04


@contextmanager
def relay(array: tuple[str, int], reads: int, writes: int) -> Iterator[int]:
    """The port of a relay to an array, for sessions without digests.

    Reads and writes of these many bytes are held back; writes only if their data comes with the command.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=_accept, args=(listener, array, reads, writes), daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _accept(listener: socket.socket, array: tuple[str, int], reads: int, writes: int) -> None:
    movers = []
    with contextlib.ExitStack() as sockets:
        with contextlib.suppress(OSError):
            while True:
                host = sockets.enter_context(listener.accept()[0])
                far = sockets.enter_context(socket.create_connection(array))
                for one in (host, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink, held in ((host, far, (COMMAND, writes)), (far, host, (DATA_IN, reads))):
                    mover = threading.Thread(target=_move, args=(source, sink, held), daemon=True)
                    mover.start()
                    movers.append(mover)
        for mover in movers:
            mover.join()


def _move(source: socket.socket, sink: socket.socket, held: tuple[int, int]) -> None:
    """PDU by PDU until either side closes."""
    with contextlib.suppress(OSError), source.makefile("rb") as incoming:
        while len(header := incoming.read(HEADER_BYTES)) == HEADER_BYTES:
            data_bytes = int.from_bytes(header[5:8])
            more = incoming.read(4 * header[4] + -(-data_bytes // 4) * 4)
            if (header[0] & OPCODE, data_bytes) == held:
                sink.sendall(header + more[:-LAST_BYTES])
                time.sleep(DELAY_S)
                sink.sendall(more[-LAST_BYTES:])
            else:
                sink.sendall(header + more)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
