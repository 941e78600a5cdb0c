"""Serves the control API of an array in a thread, while a `with` block lasts."""

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

from linerate.array.config import ArrayConfig
from linerate.array.control.api import control_app
from linerate.array.control.place import Announcement, Place, token_of
from linerate.array.control.service import Service
from linerate.errors import HostError, UserError

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5
REQUESTS_AT_ONCE = 64


class ControlServer:
    """The control API: listens from `with` on, and is found by `place.find` on this machine."""

    def __init__(self, service: Service, config: ArrayConfig) -> None:
        self._service = service
        self._config = config
        self._stack = contextlib.ExitStack()
        self.url = ""
        self.warning = ""
        """What the owner should know about who can listen in; empty if nobody can."""

    def __enter__(self) -> Self:
        """Listens. Raises UserError and HostError, which name the address or the file."""
        control = self._config.control
        token = token_of(Path(control.token_file) if control.token_file else None)
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(_listen(control.listen))
            host, port = listening.getsockname()[:2]
            scheme = "https" if control.certificate else "http"
            self.url = f"{scheme}://{_reached(host)}:{port}"
            if not control.certificate and not ipaddress.ip_address(host).is_loopback:
                self.warning = (
                    f"the control API at {self.url} can be reached from other machines, and who listens in gets the "
                    "token: set control.certificate and control.key"
                )
            partners = {partner.name: partner.secret.get_secret_value() for partner in self._config.partners}
            stack.enter_context(self._serving(listening, token, partners))
            place = Place(self._config.name, self.url, os.getpid(), token, control.certificate)
            stack.enter_context(Announcement(place))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets requests that are answered end, and listens no more."""
        self._stack.close()

    @contextlib.contextmanager
    def _serving(self, listening: socket.socket, token: str, partners: dict[str, str]) -> Iterator[None]:
        control = self._config.control
        settings = uvicorn.Config(
            control_app(self._service, token, partners),
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            limit_concurrency=REQUESTS_AT_ONCE,
            timeout_graceful_shutdown=STOP_TIMEOUT_S,
            ssl_certfile=control.certificate,
            ssl_keyfile=control.key,
        )
        try:
            settings.load()
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"{control.certificate} and {control.key} are no certificate with its key: {error}",
                "control.certificate and control.key name PEM files",
            ) from error
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, args=([listening],), name="control", daemon=True)
        thread.start()
        try:
            _await_start(server, thread)
            yield
        finally:
            server.should_exit = True
            thread.join(2 * STOP_TIMEOUT_S)


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    bare = host.strip("[]")
    try:
        found = socket.getaddrinfo(bare, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server((bare, int(port)), family=found[0][0], backlog=128)
    except OSError as error:
        raise HostError(
            f"control.listen: {address}: {error.strerror}",
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
