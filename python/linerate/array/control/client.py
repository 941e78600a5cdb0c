"""Speaks to the control API of an array: as its owner, or as a partner that proves its certificate."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from linerate.array.control.commands import ArrayCommand
from linerate.array.control.identity import identity_of
from linerate.array.control.partnership import RUN_HEADER, Partnership
from linerate.array.control.registration import Registration, short_address
from linerate.array.control.report import ArrayReport
from linerate.array.partners import Partner
from linerate.errors import BY_BLAME, PeerError, UserError

TIMEOUT_S = 60.0
ANSWER_BYTES_MAX = 64 << 20

Connect = Callable[[], http.client.HTTPConnection]


class ControlClient:
    """One array, asked over HTTP by its owner; every request is a connection of its own, so any thread may
    ask."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        certificate: Path | None = None,
        owner_socket: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`certificate` is a PEM file to trust beside those of this machine; `owner_socket`, a path on this
        machine, needs no token. Raises UserError for what is no URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(
                f"{url}: not a URL of a control API", "write http://HOST:PORT or https://HOST:PORT"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._headers = {"Authorization": f"Bearer {token}"}
        if owner_socket is not None:
            path = owner_socket
            self._connect: Connect = lambda: _UnixConnection(path, timeout_s)
            return
        trusting = _trusting(certificate) if parts.scheme == "https" else None
        host, port = parts.hostname, parts.port
        self._connect = lambda: _tcp(host, port, timeout_s, trusting)

    @classmethod
    def at(cls, place: Registration) -> ControlClient:
        """The client of an array that serves on this machine: by its Unix socket, which is its owner's
        alone."""
        return cls(place.url, owner_socket=place.socket)

    def report(self) -> ArrayReport:
        """What the array is and does. Raises LinerateError."""
        return ArrayReport.model_validate(self.status())

    def status(self) -> dict[str, Any]:
        """The same as the array sends it."""
        return self._ask("GET", "/v1/status", b"")

    def send(self, command: ArrayCommand) -> dict[str, Any]:
        """Has a command carried out; gives its reply. Raises LinerateError."""
        return self.do(command.verb, command.model_dump(mode="json", exclude={"verb"}))

    def do(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The same by verb and fields."""
        return self._ask("POST", f"/v1/commands/{verb}", json.dumps(fields).encode())

    def _ask(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        status, answered, _ = _exchange(self.url, self._connect(), method, path, body, self._headers)
        return _value(self.url, status, answered)


class PartnerClient:
    """A partner, asked over mutual TLS; any thread may ask."""

    def __init__(self, partner: Partner, partnership: Partnership, timeout_s: float = TIMEOUT_S) -> None:
        assert partner.control is not None, "checked with the array file"
        parts = urlsplit(partner.control)
        self.url = partner.control.rstrip("/")
        self._address = (parts.hostname or "", parts.port or 443)
        self._partner = partner.name
        self._certificate = partner.certificate
        self._partnership = partnership
        self._context = partnership.client_context(partner.name)
        self._timeout_s = timeout_s

    def do(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Has the partner carry a verb out; gives its reply. Raises LinerateError."""
        connection = _tcp(*self._address, self._timeout_s, self._context)
        headers = {RUN_HEADER: self._partnership.run}
        body = json.dumps(fields).encode()
        try:
            status, answered, run = _exchange(
                self.url, connection, "POST", f"/v1/partner/{verb}", body, headers, self._check
            )
        except _UntrustedError as error:
            raise self._stranger() from error
        self._partnership.answered_by(self._partner, run, self.url)
        try:
            return _value(self.url, status, answered)
        except UserError as error:  # what it calls "this array" is not this one
            raise UserError(f"{self._partner} says: {error.message}", error.hint) from error

    def _check(self, connection: http.client.HTTPConnection) -> None:
        """What answers there has to be the partner, before anything is sent."""
        assert isinstance(connection.sock, ssl.SSLSocket)
        found = identity_of(connection.sock.getpeercert(binary_form=True) or b"")
        if found == self._partnership.own.identity:
            raise self._partnership.itself(self.url)
        if found != self._partnership.identity_of(self._partner):
            raise self._stranger()

    def _stranger(self) -> PeerError:
        return PeerError(
            f"{self.url}: its certificate is not the one that is trusted, which {self._certificate} holds",
            f"if {self._partner} has a new identity, or is a new array: put what `linerate array identity` prints "
            "there into that file, restart this array, then `linerate array rejoin`; else see whether the address "
            "is right",
        )


class _UntrustedError(PeerError):
    """What answers has another certificate than those that are trusted."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = Path(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with short_address(self._path) as address:
            self.sock.connect(address)


def _tcp(
    host: str, port: int | None, timeout_s: float, context: ssl.SSLContext | None
) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)


def _exchange(
    url: str,
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
    check: Callable[[http.client.HTTPConnection], None] | None = None,
) -> tuple[int, bytes, str]:
    """Status, body and run of the answer. Raises PeerError, and what `check` raises before anything is
    sent."""
    is_connected = False
    try:
        connection.connect()
        if check is not None:
            check(connection)
        is_connected = True
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_BYTES_MAX), answer.headers.get(RUN_HEADER, "")
    except TimeoutError as error:
        raise PeerError(
            f"{url}: no answer within {connection.timeout:g} s", "see whether the array still runs"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise _UntrustedError(
            f"{url}: its certificate is not the one that is trusted: {error.verify_message}{_lost_trust()}",
            "see whether the address is right; then name the PEM file that belongs to it: SSL_CERT_FILE",
        ) from error
    except ssl.SSLError as error:
        if is_connected and check is not None:
            raise _unknown_there(url, error.reason or "") from error
        raise PeerError(
            f"{url}: no TLS: {error.reason or error}",
            "see whether the array serves there, and whether its URL begins with http:// or https://",
        ) from error
    except (OSError, http.client.HTTPException) as error:
        if is_connected and isinstance(error, ConnectionError) and check is not None:
            raise _unknown_there(url, "it closed the connection") from error
        is_cut = isinstance(error, http.client.RemoteDisconnected) and url.startswith("http:")
        scheme = ", and whether its URL begins with https://" if is_cut else ""
        raise PeerError(f"{url}: {_reason(error)}", f"see whether the array serves there{scheme}") from error
    finally:
        connection.close()


def _lost_trust() -> str:
    """What is wrong with the variable that names trusted certificates, if that is wrong."""
    named = os.environ.get("SSL_CERT_FILE")
    return f"; there is no file {named} (SSL_CERT_FILE)" if named and not Path(named).is_file() else ""


def _unknown_there(url: str, reason: str) -> PeerError:
    return PeerError(
        f"{url}: the array there does not answer this one, probably because it does not know its certificate: {reason}",
        "certificate of its [[partners]] table has to be what `linerate array identity` prints here",
    )


def _value(url: str, status: int, answered: bytes) -> dict[str, Any]:
    try:
        value = json.loads(answered)
        if not isinstance(value, dict):
            raise ValueError
        if status == http.HTTPStatus.OK:
            return value
        raise BY_BLAME[value["blame"]](str(value["error"]), str(value["hint"]))
    except (ValueError, KeyError) as error:
        raise PeerError(
            f"{url}: what answers there (HTTP {status}) is no control API of an array", "check the URL"
        ) from error


def _trusting(certificate: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if certificate is not None:
        try:
            context.load_verify_locations(certificate)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"{certificate}: {error}", "name a PEM file with certificates") from error
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror | ConnectionError | OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
