"""A setting on a device, with the kernel interface that reads and writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linerate.errors import HostError
from linerate.host.linux.knob import Knob, Reading, State
from linerate.host.setting import HostSetting, UnavailableError
from linerate.host.target import HostTarget
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that a device does not have or does not accept (empty: on the host), and why."""

    setting: str
    device: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}{f' of {self.device}' if self.device else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class DeviceSetting:
    """A setting on a device. Every method raises UnavailableError if the device does not have it."""

    setting: HostSetting
    device: str
    kernel: Kernel

    @property
    def _knob(self) -> Knob:
        if self.setting.where == "session":
            raise UnavailableError("it is asked for when an iSCSI session logs in, not set on a host")
        if self.setting.linux is None:
            raise UnavailableError(self.setting.absent)
        return self.setting.linux

    def read(self) -> Reading:
        """Value and state."""
        return self._knob.read(self.kernel, self.device)

    def most(self) -> int | None:
        """The device's maximum, if it says."""
        return self._knob.most(self.kernel, self.device)

    def write(self, value: Value) -> None:
        """Writes the value."""
        self._knob.write(self.kernel, self.device, value)

    def restore(self, state: State) -> None:
        """Puts it back."""
        self._knob.restore(self.kernel, self.device, state)

    def refusal(self, error: HostError) -> Refusal:
        """The words for what went wrong."""
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        return Refusal(self.setting.name, self.device, reason)


def device_settings(
    settings: Sequence[HostSetting], target: HostTarget, kernel: Kernel
) -> Iterator[DeviceSetting]:
    """Each setting, on each of the target's devices if it is a port's."""
    for setting in settings:
        for device in target.devices if setting.scope == "port" else ("",):
            yield DeviceSetting(setting, device, kernel)


@contextmanager
def kernel_of(target: HostTarget) -> Iterator[Kernel]:
    """The kernel of the calling thread's namespace; what it needs is loaded now and not before."""
    from linerate.host.linux.kernel import Kernel

    with Kernel(target.devices) as kernel:
        yield kernel
