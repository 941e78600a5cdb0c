"""The errors that Linerate raises, by whose fault they are: user, peer, host or Linerate itself."""

from __future__ import annotations

import errno
from typing import ClassVar, Literal

Blame = Literal["user", "peer", "host", "us"]


class LinerateError(Exception):
    """An error with somebody to blame and a way out.

    `message` says what went wrong and where (file, line, key or address); `hint` says what to do about it.
    """

    blame: ClassVar[Blame] = "us"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(LinerateError):
    """The command line or a file that the user gave is wrong."""

    blame = "user"
    exit_code = 2


class PeerError(LinerateError):
    """An array or another remote end refused, misbehaved or went away."""

    blame = "peer"


class HostError(LinerateError):
    """This host lacks something: a permission, memory, a device, a kernel feature."""

    blame = "host"


def is_full_disk(error: OSError) -> bool:
    """Whether a write failed for want of room, on the disk or in a quota."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class InternalError(LinerateError):
    """Linerate itself is wrong."""


BY_BLAME: dict[Blame, type[LinerateError]] = {
    kind.blame: kind for kind in (UserError, PeerError, HostError, InternalError)
}
"""The class for each one who may be to blame, for errors that come from another process."""
