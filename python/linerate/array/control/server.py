"""Serves the control API of an array while a `with` block lasts: for its owner, and for its partners.

Three ways in, each with a thread and limits of its own, so that what happens to one does not touch the
others: the owner's Unix socket, the TCP port for owners elsewhere, and the port where partners come by mutual
TLS.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette

from linerate.array.config import ArrayConfig
from linerate.array.control.api import owner_app, partner_app
from linerate.array.control.listener import HEADER_BYTES_MAX, Listener
from linerate.array.control.partnership import RUN_HEADER, Partnership
from linerate.array.control.registration import (
    SOCKET,
    Announcement,
    Registration,
    new_path,
    owner_socket,
    token_of,
)
from linerate.array.control.service import ControlService
from linerate.array.control.tls import owner_context
from linerate.array.httpd import http_settings
from linerate.errors import HostError

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5
BACKLOG = 128


class ControlServer:
    """The control API: listens from `with` on, and is found by `place.find` on this machine."""

    def __init__(
        self, service: ControlService, config: ArrayConfig, partnership: Partnership | None = None
    ) -> None:
        self._service = service
        self._config = config
        self._partnership = partnership
        self._stack = contextlib.ExitStack()
        self.url = ""
        self.partner_url = ""
        """Where partners reach this array; empty if they do not."""
        self.warning = ""
        """A warning about who can read the traffic; empty if it is protected."""

    def __enter__(self) -> Self:
        """Listens. Raises UserError and HostError, which name the address or the file."""
        control = self._config.control
        token = token_of(Path(control.token_file) if control.token_file else None)
        with contextlib.ExitStack() as stack:
            path = new_path()
            stack.enter_context(
                _serving("owner's socket", owner_app(self._service, None), owner_socket(path))
            )
            self.url = stack.enter_context(self._for_owners(token))
            if self._partnership is not None and control.partner_listen is not None:
                partners = self._for_partners(self._partnership, control.partner_listen)
                self.partner_url = stack.enter_context(partners)
            place = Registration(
                self._config.name,
                self.url,
                os.getpid(),
                token,
                str(path.with_suffix(SOCKET)),
                control.certificate,
            )
            stack.enter_context(Announcement(place, path))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets requests that are answered end, and listens no more."""
        self._stack.close()

    @contextlib.contextmanager
    def _for_owners(self, token: str) -> Iterator[str]:
        control = self._config.control
        tls = owner_context(control.certificate, control.key) if control.certificate and control.key else None
        listening = _listen("control.listen", control.listen)
        host, port = listening.getsockname()[:2]
        url = f"{'https' if tls else 'http'}://{_reached(host)}:{port}"
        if tls is None and not ipaddress.ip_address(host).is_loopback:
            self.warning = (
                f"the control API at {url} can be reached from other machines, and who listens in gets the "
                "token: set control.certificate and control.key"
            )
        with _serving("control API", owner_app(self._service, token), listening, tls=tls):
            yield url

    @contextlib.contextmanager
    def _for_partners(self, partnership: Partnership, address: str) -> Iterator[str]:
        listening = _listen("control.partner_listen", address)
        host, port = listening.getsockname()[:2]
        app = partner_app(self._service, partnership)
        headers = [(RUN_HEADER, partnership.run)]
        with _serving("partners", app, listening, headers, partnership.server_context()):
            yield f"https://{_reached(host)}:{port}"


@contextlib.contextmanager
def _serving(
    name: str,
    app: Starlette,
    listening: socket.socket,
    headers: list[tuple[str, str]] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[None]:
    settings = http_settings(
        app,
        log_level="error",
        lifespan="off",
        headers=[("Connection", "close"), *(headers or [])],
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
    server = Listener(name, settings, listening, tls)
    thread = threading.Thread(target=server.run, name=name, daemon=True)
    thread.start()
    try:
        _await_start(server, thread)
        yield
    finally:
        server.should_exit = True
        thread.join(2 * STOP_TIMEOUT_S)
        listening.close()


def _listen(name: str, address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    bare = host.strip("[]")
    try:
        found = socket.getaddrinfo(bare, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server((bare, int(port)), family=found[0][0], backlog=BACKLOG)
    except OSError as error:
        raise HostError(
            f"{name}: {address}: {error.strerror}",
            "name an address of this machine and a free port, or port 0 for any",
        ) from error


def _reached(host: str) -> str:
    """The address under which this machine itself reaches the API."""
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    found = anywhere.get(host, host)
    return f"[{found}]" if ":" in found else found


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    waited = threading.Event()
    for _ in range(int(START_TIMEOUT_S / 0.01)):
        if server.started:
            return
        if not thread.is_alive():
            break
        waited.wait(0.01)
    raise HostError(
        "the control API did not start", "see the message above; the array itself can serve without it"
    )
