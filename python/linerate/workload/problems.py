"""A position in a file, and a collector of what is wrong there.

A reader notes every problem it meets and raises one UserError at the end, so that a user mends a file in one
go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linerate.errors import UserError, printable
from linerate.workload.plan import FileNotice

_MOST_SHOWN = 20
_ERRORS_MAX = 1000
"""A file with so many errors is not read further."""
_TEXT_SHOWN = 60


def shorten(text: str) -> str:
    """A text of a file for a message: at most 60 characters, all printable."""
    return printable(text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 3] + "...")


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of a file; `line` counts from 1, 0 means the file as a whole."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(slots=True)
class Problems:
    """The errors and notices of one reading."""

    errors: list[tuple[str, str]] = field(default_factory=list)
    notices: list[FileNotice] = field(default_factory=list)
    _noted: set[FileNotice | tuple[str, str]] = field(default_factory=set)

    def error(self, place: SourceLocation, what: str, accepted: str = "") -> None:
        """Notes that `what` is wrong; `accepted` says what is right. Raises UserError for one too many."""
        entry = (printable(f"{place}: {what}"), printable(accepted))
        if entry not in self._noted:
            self._noted.add(entry)
            self.errors.append(entry)
            if len(self.errors) == _ERRORS_MAX:
                self.raise_if_any()

    def notice(self, place: SourceLocation, message: str) -> None:
        """Notes something that was read otherwise than its author may expect."""
        entry = FileNotice(str(place), printable(message))
        if entry not in self._noted:
            self._noted.add(entry)
            self.notices.append(entry)

    def raise_if_any(self) -> None:
        """Raises one UserError for all errors so far."""
        if not self.errors:
            return
        if len(self.errors) == 1:
            raise UserError(*self.errors[0])
        lines = [f"{what} ({accepted})" if accepted else what for what, accepted in self.errors[:_MOST_SHOWN]]
        if len(self.errors) > _MOST_SHOWN:
            lines.append(f"and {len(self.errors) - _MOST_SHOWN} more")
        raise UserError("\n".join(lines), "fix the first error first; it may cause the others")
