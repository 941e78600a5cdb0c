"""Accepts connections for an HTTP server, under limits that uvicorn does not have: of time, and per peer.

A connection serves one request. It has to come whole within `REQUEST_TIMEOUT_S` of the connection, TLS
included, however it is cut into pieces; its answer has to be taken within `ANSWER_TIMEOUT_S`. Who may stay is
`admission`'s to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from linerate.array.control.admission import Admission

REQUEST_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 30.0
PER_PEER, OVERALL = 16, 64
"""Connections of one peer, and of all, at a time."""
HEADER_BYTES_MAX = 16 << 10

_LOG = logging.getLogger("linerate")
_CREDENTIALS = struct.Struct("3i")
_REQUEST_IS_OVER = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


class Listener(uvicorn.Server):
    """An HTTP server on one listening socket, which it closes in the end."""

    def __init__(
        self, name: str, config: uvicorn.Config, listening: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        """A Unix socket is served to processes of this user and of root only."""
        super().__init__(config)
        self.name = name
        self._listening = listening
        self._tls = tls
        self._admission: Admission[_Connection] = Admission(PER_PEER, OVERALL)
        self._accepting: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept."""
        await super().startup(sockets=[])
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accepts no more, and ends when requests that are answered have been."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._listening.close()
        await super().shutdown(sockets=[])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        connecting: set[asyncio.Task[None]] = set()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError as error:  # too many open files, or a connection that is gone already
                _tell_refusal(self.name, "a connection", error.strerror or str(error))
                await asyncio.sleep(0.1)
                continue
            peer = _peer_of(accepted, address)
            if peer is None:
                _tell_refusal(
                    self.name, "a process of another user", "the socket belongs to the array's owner"
                )
                accepted.close()
                continue
            connection = _Connection(self, peer, accepted)
            if not self._admit(connection):
                accepted.close()
                continue
            task = asyncio.create_task(connection.serve(self._tls))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    def _admit(self, connection: _Connection) -> bool:
        stays, leaving = self._admission.enter(connection.peer, connection)
        if leaving is not None:
            _tell_refusal(self.name, leaving.peer, "it holds connections without a request")
            leaving.drop()
        if not stays:
            _tell_refusal(self.name, connection.peer, "too many requests at a time")
        return stays

    def protocol(self, connection: _Connection) -> H11Protocol:
        """What speaks HTTP on a connection."""
        return _Http(self.config, self.server_state, connection)

    def asked(self, connection: _Connection) -> None:
        """A whole request has come."""
        self._admission.asked(connection.peer, connection)

    def gone(self, connection: _Connection, why: str = "") -> None:
        """A connection is over; `why` if it never came to a request."""
        self._admission.leave(connection.peer, connection)
        if why:
            _tell_refusal(self.name, connection.peer, why)


class _Connection:
    """One connection from accept to its end."""

    def __init__(self, listener: Listener, peer: str, accepted: socket.socket) -> None:
        self.listener = listener
        self.peer = peer
        self._socket = accepted
        self._transport: asyncio.BaseTransport | None = None
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(REQUEST_TIMEOUT_S, self.drop)
        self._dropped = False

    async def serve(self, tls: ssl.SSLContext | None) -> None:
        """Hands the connection over to HTTP, after the handshake if there is one."""
        loop = asyncio.get_running_loop()
        why = ""
        try:
            await loop.connect_accepted_socket(
                lambda: self.listener.protocol(self),
                self._socket,
                ssl=tls,
                ssl_handshake_timeout=REQUEST_TIMEOUT_S if tls else None,
            )
            return
        except ssl.SSLError as error:
            why = f"TLS: {getattr(error, 'verify_message', '') or error.reason or error}"
        except OSError as error:
            why = f"TLS: {error.strerror or error}" if tls else error.strerror or str(error)
        self._socket.close()
        self.lost(why)

    def made(self, transport: asyncio.Transport) -> dict[str, Any]:
        """The connection is made; what the application is told about it: the peer's certificate."""
        self._transport = transport
        if self._dropped:
            transport.abort()
        speaks = transport.get_extra_info("ssl_object")
        return {"certificate": speaks.getpeercert(binary_form=True) if speaks is not None else None}

    def asked(self) -> None:
        """A whole request has come: the answer may take its time."""
        self._deadline.cancel()
        self.listener.asked(self)

    def answered(self) -> None:
        """The answer is on its way."""
        self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(ANSWER_TIMEOUT_S, self.drop)

    def lost(self, why: str = "") -> None:
        """The connection is gone."""
        self._deadline.cancel()
        self.listener.gone(self, why)

    def drop(self) -> None:
        """Ends it at once."""
        self._dropped = True
        if self._transport is not None:
            self._transport.abort()  # type: ignore[attr-defined]
        else:
            with contextlib.suppress(OSError):  # a handshake that waits is woken by that, and fails
                self._socket.shutdown(socket.SHUT_RDWR)
        self.listener.gone(self)


class _Http(H11Protocol):
    """uvicorn's HTTP/1.1, which tells the connection how far it is."""

    def __init__(self, config: uvicorn.Config, state: Any, connection: _Connection) -> None:
        super().__init__(config, state, {})
        self._connection = connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = self._connection.made(transport)
        super().connection_made(transport)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state in _REQUEST_IS_OVER:
            self._connection.asked()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._connection.answered()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connection.lost()


def _tell_refusal(name: str, peer: str, why: str) -> None:
    """Tells the log who was refused and why; the log limits floods."""
    extra = {"event": "control_refused", "peer": peer}
    _LOG.warning("%s: %s is refused: %s", name, peer, why, extra=extra)


def _peer_of(accepted: socket.socket, address: Any) -> str | None:
    """Who is at the other end; None for a process of another user."""
    if accepted.family != socket.AF_UNIX:
        return str(address[0])
    given = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(given)
    return f"process {pid}" if uid in (0, os.geteuid()) else None
