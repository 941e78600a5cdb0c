"""Mutual TLS between partners: both ends prove the key whose certificate the other one has pinned.

TLS 1.3 and nothing older, without session tickets and early data: every connection has fresh keys of both
ends, so what was recorded of one counts in no other, also not after a restart; nothing has to be remembered
for that. Client and server sign different things, so what an array sends cannot be sent back to it as an
answer or as a request. Method, path, body and answer are covered by the records.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

from linerate.array.control.identity import Certificate


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
