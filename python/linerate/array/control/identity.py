"""Who an array is: a key and a certificate of its own, in a file that stays over restarts.

Partners pin each other's certificate: no authority signs it, it is never renewed, and it says only which
key belongs to the array. An array's identity is the SHA-256 fingerprint of its certificate.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path

from linerate.certificate import self_signed
from linerate.errors import HostError, UserError

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Certificate:
    """An array's certificate, which is no secret."""

    pem: str = field(repr=False)

    @property
    def identity(self) -> str:
        """Its fingerprint, as `openssl x509 -fingerprint -sha256` tells it apart from the colons."""
        return identity_of(ssl.PEM_cert_to_DER_cert(self.pem))


def identity_of(der: bytes) -> str:
    """The identity that a certificate in DER form gives."""
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def read_certificate(path: Path) -> Certificate:
    """The one certificate in a PEM file. Raises UserError."""
    hint = "copy what `linerate array identity` prints for the other array into this file"
    try:
        found = _CERTIFICATE.findall(path.read_text("ascii"))
        if len(found) != 1:
            raise UserError(f"{path}: holds {len(found)} certificates, and one is needed", hint)
        certificate = Certificate(found[0])
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=certificate.pem)
    except OSError as error:  # ssl.SSLError is one, too
        raise UserError(f"{path}: {error.strerror or error}", hint) from error
    except ValueError as error:
        raise UserError(f"{path}: not a certificate in PEM form", hint) from error
    return certificate


def own_identity(path: Path, name: str) -> Certificate:
    """The certificate of the array `name`, whose identity file is made if it is missing. Raises UserError,
    HostError."""
    try:
        held = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _known(path)
    except OSError as error:
        raise HostError(
            f"{path}: {error.strerror}", "the array's identity is kept there: name a file that can be made"
        ) from error
    with os.fdopen(held, "wb") as file:
        made = self_signed(name)
        file.write((made.private_key + made.certificate).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    return _known(path)


def _known(path: Path) -> Certificate:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "name the array's identity file") from error
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(f"{path}: others may read the array's private key", f"chmod 600 {path}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path)
    except OSError as error:
        raise UserError(
            f"{path}: not a private key with its certificate: {error.strerror or error}",
            "bring back the file as it was; without it the array needs a new identity: linerate array rejoin",
        ) from error
    return read_certificate(path)
