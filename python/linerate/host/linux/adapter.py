"""Knobs of the adapter: link attributes, offload features, rings, channels, coalescing and pause frames of
one port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.host.linux.knob import Knob, Reading, State
from linerate.host.setting import UnavailableError
from linerate.setting import Value

if TYPE_CHECKING:
    from linerate.host.linux.kernel import Kernel

_SIDES = {"on": (True, True), "rx": (True, False), "tx": (False, True), "off": (False, False)}
"""Receive and transmit of a two-sided setting."""


def _sides(rx: bool, tx: bool) -> str:
    return next(word for word, sides in _SIDES.items() if sides == (rx, tx))


@dataclass(frozen=True, slots=True)
class LinkNumber(Knob):
    """A number that the link message carries: the MTU, the largest GSO packet."""

    attribute: str
    command: str
    most_attribute: str = ""

    @property
    def source(self) -> str:
        """The link's attribute."""
        return f"ip link {self.command}"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """The number."""
        number = int(kernel.link(device).get_attr(f"IFLA_{self.attribute}"))
        return Reading(number, number)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Changes the link."""
        kernel.set_link(device, **{self.attribute.lower(): int(value)})

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the number back."""
        self.write(kernel, device, state)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """What the driver says it can do; 0 means that it does not say."""
        return (self.most_attribute and kernel.link(device).get_attr(f"IFLA_{self.most_attribute}")) or None

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ip link set."""
        return [f"ip link set dev {device} {self.command} {value}"]


@dataclass(frozen=True, slots=True)
class _Features(Knob):
    """Bits of the device's features. The state is what was wanted of each bit, since one bit may force
    another."""

    @property
    def source(self) -> str:
        """Ethtool's features."""
        return "ethtool features"

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Wants of each bit what was wanted."""
        if state:
            kernel.set_ethtool("features", device, {"wanted": state})

    def _state(self, features: dict[str, Any], bits: tuple[str, ...]) -> dict[str, bool]:
        return {bit: features["wanted"].get(bit, False) for bit in bits if _changeable(features, bit)}

    def _command(self, device: str, bits: dict[str, bool]) -> list[str]:
        """ethtool -K, which also takes the kernel's names."""
        words = " ".join(f"{bit} {'on' if value else 'off'}" for bit, value in bits.items())
        return [f"ethtool -K {device} {words}"] if words else []

    def _want(self, kernel: Kernel, device: str, wanted: dict[str, bool]) -> None:
        """Asks for bits. Bits that the driver keeps fixed are left out, unless none of them can be had."""
        features = kernel.ethtool("features", device)
        change = {bit: value for bit, value in wanted.items() if _changeable(features, bit)}
        fixed = [bit for bit, value in wanted.items() if features["active"].get(bit, False) != value]
        if not change and fixed:
            raise UnavailableError(f"the driver of {device} keeps {', '.join(fixed)} as it is")
        if change:
            kernel.set_ethtool("features", device, {"wanted": change})


def _changeable(features: dict[str, Any], bit: str) -> bool:
    return bool(features["hw"].get(bit)) and not features["nochange"].get(bit)


@dataclass(frozen=True, slots=True)
class FeatureSwitch(_Features):
    """Features that are one thing to a person; on when the driver has any of `shown` active."""

    bits: tuple[str, ...]
    shown: tuple[str, ...]

    def read(self, kernel: Kernel, device: str) -> Reading:
        """On or off."""
        features = kernel.ethtool("features", device)
        value = any(features["active"].get(bit, False) for bit in self.shown)
        return Reading(value, self._state(features, self.bits))

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Wants all bits on or off."""
        self._want(kernel, device, dict.fromkeys(self.bits, bool(value)))

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -K with the features that the driver lets us change; the way back is to each as it was."""
        back = value == reading.value
        return self._command(device, reading.state if back else dict.fromkeys(reading.state, bool(value)))


_RX_CHECKSUM = ("rx-checksum",)
_TX_CHECKSUM = ("tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6")


@dataclass(frozen=True, slots=True)
class Checksum(_Features):
    """Checksums by the adapter, for each direction."""

    def read(self, kernel: Kernel, device: str) -> Reading:
        """on, rx, tx or off."""
        features = kernel.ethtool("features", device)
        rx, tx = (
            any(features["active"].get(bit, False) for bit in bits) for bits in (_RX_CHECKSUM, _TX_CHECKSUM)
        )
        return Reading(_sides(rx, tx), self._state(features, _RX_CHECKSUM + _TX_CHECKSUM))

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Wants each direction on or off."""
        rx, tx = _SIDES[str(value)]
        self._want(kernel, device, dict.fromkeys(_RX_CHECKSUM, rx) | dict.fromkeys(_TX_CHECKSUM, tx))

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -K, as for a switch."""
        if value == reading.value:
            return self._command(device, reading.state)
        rx, tx = _SIDES[str(value)]
        return self._command(device, {bit: rx if bit in _RX_CHECKSUM else tx for bit in reading.state})


@dataclass(frozen=True, slots=True)
class Ring(Knob):
    """Frames in the receive or transmit ring."""

    side: str

    @property
    def source(self) -> str:
        """Ethtool's rings."""
        return "ethtool rings"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """Frames."""
        rings = kernel.ethtool("rings", device)
        if self.side not in rings:
            raise UnavailableError(f"the driver of {device} has no {self.side} ring of its own")
        return Reading(rings[self.side], rings[self.side])

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Changes one ring; many drivers take the link down and up for it."""
        kernel.set_ethtool("rings", device, {self.side: int(value)})

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts the number back."""
        self.write(kernel, device, state)

    def most(self, kernel: Kernel, device: str) -> int | None:
        """The driver's maximum."""
        return kernel.ethtool("rings", device).get(f"{self.side}_max")

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -G."""
        return [f"ethtool -G {device} {self.side} {value}"]


@dataclass(frozen=True, slots=True)
class Pause(Knob):
    """Pause frames; whether they are negotiated stays as it is."""

    @property
    def source(self) -> str:
        """Ethtool's pause parameters."""
        return "ethtool pause"

    def read(self, kernel: Kernel, device: str) -> Reading:
        """on, rx, tx or off."""
        pause = kernel.ethtool("pause", device)
        return Reading(_sides(bool(pause.get("rx")), bool(pause.get("tx"))), pause)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Sets both directions."""
        rx, tx = _SIDES[str(value)]
        kernel.set_ethtool("pause", device, {"rx": int(rx), "tx": int(tx)})

    def restore(self, kernel: Kernel, device: str, state: State) -> None:
        """Puts both directions back."""
        kernel.set_ethtool("pause", device, state)

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -A."""
        rx, tx = ("on" if side else "off" for side in _SIDES[str(value)])
        return [f"ethtool -A {device} rx {rx} tx {tx}"]
