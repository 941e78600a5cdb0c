"""Who takes part in a cluster: the holders of a certificate that was made for it, by mutual TLS 1.3.

The authority is in the memory of the gathering process and ends with it. A worker gets its key and certificate on
standard input, which SSH encrypts, in one line of JSON (`Assignment`). No file and no command line holds them; the ssl
module of Python reads a key from files only, so each process writes its own for that moment into a folder of mode 0700.
"""

from __future__ import annotations

import json
import ssl
from dataclasses import asdict, dataclass, field

from distributed import Security

from linerate.certificate import Authority, Credential

_AUTHORITY = "Linerate run"


class Membership:
    """The certificates of one cluster."""

    def __init__(self) -> None:
        self._authority = Authority(_AUTHORITY)
        own = self._authority.issue("gathering machine")
        self.security = _security(
            self.certificate,
            tls_scheduler_cert=own.certificate,
            tls_scheduler_key=own.private_key,
            tls_client_cert=own.certificate,
            tls_client_key=own.private_key,
        )
        """Of the scheduler and its client."""

    @property
    def certificate(self) -> str:
        """What every member trusts, in PEM form."""
        return self._authority.certificate

    def issue(self, host: str) -> Credential:
        """Of one host's worker."""
        return self._authority.issue(host)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is told on its standard input."""

    scheduler: str
    name: str
    address: str | None
    """It listens here; None: where it reaches the scheduler from."""
    ports: str | None
    """The range in which it listens, as `PortRange` reads it."""
    trusted: str = field(repr=False)
    private_key: str = field(repr=False)
    certificate: str = field(repr=False)

    def line(self) -> bytes:
        """For standard input."""
        return json.dumps(asdict(self)).encode("ascii") + b"\n"

    @classmethod
    def of_line(cls, line: bytes) -> Assignment:
        """Reads `line`. Raises ValueError or TypeError for anything else."""
        return cls(**json.loads(line))

    @property
    def security(self) -> Security:
        """Of the worker."""
        return _security(self.trusted, tls_worker_cert=self.certificate, tls_worker_key=self.private_key)


def _security(trusted: str, **own: str) -> Security:
    return Security(
        require_encryption=True, tls_ca_file=trusted, tls_min_version=ssl.TLSVersion.TLSv1_3, **own
    )
