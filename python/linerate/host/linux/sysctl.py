"""Knobs that are files under /proc/sys/net: the TCP stack's, one set per network namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from linerate.host.linux.knob import Knob, Reading, State
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel


@dataclass(frozen=True, slots=True)
class _Sysctl(Knob):
    """A sysctl as a whole, kept as its text."""

    name: str

    @property
    def source(self) -> str:
        """The sysctl."""
        return f"sysctl {self.name}"

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Writes the text that was there."""
        kernel.set_sysctl(self.name, state)


@dataclass(frozen=True, slots=True)
class SysctlSwitch(_Sysctl):
    """0 is off, anything else is on."""

    def read(self, kernel: Kernel, device: str) -> Reading:
        """On or off."""
        text = kernel.sysctl(self.name)
        return Reading(text != "0", text)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Writes 1 or 0."""
        kernel.set_sysctl(self.name, str(int(bool(value))))

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w."""
        return [f"sysctl -w {self.name}={int(bool(value))}"]


@dataclass(frozen=True, slots=True)
class SysctlChoice(_Sysctl):
    """Numbers that have names; a number without one is read as its text."""

    words: tuple[tuple[str, str], ...]

    def read(self, kernel: Kernel, device: str) -> Reading:
        """The number's name."""
        text = kernel.sysctl(self.name)
        return Reading({number: word for word, number in self.words}.get(text, text), text)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Writes the number."""
        kernel.set_sysctl(self.name, dict(self.words)[str(value)])

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w."""
        return [f"sysctl -w {self.name}={dict(self.words).get(str(value), value)}"]


@dataclass(frozen=True, slots=True)
class SysctlNumber(_Sysctl):
    """A number, or one of several on the line; `position` counts from 0 and its neighbours stay."""

    position: int = 0

    def read(self, kernel: Kernel, device: str) -> Reading:
        """The number."""
        text = kernel.sysctl(self.name)
        return Reading(int(text.split()[self.position]), text)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Writes the number among its neighbours."""
        kernel.set_sysctl(self.name, self._line(kernel.sysctl(self.name), str(value)))

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Writes the number that was there; its neighbours are settings of their own."""
        self.write(kernel, device, state.split()[self.position])

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w; its neighbours on the line may be set by other commands of the same plan."""
        if len(reading.state.split()) == 1:
            return [f"sysctl -w {self.name}={value}"]
        field = f"${self.position + 1}"
        return [f"sysctl -w {self.name}=\"$(sysctl -n {self.name} | awk '{{{field}={value}; print}}')\""]

    def _line(self, text: str, number: str) -> str:
        parts = text.split()
        parts[self.position] = number
        return " ".join(parts)
