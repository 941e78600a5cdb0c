"""What a driver's answers come to, for drivers that this machine lacks: rings, pause frames, coalescing,
paired queues.

The answers are made up, so this shows the logic of the knobs and not that a card obeys. The messages
themselves are held against the kernel where it has a driver for them.
"""

from __future__ import annotations

from typing import Any

import pytest
from linerate.errors import HostError
from linerate.host import HostTarget, inside
from linerate.host.linux.adapter import Checksum, FeatureSwitch, Pause, Ring
from linerate.host.linux.kernel import Kernel
from linerate.host.linux.queues import Moderation, Queues, Scaling
from linerate.host.setting import UnavailableError

from tests.host.conftest import Namespace


class Card:
    """A kernel with one card: keeps what is set, refuses what it has no table for."""

    devices = ("eth2",)

    def __init__(self, **tables: dict[str, Any]) -> None:
        self.tables = tables
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def ethtool(self, message: str, device: str) -> dict[str, Any]:
        if message not in self.tables:
            raise UnavailableError(f"the driver of {device} has no such setting")
        return dict(self.tables[message])

    def set_ethtool(self, message: str, device: str, attributes: dict[str, Any]) -> None:
        self.sent.append((message, attributes))
        self.tables[message] |= attributes

    def attribute(self, device: str, name: str) -> str:
        raise UnavailableError("no such file")


def test_rings_are_sized_each_for_itself_up_to_the_driver_s_maximum() -> None:
    card: Any = Card(rings={"rx": 512, "rx_max": 4096, "tx": 512, "tx_max": 16_384})
    rx, tx = Ring("rx"), Ring("tx")
    assert (rx.most(card, "eth2"), tx.most(card, "eth2")) == (4096, 16_384)
    before = rx.read(card, "eth2")
    rx.write(card, "eth2", 4096)
    assert (rx.read(card, "eth2").value, tx.read(card, "eth2").value) == (4096, 512)
    rx.restore(card, "eth2", before.state)
    assert card.sent == [("rings", {"rx": 4096}), ("rings", {"rx": 512})]


@pytest.mark.parametrize(("word", "rx", "tx"), [("on", 1, 1), ("rx", 1, 0), ("tx", 0, 1), ("off", 0, 0)])
def test_pause_frames_leave_negotiation_alone(word: str, rx: int, tx: int) -> None:
    card: Any = Card(pause={"autoneg": 1, "rx": 1, "tx": 1})
    pause = Pause()
    before = pause.read(card, "eth2")
    assert before.value == "on"
    pause.write(card, "eth2", word)
    assert card.sent[-1] == ("pause", {"rx": rx, "tx": tx})
    assert pause.read(card, "eth2").value == word
    pause.restore(card, "eth2", before.state)
    assert card.tables["pause"] == {"autoneg": 1, "rx": 1, "tx": 1}


def test_a_time_ends_adaptive_moderation_and_restore_brings_it_back() -> None:
    card: Any = Card(coalesce={"rx_usecs": 50, "tx_usecs": 0, "use_adaptive_rx": 1})
    moderation = Moderation()
    before = moderation.read(card, "eth2")
    assert before.value == "adaptive"
    moderation.write(card, "eth2", 0)
    assert card.sent == [("coalesce", {"rx_usecs": 0, "use_adaptive_rx": 0})]
    assert moderation.read(card, "eth2").value == 0
    moderation.write(card, "eth2", "adaptive")
    assert moderation.read(card, "eth2").value == "adaptive"
    moderation.restore(card, "eth2", before.state)
    assert card.tables["coalesce"] == {"rx_usecs": 50, "tx_usecs": 0, "use_adaptive_rx": 1}


def test_a_driver_without_adaptive_moderation_says_so() -> None:
    card: Any = Card(coalesce={"rx_usecs": 3})
    with pytest.raises(HostError, match="no adaptive moderation"):
        Moderation().write(card, "eth2", "adaptive")
    assert card.sent == []


def test_paired_queues_are_the_ones_that_count() -> None:
    card: Any = Card(channels={"rx_max": 0, "rx_count": 0, "combined_max": 16, "combined_count": 8})
    queues, scaling = Queues(), Scaling()
    assert queues.most(card, "eth2") == 16
    scaling.write(card, "eth2", True)
    assert card.sent == [], "it is on already"
    before = scaling.read(card, "eth2")
    scaling.write(card, "eth2", False)
    assert (queues.read(card, "eth2").value, scaling.read(card, "eth2").value) == (1, False)
    scaling.restore(card, "eth2", before.state)
    assert queues.read(card, "eth2").value == 8


