"""How an array is managed, with whom it replicates, and what."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, model_validator

from linerate.array.base import Frozen, Name, Secret, misplaced
from linerate.array.credentials import chap_fault

SECRET_BYTES_MIN = 16
LOOPBACK = "127.0.0.1:0"


def _port_is_one(address: str) -> str:
    if int(address.rpartition(":")[2]) > 65535:
        raise ValueError("a port is at most 65535")
    return address


_Address = Annotated[
    str, Field(pattern=r"^(\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]/]+):\d{1,5}$"), AfterValidator(_port_is_one)
]
"""host:port, or [IPv6]:port."""


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

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Control:
        if (self.certificate is None) != (self.key is None):
            raise misplaced(
                ("key" if self.key else "certificate",), "HTTPS needs both a certificate and a key"
            )
        return self


class Partner(Frozen):
    """Another array, to which this one replicates or from which it receives."""

    name: Name
    """Name that both arrays give each other's table; requests are signed under it."""
    secret: Secret
    """Shared by both arrays, at least 16 bytes. It signs requests and is never sent."""
    control: str | None = Field(default=None, pattern=r"^https?://[^\s/]+/?$")
    """URL of the partner's control API; an array that only receives needs none."""
    authority: str | None = None
    """PEM file with the certificates that vouch for the partner's HTTPS; none: those of this machine."""
    portal: _Address | None = None
    """A portal of the partner on the SAN: data travels there over iSCSI."""
    chap_user: str | None = None
    """CHAP user for the partner's target."""
    chap_secret: Secret | None = None
    """CHAP secret for the partner's target."""

    @model_validator(mode="after")
    def _is_whole(self) -> Partner:
        if len(self.secret.get_secret_value().encode()) < SECRET_BYTES_MIN:
            raise misplaced(("secret",), f"a partner's secret has at least {SECRET_BYTES_MIN} bytes")
        if (self.control is None) != (self.portal is None):
            raise misplaced(("name",), "replication to a partner needs both its control URL and a portal")
        if (self.chap_user is None) != (self.chap_secret is None):
            raise misplaced(("chap_user",), "CHAP needs both chap_user and a chap secret")
        if self.chap_secret is not None and (fault := chap_fault(self.chap_secret.get_secret_value())):
            raise misplaced(("chap_secret",), fault)
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
