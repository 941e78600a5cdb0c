"""A setting as an object: its name, unit and range, what it does to whom, and the knob that turns it.

A `Setting` holds no state. Values are plain: bool for a switch, str for a choice, int for a number; `parse`
makes them from what people and files write, `text` writes them back. Units end the names of numbers, except
where the name is a standard's own (mtu).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from linerate.errors import HostError, UserError
from linerate.workload.units import parse_size, size_text

if TYPE_CHECKING:
    from linerate.host.linux.knob import Knob
    from linerate.host.windows.knob import WindowsKnob

Value = bool | int | str
"""bool of a switch, int of a number, str of a choice or of one of a number's words."""
Where = Literal["nic", "stack", "route", "session", "fabric"]
"""Who holds the setting: the adapter and its driver, the TCP stack, the routes to the SAN, the iSCSI session,
or the links and switches."""
Scope = Literal["port", "host", "session"]
"""What one value covers: one port, the whole host (or network namespace), or one session."""
MAX = "max"
"""A number's word for the most that the device can do; it becomes a number when it is applied."""

_ON = ("on", "true", "yes", "enabled")
_OFF = ("off", "false", "no", "disabled")


class UnavailableError(HostError):
    """A setting that a host, device, kernel or system does not have, or does not let us change; it says why."""


@dataclass(frozen=True, slots=True)
class Switch:
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


Kind = Switch | Choice | Number


@dataclass(frozen=True, slots=True)
class Names:
    """What a setting is called elsewhere; empty where there is no such thing.

    linux: the tool and its word (ethtool, ip, sysctl). windows: the cmdlet's property or registry value.
    published: the words of the published NIC studies and their adapters' property pages. open_iscsi: the
    record of that initiator.
    """

    linux: str = ""
    windows: str = ""
    published: str = ""
    open_iscsi: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One entry of the catalogue; `doc` says what it does to whom.

    `default` is what a host usually comes with; `absent` is why Linux has no knob for it, where it has none.
    `unproven` is why reading it back does not show that it takes effect; empty where it does.
    """

    name: str
    title: str
    where: Where
    scope: Scope
    kind: Kind
    names: Names
    default: str
    doc: str
    absent: str = ""
    unproven: str = ""
    linux: Knob | None = field(default=None, repr=False, compare=False)
    windows: WindowsKnob | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doc", " ".join(self.doc.split()))

    @property
    def unit(self) -> str:
        """bytes, us, frames ...; empty for a switch or a choice."""
        return self.kind.unit

    @property
    def range_text(self) -> str:
        """The values that are accepted, as a phrase."""
        return self.kind.range_text

    def parse(self, given: Value) -> Value:
        """The value of what a person or a file wrote: `on`, `9000`, `64k`, `max`, true.

        Raises UserError that names the setting and what it accepts.
        """
        try:
            return self.kind.parse(given)
        except ValueError as error:
            what, _, accepted = str(error).partition("; ")
            raise UserError(f"{self.name}: {what}", accepted or f"write {self.range_text}") from None

    def text(self, value: Value) -> str:
        """The value as `parse` reads it, without its unit."""
        return self.kind.text(value)


Catalogue = Mapping[str, Setting]
"""Settings by name, in the order in which they are applied."""
