"""How partners prove who they are: requests and answers signed with a shared secret that is never sent.

A request's signature (HMAC-SHA-256) covers method, path, time, a nonce and the body; an answer's covers the nonce, the
status and the body. A request counts only for a few minutes and only once, so who overhears one cannot send it again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from linerate.errors import PeerError

SCHEME = "Linerate-Partner"
ANSWER_HEADER = "Linerate-Signature"
CLOCKS_APART_MAX_S = 120.0
"""A request is refused whose time differs by more from the clock of the array that gets it."""

_HEADER = re.compile(
    rf"{SCHEME} name=(?P<name>[\w.-]+), at=(?P<at>\d{{1,12}}), "
    r"nonce=(?P<nonce>[0-9a-f]{32}), signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request on its way: its header, and the nonce to which the answer must fit."""

    header: str
    nonce: str


def sign(name: str, secret: str, method: str, path: str, body: bytes) -> Signed:
    """Signs a request as the partner `name`."""
    at, nonce = str(int(time.time())), secrets.token_hex(16)
    signature = _digest(secret, "request", method, path, at, nonce, _hash(body))
    return Signed(f"{SCHEME} name={name}, at={at}, nonce={nonce}, signature={signature}", nonce)


def answer_signature(secret: str, nonce: str, status: int, body: bytes) -> str:
    """What proves that an answer comes from who knows the secret, and answers this request."""
    return _digest(secret, "answer", nonce, str(status), _hash(body))


def check_answer(secret: str, nonce: str, status: int, body: bytes, signature: str) -> None:
    """Raises PeerError if the answer is not the partner's."""
    if not hmac.compare_digest(answer_signature(secret, nonce, status, body), signature):
        raise PeerError(
            "the answer is not signed with the partner's secret",
            "the control URL of the partner leads to another array, or the secrets differ",
        )


class Verifier:
    """Checks signatures of requests, and that none comes twice."""

    def __init__(self, secrets_by_name: Mapping[str, str]) -> None:
        self._secrets = dict(secrets_by_name)
        self._seen: dict[str, float] = {}
        self._looking = threading.Lock()

    def check(self, header: str, method: str, path: str, body: bytes) -> tuple[str, str, str] | None:
        """(partner, its secret, nonce) of a request that is genuine, new and in time; None for any other."""
        match = _HEADER.fullmatch(header)
        if match is None:
            return None
        # An unknown name takes as long as a known one.
        secret = self._secrets.get(match["name"], "")
        wanted = _digest(secret, "request", method, path, match["at"], match["nonce"], _hash(body))
        genuine = hmac.compare_digest(wanted, match["signature"]) and match["name"] in self._secrets
        if (
            not genuine
            or abs(time.time() - int(match["at"])) > CLOCKS_APART_MAX_S
            or not self._is_new(match["nonce"])
        ):
            return None
        return match["name"], secret, match["nonce"]

    def _is_new(self, nonce: str) -> bool:
        now = time.monotonic()
        with self._looking:
            # Older ones are refused for their time.
            self._seen = {seen: at for seen, at in self._seen.items() if now - at < 2 * CLOCKS_APART_MAX_S}
            if nonce in self._seen:
                return False
            self._seen[nonce] = now
            return True


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _digest(secret: str, *parts: str) -> str:
    return hmac.new(secret.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()
