"""The partners of an array as its process knows them: their certificates, its own, and which process of each
was heard.

A certificate says which array speaks. Two arrays that have the same one, because the
identity file was copied, are told apart by the run: a random name that each process gives itself and sends along. A
process that starts anew has a new run, and the old one never speaks again. If it does, there are two of them:
then nothing is exchanged with either.
"""

from __future__ import annotations

import re
import secrets
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

from linerate.array.config import ArrayConfig
from linerate.array.control import tls
from linerate.array.control.identity import Certificate, own_identity, read_certificate
from linerate.array.partners import Partner
from linerate.errors import PeerError, UserError

RUN_HEADER = "Linerate-Run"
DOUBLE_S = 600.0
"""Two arrays with one identity are refused until only one of them was heard for this long."""

_RUN = re.compile(r"[0-9a-f]{32}")
_RUNS_KEPT = 64


class Partnership:
    """Who the partners are, and who is heard. Any thread may use it."""

    def __init__(self, identity: Path, name: str, partners: tuple[Partner, ...]) -> None:
        """Reads the identity file, which is made if it is missing, and the partners' certificates.

        Raises UserError, which names the file, and HostError.
        """
        self.own: Certificate = own_identity(identity, name)
        self.run = secrets.token_hex(16)
        """Names this process among all that have had this identity."""
        self.newcomer: Callable[[str], None] = lambda partner: None
        """Is told when a partner speaks with a new run."""
        self._identity = identity
        self._certificates = {one.name: read_certificate(Path(one.certificate)) for one in partners}
        self._names = {self.own.identity: ""}
        for partner in partners:
            found = self._certificates[partner.name].identity
            if found in self._names:
                other = self._names[found]
                whose = f"partner {other} too" if other else "this array itself"
                raise UserError(
                    f"{partner.certificate}: the certificate of partner {partner.name} is that of {whose}",
                    "put there what `linerate array identity` prints for that partner",
                )
            self._names[found] = partner.name
        self._runs = _Runs()

    @classmethod
    def of(cls, config: ArrayConfig) -> Partnership | None:
        """That of an array; None if it has no partners. Raises UserError, HostError."""
        if not config.partners:
            return None
        assert config.control.identity is not None, "checked with the array file"
        return cls(Path(config.control.identity), config.name, config.partners)

    def identity_of(self, partner: str) -> str:
        """The identity that a partner has to prove."""
        return self._certificates[partner].identity

    def server_context(self) -> ssl.SSLContext:
        """Lets in partners only."""
        return tls.server_context(self._identity, self.own, self._certificates.values())

    def client_context(self, partner: str) -> ssl.SSLContext:
        """Reaches this partner only."""
        return tls.client_context(self._identity, self.own, self._certificates[partner])

    def asked_by(self, identity: str, run: str, where: str) -> str:
        """The partner that asks, by the identity that it has proven. Raises UserError and PeerError for any
        other."""
        name = self._names.get(identity)
        if name is None:
            raise UserError(
                f"the array {identity} is no partner here",
                "its certificate belongs into a [[partners]] table",
            )
        if not name:
            raise self.itself(where)
        self._heard(name, run, where)
        return name

    def answered_by(self, partner: str, run: str, where: str) -> None:
        """A partner has answered. Raises PeerError if it is one of two."""
        self._heard(partner, run, where)

    def itself(self, where: str) -> UserError:
        """What speaks there is no partner but has this array's own identity."""
        return UserError(
            f"{where}: that is this array itself, or another one that has a copy of its identity file",
            "name the partner's own address; an array that was copied needs its identity file removed",
        )

    def _heard(self, partner: str, run: str, where: str) -> None:
        if not _RUN.fullmatch(run):
            raise PeerError(
                f"{where}: partner {partner} does not say which run it is", f"it sends no {RUN_HEADER}"
            )
        if self._runs.heard(partner, run, where):
            self.newcomer(partner)


class _Runs:
    """The runs of each partner: where each was heard last, and when; the newest one last."""

    def __init__(self) -> None:
        self._heard: dict[str, dict[str, tuple[str, float]]] = {}
        self._doubles: dict[str, set[str]] = {}
        self._looking = threading.Lock()

    def heard(self, partner: str, run: str, where: str) -> bool:
        """Whether this run is a new one after others. Raises PeerError while there are two."""
        now = time.monotonic()
        with self._looking:
            runs = self._heard.setdefault(partner, {})
            newest = next(reversed(runs), run)
            is_new = bool(runs) and run not in runs
            if run in runs and run != newest:
                self._doubles.setdefault(partner, {newest}).add(run)
            runs[run] = (where, now)
            while len(runs) > _RUNS_KEPT:
                del runs[next(iter(runs))]
            self._refuse_doubles(partner, run, now)
        return is_new

    def _refuse_doubles(self, partner: str, run: str, now: float) -> None:
        doubles = self._doubles.get(partner, set()) & self._heard[partner].keys()
        runs = self._heard[partner]
        others = [runs[other] for other in doubles - {run} if now - runs[other][1] < DOUBLE_S]
        if not others:
            if self._doubles.pop(partner, None) is not None:  # the one that is left is the partner
                runs[run] = runs.pop(run)
            return
        self._doubles[partner].add(run)
        places = " and ".join(sorted({where for where, _ in [*others, runs[run]]}))
        raise PeerError(
            f"two arrays have the identity of partner {partner}, heard at {places}: nothing is exchanged with either",
            "an array was copied with its identity file: stop the copy, or start it without that file; "
            f"{DOUBLE_S / 60:.0f} min later the other one is a partner again",
        )
