"""What all tables of an array file share: frozen models, names, secrets, and faults that say where they are."""

from __future__ import annotations

import re
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
)
from pydantic_core import PydanticCustomError

from linerate.model import Model

REVEAL = "reveal_secrets"
"""Key of the serialization context under which secrets are written out, for the data plane only."""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,47}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name that may stand in `volume@snapshot`, in a URL and in a counter's name."""

NAME_FORM = "1 to 48 letters, digits, dots, hyphens and underscores, a letter or digit first"

Sector = Literal[512, 4096]
"""Size of a logical or physical block."""


_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_ISCSI_NAMES = (
    rf"iqn\.[0-9]{{4}}-(?:0[1-9]|1[0-2])\.{_LABEL}(?:\.{_LABEL})*(?::[a-z0-9.:-]*)?",
    r"eui\.[0-9a-f]{16}",
    r"naa\.[0-9a-f]{16}(?:[0-9a-f]{16})?",
)


def _target_name(text: str) -> str:
    # The data plane refuses what this refuses; here the file and its line are known.
    if not any(re.fullmatch(form, text.lower()) for form in _ISCSI_NAMES):
        raise ValueError(
            "an iSCSI name is iqn.YYYY-MM.reversed.domain[:text], eui. and 16 hex digits, or naa. and 16 or 32 hex "
            "digits, of letters, digits, '-', '.' and ':'"
        )
    return text


TargetName = Annotated[str, Field(min_length=1, max_length=223), AfterValidator(_target_name)]
"""The name of an iSCSI target (RFC 7143 4.2.7)."""


def _portal_address(text: str) -> str:
    # The data plane refuses what this refuses; here the file and its line are known.
    host, _, port = text.rpartition(":")
    try:
        IPv6Address(host[1:-1]) if host[:1] + host[-1:] == "[]" else IPv4Address(host)
    except ValueError:
        port = ""
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise ValueError(
            f'"{text}" is not an address with a port, for example "10.1.0.10:3260" or "[::1]:3260"; a name is not '
            "looked up"
        )
    return text


PortalAddress = Annotated[str, AfterValidator(_portal_address)]
"""An IP address and a TCP port: 127.0.0.1:3260 or [::1]:3260."""


def _initiator_pattern(text: str) -> str:
    pattern = text.lower()  # as the data plane normalises names (RFC 3722)
    if not re.fullmatch(r"[a-z0-9.:-]*\*?", pattern):
        raise ValueError("an iSCSI name has letters, digits, '-', '.' and ':'; a '*' may end it")
    beginning = pattern.removesuffix("*")
    types = ("iqn.", "eui.", "naa.")
    is_whole = beginning.startswith(types)
    if not is_whole and (beginning == pattern or not any(one.startswith(beginning) for one in types)):
        raise ValueError("an iSCSI name starts with iqn., eui. or naa.; an initiator tells its own")
    return pattern


InitiatorPattern = Annotated[str, AfterValidator(_initiator_pattern)]
"""iSCSI name of an initiator in lower case, or with a `*` at the end the beginning of one."""

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


class Frozen(Model):
    """A table: unknown keys are refused, values do not change, docstrings of fields are their description."""

    model_config = ConfigDict(
        extra="forbid",
        hide_input_in_errors=True,  # it may be a secret
    )


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    return value.get_secret_value() if (info.context or {}).get(REVEAL) else str(value)


Secret = Annotated[SecretStr, PlainSerializer(_shown, return_type=str)]
"""A secret: stars wherever it is shown or written, except for the data plane."""


def misplaced(at: Place, message: str) -> PydanticCustomError:
    """A fault found by comparing values; `at` leads from the model that finds it to the key that is wrong."""
    return PydanticCustomError("misplaced", "{message}", {"message": message, "at": at})


def unique(table: str, names: list[str]) -> None:
    """Refuses a name that two entries of a table have."""
    if doubled := sorted(name for name, times in Counter(names).items() if times > 1):
        raise misplaced((table,), f"named twice: {', '.join(doubled)}")


def known(what: str, names: set[str]) -> str:
    """What there is instead of a name that was not found."""
    return f"{what}: {', '.join(sorted(names))}" if names else f"there are no {what} at all"
