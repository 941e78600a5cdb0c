"""The errors that Linerate raises, by whose fault they are: user, peer, host or Linerate itself."""

from __future__ import annotations

import errno
import re
import shlex
from pathlib import Path
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

_OF_MODELS = (
    (r"^Value error, ", ""),
    (r"^Extra inputs are not permitted$", "no such key"),
    (r"^Field required$", "must be given"),
    (r"^(?:Input|String|Value) should be a valid number.*", "must be a number"),
    (r"^Input should be a valid integer.*", "must be a whole number"),
    (r"^Input should be a valid string.*", "must be text"),
    (r"^Input should be a valid boolean.*", "must be true or false"),
    (r"^Input should be a valid (?:list|tuple|array).*", "must be a list"),
    (r"^Input should be a valid dictionary.*", "must be a table"),
    (r"^Input should be greater than or equal to ", "must be at least "),
    (r"^Input should be less than or equal to ", "must be at most "),
    (r"^Input should be greater than ", "must be more than "),
    (r"^Input should be less than ", "must be less than "),
    (r"^Input should be ", "must be "),
    (r"^String should (?=match |have )", "must "),
)
"""What a model says of a value that it refuses -> in the words of this program."""


def fault_text(message: str) -> str:
    """One message of a ValidationError (`errors()[n]["msg"]`); an unknown one stays as it is."""
    for pattern, plain in _OF_MODELS:
        message = re.sub(pattern, plain, message)
    return message


def printable(text: str) -> str:
    """A text from elsewhere for a message, without the control characters that terminals obey."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def quote(word: Path | str) -> str:
    """A path or a name as a shell takes it as one word, for commands that messages show."""
    return shlex.quote(str(word))