def test_rss_needs_a_second_queue() -> None:
    card: Any = Card(channels={"combined_max": 1, "combined_count": 1})
    with pytest.raises(HostError, match="eth2 has one receive queue only"):
        Scaling().write(card, "eth2", True)


def _features(active: set[str], fixed: set[str] = frozenset()) -> dict[str, dict[str, bool]]:
    every = ("rx-checksum", "tx-checksum-ipv4", "tx-checksum-ipv6", "rx-gro", "rx-lro")
    on = {bit: bit in active for bit in every}
    return {
        "hw": {bit: bit not in fixed for bit in every},
        "wanted": dict(on),
        "active": on,
        "nochange": {bit: bit in fixed for bit in every},
    }


def test_bits_that_a_driver_keeps_fixed_are_left_out_of_the_request() -> None:
    card: Any = Card(features=_features({"rx-checksum", "tx-checksum-ipv4"}, fixed={"tx-checksum-ipv6"}))
    assert Checksum().read(card, "eth2").value == "on"
    Checksum().write(card, "eth2", "off")
    assert card.sent == [("features", {"wanted": {"rx-checksum": False, "tx-checksum-ipv4": False}})]


def test_a_feature_that_is_fixed_altogether_is_refused() -> None:
    card: Any = Card(features=_features({"rx-gro"}, fixed={"rx-gro", "rx-lro"}))
    coalescing = FeatureSwitch(("rx-gro", "rx-lro"), shown=("rx-gro", "rx-lro"))
    with pytest.raises(HostError, match="the driver of eth2 keeps rx-gro as it is"):
        coalescing.write(card, "eth2", False)


def test_commands_name_what_this_driver_has() -> None:
    """And lead back to what it had, bit by bit."""
    tables = {
        "features": _features({"rx-checksum", "tx-checksum-ipv4"}, fixed={"tx-checksum-ipv6"}),
        "channels": {"combined_max": 16, "combined_count": 8},
        "coalesce": {"rx_usecs": 50, "use_adaptive_rx": 1},
    }
    card: Any = Card(**tables)
    for knob, value, there, back in (
        (
            Checksum(),
            "rx",
            "ethtool -K eth2 rx-checksum on tx-checksum-ipv4 off",
            "ethtool -K eth2 rx-checksum on tx-checksum-ipv4 on",
        ),
        (Queues(), 4, "ethtool -L eth2 combined 4", "ethtool -L eth2 combined 8"),
        (Scaling(), False, "ethtool -L eth2 combined 1", "ethtool -L eth2 combined 8"),
        (
            Moderation(),
            0,
            "ethtool -C eth2 adaptive-rx off rx-usecs 0",
            "ethtool -C eth2 adaptive-rx on",
        ),
    ):
        reading = knob.read(card, "eth2")
        assert knob.commands("eth2", value, reading) == [there]
        assert knob.commands("eth2", reading.value, reading) == [back]


def test_coalescing_messages_are_what_the_kernel_takes(namespace: Namespace) -> None:
    """A TAP has one of the coalescing attributes, which shows that requests and answers are laid out right."""
    namespace.run("ip", "tuntap", "add", "dev", "t0", "mode", "tap")

    def turn() -> tuple[int, int]:
        with Kernel(("t0",)) as kernel:
            before = kernel.ethtool("coalesce", "t0")["rx_max_frames"]
            kernel.set_ethtool("coalesce", "t0", {"rx_max_frames": 7})
            return before, kernel.ethtool("coalesce", "t0")["rx_max_frames"]

    assert inside(namespace.target, turn) == (0, 7)


@pytest.mark.parametrize("message", ["rings", "pause", "channels"])
def test_the_kernel_understands_the_other_messages(message: str, namespace: Namespace) -> None:
    """A bridge has neither: the kernel's answer is that there is no such thing, not that the request is
    malformed."""
    namespace.run("ip", "link", "add", "b0", "type", "bridge")

    def turn() -> None:
        with Kernel(("b0",)) as kernel:
            kernel.set_ethtool(message, "b0", {"rx": 1} if message != "channels" else {"rx_count": 1})

    with pytest.raises(UnavailableError, match="the driver of b0 has no such setting"):
        inside(HostTarget("h1", ("b0",), namespace.target.namespace), turn)
