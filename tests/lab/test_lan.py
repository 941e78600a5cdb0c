"""LAN streams: they fill a line or keep a rate, and are counted where the bytes arrive."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from linerate.errors import UserError
from linerate.lab import Lab
from linerate.lab.lan import LanTraffic, between
from linerate.san import LanStream

from tests.lab.conftest import TIMEOUT_S, run, unique, with_rights
from tests.support import need
from tests.support.patience import a_busy_machine_may_spoil

pytestmark = pytest.mark.usefixtures("awake")

LINE_BYTES_PER_S = 100e6 / 8 * 1448 / 1538
"""Payload of a line of 100 Mbit/s at MTU 1500."""


def measured(rights: str, tool: str) -> dict[str, Any]:
    """Throughput by stream, in bytes per second, and everything that was counted."""
    command = (sys.executable, "-m", "tests.lab.lan_streams", unique(f"lan-{tool}"), tool)
    done = subprocess.run(
        with_rights(rights, command), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)[tool]
    return found


@pytest.mark.long
@pytest.mark.parametrize("tool", ["own", "iperf3"])
@a_busy_machine_may_spoil
def test_a_stream_fills_its_line_and_another_keeps_its_rate(tool: str, rights: str) -> None:
    if tool == "iperf3":
        need.tool("iperf3")
    found = measured(rights, tool)
    passed = {
        name: value / found["passed"][f"{name.rpartition('.')[0]}.clock_s"]
        for name, value in found["passed"].items()
    }
    # 5 %: the line carries acknowledgements of the other stream, too, and the machine is not ours alone.
    assert passed["lan.backup.bytes_received"] == pytest.approx(LINE_BYTES_PER_S, rel=0.05)
    # iperf3 paces in pieces of 128 KiB, which is 50 ms at this rate.
    assert passed["lan.mail.bytes_received"] == pytest.approx(20e6 / 8, rel=0.25)
    assert found["lan_mib_s"] * 2**20 == pytest.approx(
        passed["lan.backup.bytes_received"] + passed["lan.mail.bytes_received"]
    )
    segments = passed["lan.backup.bytes_received"] / 1448
    sent = passed["lan.backup.tcp_segments_sent"] - passed["lan.backup.tcp_segments_retransmitted"]
    assert sent == pytest.approx(segments, rel=0.1)


@pytest.mark.parametrize("words", [("h1", "h2"), ("h1.p0", "h2.p0", "--rate", "40mbit")])
@a_busy_machine_may_spoil
def test_the_command_tells_what_arrives(lab: Lab, words: tuple[str, ...]) -> None:
    done = run("lan", *words, "--tool", "own", "--seconds", "1.5", "--json", "--lab", lab.name)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == 2
    if "--rate" in words:
        assert told[0]["mib_s"] * 8 * 2**20 == pytest.approx(40e6, rel=0.2)
    assert all(second["mib_s"] > 1 for second in told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ends", "reason"), [(("h1", "h9"), "no host or interface h9"), (("h1", "h1"), "no network")]
)
def test_ends_that_cannot_be_joined_are_told(lab: Lab, ends: tuple[str, str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        between(lab.topology, *ends)


def test_an_end_that_does_not_exist_is_the_users_mistake(lab: Lab) -> None:
    stream = LanStream(name="s", source="h1.p0", sink="h9.p0")
    with pytest.raises(UserError, match=r"has no h9\.p0"), LanTraffic(lab, [stream], tool="own"):
        pass
