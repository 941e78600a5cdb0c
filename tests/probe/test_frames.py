"""Echoes with "do not fragment": over the loopback, and with a host that answers as it likes."""

from __future__ import annotations

import pytest
from linerate.probe import frames
from linerate.probe.frames import Fate, FrameSizes, frame_sizes

from tests.support import need


class Path:
    """Stands in for the network: packets above `passes` get `above` as their fate."""

    def __init__(self, passes: int, above: Fate) -> None:
        self.rtt_ms = 0.1
        self._passes, self._above = passes, above

    def fate(self, size_bytes: int) -> Fate:
        return "arrived" if size_bytes <= self._passes else self._above


def ladder(passes: int, above: Fate, mtu: int | None) -> FrameSizes:
    return frames._ladder(Path(passes, above), mtu)  # type: ignore[arg-type]


def test_loopback() -> None:
    for host in ("127.0.0.1", "::1"):
        found = frame_sizes(host, 65_536)
        if found.why_not:
            need.missing(f"an echo to {host}: {found.why_not}")
        assert found.largest_bytes == 65_535
        assert not found.has_black_hole
        assert found.rtt_ms is not None
        assert 0 < found.rtt_ms < 100


def test_black_hole_and_narrow_router() -> None:
    hole = ladder(1500, "lost", 9000)
    assert hole.has_black_hole
    assert (hole.largest_bytes, hole.lost) == (1500, (2000, 4000, 8000, 9000))
    router = ladder(1400, "too large", 1500)
    assert not router.has_black_hole
    assert (router.largest_bytes, router.refused) == (1400, (1450, 1492, 1500))


def test_the_mtu_of_the_port_is_the_largest_that_is_tried() -> None:
    assert ladder(9000, "lost", 1500).arrived == (576, 1280, 1400, 1450, 1492, 1500)
    assert ladder(9000, "lost", None).largest_bytes == 9000
    assert ladder(9000, "lost", 1420).arrived == (576, 1280, 1400, 1420)


def test_a_host_that_answers_no_echo_is_said() -> None:
    silent = ladder(0, "lost", 1500)
    assert "answers no echo" in silent.why_not
    assert not silent.has_black_hole


def test_a_host_without_an_address_is_said() -> None:
    assert "no echo could be sent" in frame_sizes("host.invalid", 1500).why_not


@pytest.mark.parametrize(
    ("packet", "checksum"), [(b"", 0xFFFF), (b"\x00\x01\xf2\x03", 0x0DFB), (b"\x01", 0xFEFF)]
)
def test_checksum(packet: bytes, checksum: int) -> None:
    assert frames._checksum(packet) == checksum
