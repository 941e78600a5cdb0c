"""What a Linux knob can do: read, write, and put back what was there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.host.setting import UnavailableError
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

State = Any
"""What a knob needs to put everything back as it was; plain JSON."""


class DeviceGoneError(UnavailableError):
    """There is no device of that name."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of a knob: `value` for people and comparisons, `state` to put everything back."""

    value: Value
    state: State


def first_number(show: str, device: str, name: str) -> str:
    """For a shell command: the number of a name in the first half of what ethtool shows, the driver's maximum."""
    return f"$(ethtool {show} {device} | sed -n s/^{name}:[[:space:]]*//p | head -n 1)"


class Knob(ABC):
    """Writes one setting inside the network namespace of `kernel`; `device` is empty for a whole
    host.

    Every method raises UnavailableError with the reason when the host cannot.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the value comes from: `sysctl net.ipv4.tcp_sack`, `ethtool rings`."""

    @abstractmethod
    def read(self, kernel: Kernel, device: str) -> Reading:
        """The present value and state."""

    @abstractmethod
    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Turns the knob."""

    @abstractmethod
    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts back what `read` found."""

    @abstractmethod
    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """What a person would type to do the same; `reading` is the present value."""

    @abstractmethod
    def shell_read(self, device: str) -> str:
        """A shell command that prints the state in one line, and nothing where the device has no such setting."""

    @abstractmethod
    def shell_write(self, device: str, value: Value) -> str:
        """A shell command that sets the value on any host. Of an adapter's settings it holds no quotes, so that
        a udev rule can quote it."""

    def shell_restore(self, device: str, state: str) -> str:
        """A shell command that puts back a state that `shell_read` has printed."""
        return self.shell_write(device, state)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """The largest number that the device takes; None when it does not say, or when it is no number."""
        return None
