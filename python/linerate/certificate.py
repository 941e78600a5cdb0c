"""Keys and certificates for mutual TLS between Linerate's own processes. No clock has to be right: none expires.

`self_signed` is for a side whose certificate the other side has pinned. An `Authority` is for a group that is made at
once and ends together: each member gets a certificate of it, and trusts every certificate of it.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

# RFC 5280 section 4.1.2.5: the certificate has no expiration date.
_FROM = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_UNTIL = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
_NAME_MAX = 64
"""RFC 5280 appendix A.1: ub-common-name."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A private key and its certificate, each in PEM form."""

    private_key: str = field(repr=False)
    certificate: str = field(repr=False)


def self_signed(name: str) -> Credential:
    """A new key with a certificate that it has signed itself."""
    key = _new_key()
    return _credential(key, _signed(_draft(name, name, key), key, ca=False))


class Authority:
    """Signs certificates. Its own key is in the memory of this process only."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._key = _new_key()
        self.certificate = _pem(_signed(_draft(name, name, self._key), self._key, ca=True))
        """What members trust, in PEM form; no secret."""

    def issue(self, name: str) -> Credential:
        """A new key with a certificate of this authority."""
        key = _new_key()
        return _credential(key, _signed(_draft(name, self._name, key), self._key, ca=False))


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _draft(name: str, issuer: str, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    from cryptography import x509

    return x509.CertificateBuilder(
        issuer_name=_common_name(issuer),
        subject_name=_common_name(name),
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=_FROM,
        not_valid_after=_UNTIL,
    )


def _common_name(name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:_NAME_MAX])])


def _signed(draft: x509.CertificateBuilder, key: EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    constraints = x509.BasicConstraints(ca=ca, path_length=0 if ca else None)
    return draft.add_extension(constraints, critical=True).sign(key, hashes.SHA256())


def _credential(key: EllipticCurvePrivateKey, certificate: x509.Certificate) -> Credential:
    from cryptography.hazmat.primitives import serialization

    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Credential(private.decode("ascii"), _pem(certificate))


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
