"""Knobs of when and where received frames are handed up: interrupt moderation and the queues of RSS."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linerate.host.linux.knob import Knob, Reading, State, first_number
from linerate.host.setting import UnavailableError
from linerate.setting import MAX, Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

ADAPTIVE = "adaptive"
_DEFER, _FLUSH = "napi_defer_hard_irqs", "gro_flush_timeout"
_EMPTY_POLLS = "2"
"""Polls without a frame before NAPI turns interrupts on again while it defers them."""


def _not_adaptive(device: str) -> UnavailableError:
    return UnavailableError(f"the driver of {device} has no adaptive moderation")


@dataclass(frozen=True, slots=True)
class Moderation(Knob):
    """Interrupt moderation: the driver's rx-usecs, or NAPI's deferral for drivers without (veth, TAP).

    NAPI's deferral needs the rights of the first user namespace, and a device that polls (GRO on, for a
    veth).
    """

    @property
    def source(self) -> str:
        """Both places."""
        return "ethtool coalesce, or gro_flush_timeout"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """Microseconds, or adaptive."""
        coalesce = self._coalesce(kernel, device)
        if coalesce is None:
            files = {name: kernel.attribute(device, name) for name in (_DEFER, _FLUSH)}
            held_us = int(files[_FLUSH]) // 1000 if int(files[_DEFER]) else 0
            return Reading(held_us, files)
        state = {key: coalesce[key] for key in ("rx_usecs", "use_adaptive_rx") if key in coalesce}
        return Reading(ADAPTIVE if coalesce.get("use_adaptive_rx") else coalesce["rx_usecs"], state)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Sets a time, which ends adaptive moderation, or adaptive."""
        coalesce = self._coalesce(kernel, device)
        if coalesce is None:
            if value == ADAPTIVE:
                raise _not_adaptive(device)
            self.restore(kernel, device, self._files(int(value)))
            return
        if value == ADAPTIVE:
            if "use_adaptive_rx" not in coalesce:
                raise _not_adaptive(device)
            kernel.set_ethtool("coalesce", device, {"use_adaptive_rx": 1})
            return
        still = {"use_adaptive_rx": 0} if coalesce.get("use_adaptive_rx") else {}
        kernel.set_ethtool("coalesce", device, {"rx_usecs": int(value), **still})

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the time and the mode back."""
        if _FLUSH in state:
            for name, text in state.items():
                kernel.set_attribute(device, name, text)
        else:
            kernel.set_ethtool("coalesce", device, state)

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -C, or NAPI's files for a driver without. Raises UnavailableError if that cannot be adaptive."""
        if value == ADAPTIVE and "use_adaptive_rx" not in reading.state:
            raise _not_adaptive(device)
        if _FLUSH in reading.state:
            texts = reading.state if value == reading.value else self._files(int(value))
            return [f"echo {text} > /sys/class/net/{device}/{name}" for name, text in texts.items()]
        if value == ADAPTIVE:
            return [f"ethtool -C {device} adaptive-rx on"]
        still = " adaptive-rx off" if "use_adaptive_rx" in reading.state else ""
        return [f"ethtool -C {device}{still} rx-usecs {value}"]

    def shell_read(self, device: str) -> str:
        """The driver's time and mode, as ethtool -C takes them; NAPI's deferral is left to `write`."""
        adaptive = '/^Adaptive RX:/ && $3 != "n/a" { print "adaptive-rx", $3 }'
        held = '/^rx-usecs:/ && $2 != "n/a" { print "rx-usecs", $2 }'
        return f"ethtool -c {device} | awk '{adaptive} {held}' | xargs"

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -C; a driver without adaptive moderation refuses the word and takes the time alone."""
        if value == ADAPTIVE:
            return f"ethtool -C {device} adaptive-rx on"
        alone = f"ethtool -C {device} rx-usecs {value}"
        return f"ethtool -C {device} adaptive-rx off rx-usecs {value} 2>/dev/null || {alone}"

    def shell_restore(self, device: str, state: str) -> str:
        """ethtool -C with the words that were read."""
        return f"ethtool -C {device} {state}"

    def _coalesce(self, kernel: Kernel, device: str) -> dict[str, int] | None:
        """The driver's coalescing; None when it has no time to set."""
        try:
            found = kernel.ethtool("coalesce", device)
        except UnavailableError:
            return None
        return found if "rx_usecs" in found else None

    def _files(self, held_us: int) -> dict[str, str]:
        return {_FLUSH: str(held_us * 1000), _DEFER: _EMPTY_POLLS if held_us else "0"}


