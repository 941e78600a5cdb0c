"""Knobs of the adapter: link attributes, offload features, rings, channels, coalescing and pause frames of
one port."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linerate.host.linux.knob import Knob, Reading, State, first_number
from linerate.host.setting import UnavailableError
from linerate.setting import MAX, Value

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
        return [self.shell_write(device, value)]

    def shell_read(self, device: str) -> str:
        """The number, from ip's one line about the link."""
        return f"ip -d -o link show dev {device} | sed -n 's/.* {self.command} \\([0-9]*\\).*/\\1/p'"

    def shell_write(self, device: str, value: Value) -> str:
        """ip link set."""
        return f"ip link set dev {device} {self.command} {value}"


_SHOWN_BITS = {
    "rx-checksum": "rx-checksumming",
    "rx-gro": "generic-receive-offload",
    "rx-lro": "large-receive-offload",
    "tx-generic-segmentation": "generic-segmentation-offload",
}
"""Features that ethtool -k shows under a name of its own; ethtool -K takes both names."""


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

    def _command(self, device: str, bits: Mapping[str, bool]) -> list[str]:
        """ethtool -K, which also takes the kernel's names."""
        words = " ".join(f"{bit} {'on' if value else 'off'}" for bit, value in bits.items())
        return [f"ethtool -K {device} {words}"] if words else []

    @property
    @abstractmethod
    def _bits(self) -> tuple[str, ...]:
        """All features of the setting."""

    @abstractmethod
    def _wanted(self, value: Value) -> dict[str, bool]:
        """The features as a value wants them."""

    def shell_read(self, device: str) -> str:
        """What is wanted of each feature that the driver lets us change, as ethtool -K takes it."""
        names = "|".join(_SHOWN_BITS.get(bit, bit) for bit in self._bits)
        wanted = '$3 == "[requested" ? substr($4, 1, length($4) - 1) : $2'
        return (
            f'ethtool -k {device} | awk \'{{ sub(":", "", $1) }} '
            f'$1 ~ /^({names})$/ && $3 != "[fixed]" {{ print $1, {wanted} }}\' | xargs'
        )

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -K; a driver passes over the features that it keeps fixed."""
        (command,) = self._command(device, self._wanted(value))
        return command

    def shell_restore(self, device: str, state: str) -> str:
        """ethtool -K with the words that were read."""
        return f"ethtool -K {device} {state}"

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

    @property
    def _bits(self) -> tuple[str, ...]:
        return self.bits

    def _wanted(self, value: Value) -> dict[str, bool]:
        return dict.fromkeys(self.bits, bool(value))

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Wants all bits on or off."""
        self._want(kernel, device, self._wanted(value))

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
        return Reading(_sides(rx, tx), self._state(features, self._bits))

    @property
    def _bits(self) -> tuple[str, ...]:
        return _RX_CHECKSUM + _TX_CHECKSUM

    def _wanted(self, value: Value) -> dict[str, bool]:
        rx, tx = _SIDES[str(value)]
        return dict.fromkeys(_RX_CHECKSUM, rx) | dict.fromkeys(_TX_CHECKSUM, tx)

    def write(self, kernel: Kernel, device: str, value: Value) -> None:
        """Wants each direction on or off."""
        self._want(kernel, device, self._wanted(value))

    def commands(self, device: str, value: Value, reading: Reading) -> list[str]:
        """ethtool -K, as for a switch."""
        if value == reading.value:
            return self._command(device, reading.state)
        wanted = self._wanted(value)
        return self._command(device, {bit: wanted[bit] for bit in reading.state})


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
        return [self.shell_write(device, value)]

    def shell_read(self, device: str) -> str:
        """Frames, from the second half of what ethtool -g prints."""
        return f"ethtool -g {device} | sed -n '/^Current/,$ s/^{self.side.upper()}:[[:space:]]*//p'"

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -G; the maximum is in the first half of what ethtool -g prints."""
        frames = first_number("-g", device, self.side.upper()) if value == MAX else value
        return f"ethtool -G {device} {self.side} {frames}"


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
        return [self.shell_write(device, value)]

    def shell_read(self, device: str) -> str:
        """Both directions, as ethtool -A takes them."""
        return (
            f'ethtool -a {device} | awk \'/^RX:/ {{ print "rx", $2 }} /^TX:/ {{ print "tx", $2 }}\' | xargs'
        )

    def shell_write(self, device: str, value: Value) -> str:
        """ethtool -A."""
        rx, tx = ("on" if side else "off" for side in _SIDES[str(value)])
        return f"ethtool -A {device} rx {rx} tx {tx}"

    def shell_restore(self, device: str, state: str) -> str:
        """ethtool -A with the words that were read."""
        return f"ethtool -A {device} {state}"
