"""TLS of the control API: HTTPS for owners, and mutual TLS between partners.

Between partners both ends prove the key whose certificate the other one has pinned: TLS 1.3 and nothing older,
without session tickets and early data. Every connection has fresh keys of both ends, so what was recorded of one
counts in no other, also not after a restart; nothing has to be remembered for that. Client and server sign different
things, so what an array sends cannot be sent back to it as an answer or as a request. Method, path, body and answer
are covered by the records.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from linerate.array.control.identity import Certificate
from linerate.errors import UserError

_DAY = "%Y-%m-%d"


class CertificateError(UserError):
    """A certificate or key of the array file that HTTPS cannot use."""

    def __init__(self, key: str, fault: str, hint: str) -> None:
        super().__init__(f"control.{key}: {fault}", hint)
        self.key = key
        """Key of the table `control`."""
        self.fault = fault


def owner_context(certificate: str, key: str) -> ssl.SSLContext:
    """For HTTPS. Raises CertificateError for files that are no certificate with its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    locked: list[str] = []

    def passphrase() -> str:
        # Else it would be asked for on the terminal, and a service has none.
        locked.append(key)
        return ""

    for name, path in (("certificate", certificate), ("key", key)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise CertificateError(
                name, f"{path}: {error.strerror}", "name a PEM file that the array may read"
            ) from error
    try:
        context.load_cert_chain(certificate, key, passphrase)
    except ssl.SSLError as error:
        raise _unusable(certificate, key, error.reason or "", has_passphrase=bool(locked)) from error
    return context


def _unusable(certificate: str, key: str, reason: str, *, has_passphrase: bool) -> CertificateError:
    if has_passphrase:
        hint = f"write the key without it: openssl pkey -in {key} -out PLAIN"
        return CertificateError("key", f"{key} has a passphrase, and a service cannot ask for it", hint)
    if reason == "KEY_VALUES_MISMATCH":
        fault = f"{key} belongs to another certificate than {certificate}"
        return CertificateError("key", fault, "name the key that the certificate was made with")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except ssl.SSLError:
        fault = f"{certificate} is no certificate in PEM form"
        return CertificateError("certificate", fault, "name a file with BEGIN CERTIFICATE")
    fault = f"{key} is no private key in PEM form"
    return CertificateError("key", fault, "name a file with BEGIN PRIVATE KEY")


def invalid_now(certificate: str, now: datetime | None = None) -> str | None:
    """Why owners do not trust the certificate in a PEM file because of its dates; none if they do."""
    from cryptography import x509

    now = now or datetime.now(UTC)
    one = x509.load_pem_x509_certificates(Path(certificate).read_bytes())[0]
    if now > one.not_valid_after_utc:
        what = f"was valid until {one.not_valid_after_utc:{_DAY}}"
    elif now < one.not_valid_before_utc:
        what = f"is valid from {one.not_valid_before_utc:{_DAY}} on"
    else:
        return None
    return f"{certificate} {what}, and today is {now:{_DAY}}: clients refuse it; name one that is valid"


def server_context(identity: Path, own: Certificate, partners: Iterable[Certificate]) -> ssl.SSLContext:
    """For the array that is asked: it lets in the holders of these certificates.

    Its own is let in too, so that an array that reaches itself, or has a double, is told so and not just cut
    off.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    return _pinned(context, identity, [own, *partners])


def client_context(identity: Path, own: Certificate, partner: Certificate) -> ssl.SSLContext:
    """For the array that connects. The certificate identifies the array; names and addresses do not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _pinned(context, identity, [own, partner])


def _pinned(context: ssl.SSLContext, identity: Path, trusted: Iterable[Certificate]) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(identity)
    context.load_verify_locations(cadata="\n".join(certificate.pem for certificate in trusted))
    return context
