"""Speaks to the control API of an array: as its owner with the token, or as a partner with a signature."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from linerate.array.control.commands import Command
from linerate.array.control.place import Place
from linerate.array.control.report import ArrayReport
from linerate.array.control.signing import ANSWER_HEADER, check_answer, sign
from linerate.array.partners import Partner
from linerate.errors import BY_BLAME, PeerError, UserError

TIMEOUT_S = 60.0
ANSWER_BYTES_MAX = 64 << 20


class ControlClient:
    """One array, asked over HTTP; every request is a connection of its own, so any thread may ask."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        partner: Partner | None = None,
        certificate: Path | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`certificate` is a PEM file to trust beside those of this machine. Raises UserError for what is no URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(
                f"{url}: not a URL of a control API", "write http://HOST:PORT or https://HOST:PORT"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port = parts.hostname, parts.port
        self._token = token
        self._partner = partner
        self._timeout_s = timeout_s
        self._tls = _trusting(certificate) if parts.scheme == "https" else None

    @classmethod
    def at(cls, place: Place) -> ControlClient:
        """The client of an array that serves on this machine."""
        certificate = Path(place.certificate) if place.certificate else None
        return cls(place.url, token=place.token, certificate=certificate)

    def report(self) -> ArrayReport:
        """What the array is and does. Raises LinerateError."""
        return ArrayReport.model_validate(self.status())

    def status(self) -> dict[str, Any]:
        """The same as the array sends it."""
        return self._ask("GET", "/v1/status", b"")

    def send(self, command: Command) -> dict[str, Any]:
        """Has a command carried out; gives its reply. Raises LinerateError."""
        return self.do(command.verb, command.model_dump(mode="json", exclude={"verb"}))

    def do(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The same by verb and fields."""
        return self._ask("POST", f"/v1/commands/{verb}", json.dumps(fields).encode())

    def _ask(self, method: str, path: str, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        nonce = ""
        if self._partner is not None:
            secret = self._partner.secret.get_secret_value()
            signed = sign(self._partner.name, secret, method, path, body)
            headers["Authorization"], nonce = signed.header, signed.nonce
        else:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answered, signature = self._exchange(method, path, body, headers)
        if (
            self._partner is not None and status != 401
        ):  # who is not known cannot be answered under the secret
            check_answer(self._partner.secret.get_secret_value(), nonce, status, answered, signature)
        return self._value(status, answered)

    def _exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes, str]:
        connection = (
            http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
            if self._tls is None
            else http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=self._tls
            )
        )
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(ANSWER_BYTES_MAX), answer.headers.get(ANSWER_HEADER, "")
        except TimeoutError as error:
            raise PeerError(
                f"{self.url}: no answer within {self._timeout_s:g} s", "see whether the array still runs"
            ) from error
        except ssl.SSLCertVerificationError as error:
            raise PeerError(
                f"{self.url}: its certificate is not trusted: {error.verify_message}",
                "name the PEM file that vouches for it: SSL_CERT_FILE, or authority of the partner",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise PeerError(f"{self.url}: {_reason(error)}", "see whether the array serves there") from error
        finally:
            connection.close()

    def _value(self, status: int, answered: bytes) -> dict[str, Any]:
        try:
            value = json.loads(answered)
            if not isinstance(value, dict):
                raise ValueError
            if status == http.HTTPStatus.OK:
                return value
            raise BY_BLAME[value["blame"]](str(value["error"]), str(value["hint"]))
        except (ValueError, KeyError) as error:
            raise PeerError(
                f"{self.url}: what answers there (HTTP {status}) is no control API of an array",
                "check the URL",
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
