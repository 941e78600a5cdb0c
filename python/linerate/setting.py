"""One setting of the catalogue: name, title, explanation, unit, range, default.

A `Setting` holds no state. Values are plain: bool for on and off, str for a choice or a text, int for a number.
`parse` makes them from the text of people and files, `text` writes them back. Units end the names of numbers,
except where the name comes from a standard (mtu). `linerate.settings` is the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from linerate.errors import UserError
from linerate.quantity import parse_size, size_text

Value = bool | int | str
"""bool of an `OnOff`, int of a `Number`, str of the others or of one of a number's words."""
MAX = "max"
"""A number's word for the most that the device can do; it becomes a number when it is applied."""
Applier = Literal["host", "load", "fabric", "array", "multipath", "faults"]
"""What applies a setting on a virtual SAN."""

_ON = ("on", "true", "yes", "enabled")
_OFF = ("off", "false", "no", "disabled")


@dataclass(frozen=True, slots=True)
class OnOff:
    """On or off."""

    unit = ""

    def parse(self, given: Value) -> bool:
        """Raises ValueError that says what is accepted."""
        if isinstance(given, bool):
            return given
        word = str(given).strip().lower()
        if word in _ON or word in _OFF:
            return word in _ON
        raise ValueError(f"{given!r} is neither on nor off")

    def text(self, value: Value) -> str:
        """The value as a person writes it."""
        return "on" if value else "off"

    @property
    def range_text(self) -> str:
        """What is accepted."""
        return "on or off"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words; `open` accepts others too, which the host then knows or refuses."""

    options: tuple[str, ...]
    open: bool = False
    unit = ""

    def parse(self, given: Value) -> str:
        """Raises ValueError that says what is accepted. True and false stand for on and off."""
        word = ("on" if given else "off") if isinstance(given, bool) else str(given).strip().lower()
        word = {"true": "on", "enabled": "on", "false": "off", "disabled": "off"}.get(word, word)
        if word in self.options or (self.open and word.replace("_", "").replace("-", "").isalnum()):
            return word
        raise ValueError(f"{given!r} is not one of {self.range_text}")

    def text(self, value: Value) -> str:
        """The value as a person writes it."""
        return str(value)

    @property
    def range_text(self) -> str:
        """What is accepted."""
        return ", ".join(self.options) + (" or another that the host has" if self.open else "")


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number with a unit and a range; `words` are names of special values or values of their own.

    `limited` says that a device knows its own maximum within the range, so that the word max may be used.
    """

    unit: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    zero_word: str = ""
    limited: bool = False

    def parse(self, given: Value) -> int | str:
        """Raises ValueError that says what is accepted."""
        if isinstance(given, bool):
            if given is False and self.zero_word == "off":
                return 0
            raise ValueError(f"{given!r} is not a number; write {self.range_text}")
        if isinstance(given, str):
            word = given.strip().lower()
            if word in self.words or (word == MAX and self.limited):
                return word
            if word and word == self.zero_word:
                return 0
            number = self._number(word)
        else:
            number = given
        if not self.least <= number <= self.most:
            raise ValueError(f"{given!r} is out of range; write {self.range_text}")
        return number

    def _number(self, word: str) -> int:
        try:
            return parse_size(word) if self.unit == "bytes" else int(word.removesuffix(self.unit).strip())
        except ValueError:
            raise ValueError(f"{word!r} is not a number; write {self.range_text}") from None

    def text(self, value: Value) -> str:
        """The value as a person writes it, without its unit."""
        if value == 0 and self.zero_word:
            return self.zero_word
        return str(value)

    @property
    def range_text(self) -> str:
        """What is accepted, with the unit."""
        most = size_text(self.most) if self.unit == "bytes" and self.most >= 1 << 20 else str(self.most)
        words = [*self.words, *([self.zero_word] if self.zero_word else []), *([MAX] if self.limited else [])]
        also = f", or {' or '.join(words)}" if words else ""
        return f"{self.least} to {most} {self.unit}{also}".replace(" ,", ",").rstrip()


@dataclass(frozen=True, slots=True)
class Written:
    """A value with a notation of its own: a rate, a time, a list of paths.

    `read` gives what the notation means and raises ValueError for anything else; `write` is the way back.
    """

    form: str
    read: Callable[[Value], Any]
    write: Callable[[Any], str] = str
    unit = ""

    def parse(self, given: Value) -> str:
        """The value in its shortest notation. Raises ValueError that says what is accepted."""
        return self.write(self.meaning(given))

    def meaning(self, given: Value) -> Any:
        """What the notation means. Raises ValueError that says what is accepted."""
        try:
            return self.read(given)
        except ValueError:
            raise ValueError(f"{given!r} cannot be used; write {self.form}") from None

    def text(self, value: Value) -> str:
        """The value as a person writes it."""
        return str(value)

    @property
    def range_text(self) -> str:
        """What is accepted."""
        return self.form


Kind = OnOff | Choice | Number | Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One entry of the catalogue; `doc` says what it does. `default` is its value where nothing sets it."""

    name: str
    title: str
    kind: Kind
    default: str
    doc: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc", " ".join(self.doc.split()))

    @property
    def unit(self) -> str:
        """bytes, us, frames ...; empty for a switch, a choice or a text."""
        return self.kind.unit

    @property
    def range_text(self) -> str:
        """The values that are accepted, as a phrase."""
        return self.kind.range_text

    def parse(self, given: Value) -> Value:
        """The value of what a person or a file wrote: `on`, `9000`, `64k`, `max`, true.

        Raises UserError that names the setting and what it accepts.
        """
        return self._checked(self.kind.parse, given)  # type: ignore[no-any-return]

    def meaning(self, given: Value) -> Any:
        """The value as the field of a model: a rate as a number, a time in seconds. Raises UserError like `parse`."""
        return self._checked(self.kind.meaning if isinstance(self.kind, Written) else self.kind.parse, given)

    def _checked(self, read: Callable[[Value], Any], given: Value) -> Any:
        try:
            return read(given)
        except ValueError as error:
            what, _, accepted = str(error).partition("; ")
            raise UserError(f"{self.name}: {what}", accepted or f"write {self.range_text}") from None

    def text(self, value: Value) -> str:
        """The value as `parse` reads it, without its unit."""
        return self.kind.text(value)
