"""Who turns a setting on a device: a knob of the kernel, a writer that its owner gave, or nobody, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from linerate.errors import HostError
from linerate.host.linux.knob import Knob, Reading, State
from linerate.host.setting import Setting, UnavailableError, Value, Where
from linerate.host.target import HostTarget

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel


class Writer(Protocol):
    """Reads and turns settings that the host's kernel does not hold: a session's, or those of a lab's fabric.

    A writer for `fabric` goes before the kernel for the settings that it says are available.
    """

    def available(self, setting: Setting, device: str) -> str:
        """Empty, or why this writer cannot turn the setting; `device` is empty unless its scope is a port."""

    def read(self, setting: Setting, device: str) -> Value:
        """The present value."""

    def write(self, setting: Setting, device: str, value: Value) -> None:
        """Turns it. Raises linerate.errors.HostError when it cannot."""


Writers = Mapping[Where, Writer]
"""Writers for `session` and for `fabric`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that could not be had on a device (empty: on the host), and why."""

    setting: str
    device: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}{f' of {self.device}' if self.device else ''}: {self.reason}"


class Hand:
    """A setting on a device, in reach of whoever turns it."""

    def __init__(
        self, setting: Setting, device: str, kernel: Kernel, writer: Writer | None, where: Where
    ) -> None:
        self.setting = setting
        self.device = device
        self.where = where
        self._kernel = kernel
        self._writer = writer
        self._why = writer.available(setting, device) if writer is not None else ""

    @property
    def source(self) -> str:
        """Where the value comes from."""
        if self.where in ("session", "fabric"):
            return self.where
        return self.setting.linux.source if self.setting.linux else ""

    def _knob(self) -> Knob:
        """The kernel's knob. Raises UnavailableError where there is none, or where it is not the kernel's to
        turn."""
        if self.where == "session":
            raise UnavailableError("it is asked for when an iSCSI session logs in, not set on a host")
        if self.where == "fabric":
            raise UnavailableError("a lab's fabric holds it", "take the lab down, or go on with its study")
        if self.setting.linux is None:
            raise UnavailableError(self.setting.absent)
        return self.setting.linux

    def _held(self) -> Writer | None:
        """The writer. Raises UnavailableError when it cannot."""
        if self._why:
            raise UnavailableError(self._why)
        return self._writer

    def read(self) -> Reading:
        """Value and state."""
        if (writer := self._held()) is None:
            return self._knob().read(self._kernel, self.device)
        value = writer.read(self.setting, self.device)
        return Reading(value, value)

    def most(self) -> int | None:
        """The device's maximum, if it says."""
        return self._knob().most(self._kernel, self.device) if self._held() is None else None

    def write(self, value: Value) -> None:
        """Turns it."""
        if (writer := self._held()) is None:
            self._knob().write(self._kernel, self.device, value)
        else:
            writer.write(self.setting, self.device, value)

    def restore(self, state: State) -> None:
        """Puts it back."""
        if (writer := self._held()) is None:
            self._knob().restore(self._kernel, self.device, state)
        else:
            writer.write(self.setting, self.device, state)

    def refusal(self, error: HostError) -> Refusal:
        """The words for what went wrong."""
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        return Refusal(self.setting.name, self.device, reason)


def hands(
    settings: Sequence[Setting], target: HostTarget, kernel: Kernel, writers: Writers
) -> Iterator[Hand]:
    """Each setting, on each of the target's devices if it is a port's."""
    for setting in settings:
        for device in target.devices if setting.scope == "port" else ("",):
            yield _hand(setting, device, kernel, writers)


def _hand(setting: Setting, device: str, kernel: Kernel, writers: Writers) -> Hand:
    fabric = writers.get("fabric")
    if fabric is not None and (setting.where == "fabric" or setting.fabric):
        held = Hand(setting, device, kernel, fabric, "fabric")
        if setting.where == "fabric" or not fabric.available(setting, device) or setting.linux is None:
            return held
    return Hand(setting, device, kernel, writers.get(setting.where), setting.where)


@contextmanager
def kernel_of(target: HostTarget) -> Iterator[Kernel]:
    """The kernel of the calling thread's namespace; what it needs is loaded now and not before."""
    from linerate.host.linux.kernel import Kernel

    with Kernel(target.devices) as kernel:
        yield kernel