@dataclass(frozen=True, slots=True)
class Queues(Knob):
    """How many receive queues the device uses: combined ones where the driver pairs them."""

    @property
    def source(self) -> str:
        """Ethtool's channels."""
        return "ethtool channels"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """The number of receive queues."""
        kind, now, _ = self._channels(kernel, device)
        return Reading(now, {f"{kind}_count": now})

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Changes the number of receive queues; many drivers take the link down and up for it."""
        kind, now, _ = self._channels(kernel, device)
        if now != int(value):
            kernel.set_ethtool("channels", device, {f"{kind}_count": int(value)})

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the number back."""
        ((_, number),) = state.items()
        self.write(kernel, device, number)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """The driver's maximum."""
        return self._channels(kernel, device)[2]

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -L, for the kind of queue that the driver has."""
        ((count, _),) = reading.state.items()
        return [f"ethtool -L {device} {count.removesuffix('_count')} {value}"]

    def shell_read(self, device: str) -> str:
        """Kind and number of the receive queues, as ethtool -L takes them; combined ones come last and count."""
        kinds = "/^Current/ { now = 1 } now && /^(RX|Combined):/ && $2 + 0 > 0"
        words = "kind = tolower(substr($1, 1, length($1) - 1)); number = $2"
        return f"ethtool -l {device} | awk '{kinds} {{ {words} }} END {{ print kind, number }}'"

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -L; a driver refuses the kind of queue that it does not have."""
        return _first_that_works(device, value)

    def shell_restore(self, device: str, state: str) -> str:
        """ethtool -L with the words that were read."""
        return f"ethtool -L {device} {state}"

    def _channels(self, kernel: Kernel, device: str) -> tuple[str, int, int]:
        """Kind, number and maximum of the receive queues."""
        channels = kernel.ethtool("channels", device)
        kind = "combined" if channels.get("combined_max") else "rx"
        if f"{kind}_count" not in channels:
            raise UnavailableError(f"the driver of {device} has no receive queues to choose")
        return kind, channels[f"{kind}_count"], channels[f"{kind}_max"]


@dataclass(frozen=True, slots=True)
class Scaling(Queues):
    """RSS as a switch: off is one queue, on is a queue per CPU, as far as the device has them."""

    def read(self, kernel: Kernel, device: str) -> Reading:
        """On when more than one queue receives."""
        queues = Queues.read(self, kernel, device)
        return Reading(int(queues.value) > 1, queues.state)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """One queue, or one per CPU; more than one stays as it is when it is turned on."""
        _, now, most = self._channels(kernel, device)
        if value and most < 2:
            raise UnavailableError(f"{device} has one receive queue only")
        wanted = (now if now > 1 else min(most, os.cpu_count() or 1)) if value else 1
        Queues.write(self, kernel, device, wanted)

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the number of queues back."""
        ((_, number),) = state.items()
        Queues.write(self, kernel, device, number)

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -L; on means as many queues as CPUs, and the way back is to as many as there were."""
        ((_, now),) = reading.state.items()
        wanted = now if value == reading.value else "$(nproc)" if value else 1
        return Queues.commands(self, device, wanted, reading)

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -L; on means as many queues as CPUs, or as the device has."""
        return _first_that_works(device, *(("$(nproc)", MAX) if value else (1,)))


def _first_that_works(device: str, *numbers: Value) -> str:
    """ethtool -L for combined queues, else for receive queues; max is the device's maximum."""
    kinds = (("combined", "Combined"), ("rx", "RX"))
    tried = [
        f"ethtool -L {device} {kind} {first_number('-l', device, shown) if number == MAX else number}"
        for kind, shown in kinds
        for number in numbers
    ]
    return " 2>/dev/null || ".join(tried)
