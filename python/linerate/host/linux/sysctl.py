"""Knobs that are files under /proc/sys/net: the TCP stack's, one set per network namespace."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linerate.host.linux.knob import Knob, Reading, State
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel


class SysctlLine(Knob):
    """A setting that is a sysctl, or a part of its line."""

    __slots__ = ()

    name: str

    @property
    def whole_line(self) -> str:
        """The line as kernels have it, where the setting is one number of several; else empty."""
        return ""

    @abstractmethod
    def sysctl_text(self, value: Value, line: str) -> str:
        """The sysctl's line for a value; `line` is the line that it replaces."""

    def shell_read(self, device: str) -> str:
        """The line, with blanks between its numbers."""
        return f"sysctl -n {self.name} | xargs"

    def shell_write(self, device: str, value: Value) -> str:
        """sysctl -w."""
        return f"sysctl -w {self.name}={self.sysctl_text(value, '')}"

    def shell_restore(self, device: str, state: str) -> str:
        """sysctl -w with the line that was read."""
        return f'sysctl -w "{self.name}={state}"'


@dataclass(frozen=True, slots=True)
class _Sysctl(SysctlLine):
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
        kernel.set_sysctl(self.name, self.sysctl_text(value, ""))

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w."""
        return [self.shell_write(device, value)]

    def sysctl_text(self, value: Value, line: str) -> str:
        """1 or 0."""
        return str(int(bool(value)))


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
        return [self.shell_write(device, value)]

    def sysctl_text(self, value: Value, line: str) -> str:
        """The number of a name."""
        return str(dict(self.words).get(str(value), value))


@dataclass(frozen=True, slots=True)
class SysctlNumber(_Sysctl):
    """A number, or one of several on the line; `position` counts from 0 and its neighbours stay.

    `usual` is the line of several numbers as kernels have it.
    """

    position: int = 0
    usual: str = ""

    @property
    def whole_line(self) -> str:
        """What kernels have."""
        return self.usual

    def read(self, kernel: Kernel, device: str) -> Reading:
        """The number."""
        text = kernel.sysctl(self.name)
        return Reading(int(text.split()[self.position]), text)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Writes the number among its neighbours."""
        kernel.set_sysctl(self.name, self.sysctl_text(value, kernel.sysctl(self.name)))

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Writes the number that was there; its neighbours are settings of their own."""
        self.write(kernel, device, state.split()[self.position])

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """sysctl -w; its neighbours on the line may be set by other commands of the same plan."""
        return [self.shell_write(device, value)]

    def shell_write(self, device: str, value: Value) -> str:
        """sysctl -w; its neighbours on the line stay as they are."""
        if not self.usual:
            return SysctlLine.shell_write(self, device, value)
        field = f"${self.position + 1}"
        return f"sysctl -w {self.name}=\"$(sysctl -n {self.name} | awk '{{{field}={value}; print}}')\""

    def sysctl_text(self, value: Value, line: str) -> str:
        """The number among its neighbours."""
        parts = line.split() or [""]
        parts[self.position] = str(value)
        return " ".join(parts)
