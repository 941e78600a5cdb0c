"""How an array is managed, with whom it replicates, and what."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, model_validator

from linerate.array.base import Frozen, Name, misplaced

LOOPBACK = "127.0.0.1:0"


def _port_is_one(address: str) -> str:
    if int(address.rpartition(":")[2]) > 65535:
        raise ValueError("a port is at most 65535")
    return address


_Address = Annotated[
    str, Field(pattern=r"^(\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]/]+):\d{1,5}$"), AfterValidator(_port_is_one)
]
"""host:port, or [IPv6]:port."""


def _is_https(url: str) -> str:
    if not re.fullmatch(r"https://(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/]+):\d{1,5}/?", url):
        raise ValueError("partners speak TLS: https://HOST:PORT")
    _port_is_one(url.rstrip("/"))
    return url


class Control(Frozen):
    """The HTTP control API of an array that serves."""

    listen: _Address = LOOPBACK
    """Address with port; port 0 lets the kernel choose. Others than this machine reach it only if it says so."""
    token_file: str | None = None
    """Keeps the token over restarts: made if missing, readable by its owner alone. None: a new token at every start."""
    certificate: str | None = None
    """PEM file with the certificate chain: the API speaks HTTPS."""
    key: str | None = None
    """PEM file with the certificate's private key."""
    identity: str | None = None
    """PEM file with this array's own key and certificate, which partners pin: made if missing. Needed with
    partners."""
    partner_listen: _Address | None = None
    """Address with port where partners reach this array, by mutual TLS; none: it only asks them."""

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Control:
        if (self.certificate is None) != (self.key is None):
            raise misplaced(
                ("key" if self.key else "certificate",), "HTTPS needs both a certificate and a key"
            )
        if self.partner_listen is not None and self.identity is None:
            raise misplaced(("partner_listen",), "partners know this array by its identity: name its file")
        return self


class Partner(Frozen):
    """Another array, to which this one replicates or from which it receives."""

    name: Name
    """What this array calls it."""
    certificate: str
    """PEM file with the certificate that `linerate array identity` prints for the partner."""
    control: Annotated[str, AfterValidator(_is_https)] | None = None
    """Where the partner listens for its partners; none: this array is only asked."""
    portal: _Address | None = None
    """A portal of the partner on the SAN: data travels there over iSCSI."""

    @model_validator(mode="after")
    def _is_whole(self) -> Partner:
        if (self.control is None) != (self.portal is None):
            raise misplaced(("name",), "replication to a partner needs both its control URL and a portal")
        return self


class Replication(Frozen):
    """Volumes that are copied to a partner together, each time as they were at one instant."""

    name: Name
    partner: Name
    volumes: tuple[Name, ...] = Field(min_length=1)
    """Pool volumes of this array; the partner's have the same names."""
    pool: Name
    """Pool at the partner."""
    interval_s: PositiveFloat | None = None
    """Time from start to start; none: only when told to."""
    keep: Annotated[int, Field(ge=1, le=1000)] = 4
    """Snapshots kept at both ends, the newest ones."""
    rate_bytes_per_s: PositiveInt | None = None
    """Most that is sent; none: as fast as it goes."""
