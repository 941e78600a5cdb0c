"""Fixed ranges of ports."""

from __future__ import annotations

import socket

import pytest
from linerate.cluster import PortRange
from linerate.errors import HostError, UserError


@pytest.mark.parametrize(
    ("text", "first", "last"), [("7000-7010", 7000, 7010), ("7000", 7000, 7000), (" 1-65535 ", 1, 65535)]
)
def test_a_range_is_read(text: str, first: int, last: int) -> None:
    assert PortRange.parse(text) == PortRange(first, last)
    assert PortRange.parse(str(PortRange.parse(text))) == PortRange(first, last)


@pytest.mark.parametrize(
    "text", ["", "x", "7010-7000", "0-10", "7000-70000", "7000:7010", "-5", "7000-", "1.5"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="not a range of ports") as caught:
        PortRange.parse(text)
    assert "7000-7010" in caught.value.hint


def test_ports_in_use_are_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert PortRange(port, min(port + 20, 65535)).free("127.0.0.1") > port
        with pytest.raises(HostError, match=f"no port of {port} can be used: Address already in use"):
            PortRange(port, port).free("127.0.0.1")
