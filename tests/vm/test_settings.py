"""Settings of real drivers on a stranger's host: planned, applied, read back, restored; cut off, killed, powered off.

What the host has is read by its own tools (ip, ethtool, sysctl), not by Linerate.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from linerate.cluster import ssh_endpoints

from tests.vm import network
from tests.vm.conftest import ROOTS_PYTHON
from tests.vm.stranger import NAME, Stranger

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1500), pytest.mark.usefixtures("roots")]

CARD = {
    "mtu": "9000",
    "checksum_offload": "off",
    "lso": "off",
    "gso_max_segments": "32",
    "rsc": "off",
    "interrupt_moderation_us": "100",
    "rx_ring_frames": "max",
    "tx_ring_frames": "1024",
    "congestion_control": "bbr",
    "ecn": "on",
}
"""Of Intel's driver, and of the TCP stack."""
VIRTIO = {"mtu": "9000", "lso": "off", "rss_queues": "1"}
# The index of an interface is left out: another start may number them differently.
LOOK = """\
export LC_ALL=C
ip -d -o link show dev {nic} | grep -oE ' (mtu|gso_max_segs) [0-9]+'
for what in -k -c -g -l; do ethtool $what {nic} 2>&1 | sed s/^/$what/; done
ip -4 -o address show dev {nic} | sed 's/^[0-9]*: //; s/valid_lft.*//'
ip -4 route show dev {nic}
sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn
"""
BACK_TIMEOUT_S = 60.0
ALIVE = "/etc/ssh/sshd_config.d/alive.conf"


def _seen(stranger: Stranger, net: int = network.SAN_A) -> list[str]:
    """Rings and MTU take the link down for a moment, and systemd-networkd takes the address away until it is back."""
    deadline = time.monotonic() + BACK_TIMEOUT_S
    while f"inet {network.there(net)}/" not in (text := stranger.root(LOOK.format(nic=stranger.nic[net]))):
        assert time.monotonic() < deadline, text
        time.sleep(1)
    return text.splitlines()


def _host(stranger: Stranger, *words: str) -> str:
    """`linerate host` there, as root."""
    return stranger.root(f"{ROOTS_PYTHON} -P -m linerate.cli host {' '.join(words)}")


def _words(stranger: Stranger, values: dict[str, str], net: int) -> list[str]:
    return [*(f"{name}={value}" for name, value in values.items()), "-d", stranger.nic[net]]


def _await_seen(stranger: Stranger, wanted: list[str]) -> None:
    deadline = time.monotonic() + BACK_TIMEOUT_S
    while (found := _seen(stranger)) != wanted:
        assert time.monotonic() < deadline, set(found) ^ set(wanted)
        time.sleep(1)


@pytest.mark.parametrize(("net", "values"), [(network.SAN_A, CARD), (network.SAN_B, VIRTIO)])
def test_the_plan_and_apply_do_the_same_and_both_lead_back(
    stranger: Stranger, net: int, values: dict[str, str]
) -> None:
    words = _words(stranger, values, net)
    before = _seen(stranger, net)
    with ThreadPoolExecutor(2) as both:
        there, back = both.map(lambda more: _host(stranger, "plan", *more, *words), ((), ("--undo",)))
    stranger.root(f"set -e\n{there}")
    planned = _seen(stranger, net)
    stranger.root(f"set -e\n{back}")
    assert _seen(stranger, net) == before
    applied = json.loads(_host(stranger, "apply", "--json", *words))
    assert applied["readback"].keys() == values.keys()
    assert not [name for name, value in applied["before"].items() if value == applied["readback"][name]]
    assert _seen(stranger, net) == planned
    restored = json.loads(_host(stranger, "restore", "--json"))
    assert {one["setting"] for one in restored["restored"]} == values.keys()
    assert _seen(stranger, net) == before


Held = tuple[subprocess.Popen[str], list[str]]
"""The connection of a process that has changed the card, and what the host had before."""


class Holding:
    """`linerate host hold` there through sudo, as a study starts it."""

    def __init__(self, stranger: Stranger) -> None:
        (place,) = ssh_endpoints([NAME], ROOTS_PYTHON)
        self.process = subprocess.Popen(
            place.command("linerate.cli", "host", "hold", sudo=True),
            env=stranger.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, method: str, **params: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "result" in answer, answer
        return answer["result"]


@pytest.fixture
def held(stranger: Stranger, sudo: None) -> Iterator[Held]:
    before = _seen(stranger)
    holding = Holding(stranger)
    with holding.process:
        try:
            holding.ask("open", name=NAME, devices=[stranger.nic[network.SAN_A]])
            wanted = {"mtu": 9000, "rx_ring_frames": 1024, "lso": False}
            done = holding.ask("hold", settings=wanted)
            assert done == {"readback": wanted, "refused": {}}
            assert _seen(stranger) != before
            yield holding.process, before
        finally:
            holding.process.kill()


def test_a_connection_that_is_cut_restores_the_host(stranger: Stranger, held: Held) -> None:
    ssh, before = held
    ssh.kill()
    _await_seen(stranger, before)


@pytest.fixture
def impatient(stranger: Stranger) -> Iterator[None]:
    """sshd gives a silent client up after 3 s, not after 45 as in docs/host.md."""
    stranger.write(ALIVE, "ClientAliveInterval 1\nClientAliveCountMax 3\n")
    stranger.root("systemctl reload ssh")
    yield
    stranger.root(f"rm {ALIVE} && systemctl reload ssh")


@pytest.mark.usefixtures("impatient")
def test_a_network_that_falls_silent_restores_the_host(stranger: Stranger, held: Held) -> None:
    _, before = held
    stranger.machine.cable(network.CONTROL, plugged=False)
    try:
        _await_seen(stranger, before)
    finally:
        stranger.machine.cable(network.CONTROL, plugged=True)


def test_what_a_killed_process_leaves_is_restored_by_hand(stranger: Stranger, held: Held) -> None:
    ssh, before = held
    stranger.root("pkill -KILL -f '^[^ ]*python.*linerate.cli host hold'")
    assert ssh.wait(30) != 0
    assert _seen(stranger) != before
    restored = json.loads(_host(stranger, "restore", "--json"))
    assert {one["setting"] for one in restored["restored"]} == {"mtu", "rx_ring_frames", "lso"}
    assert _seen(stranger) == before


def test_after_a_power_cut_the_kernel_has_its_own_values_and_nothing_is_restored(stranger: Stranger) -> None:
    before = _seen(stranger)
    _host(stranger, "apply", *_words(stranger, CARD, network.SAN_A))
    assert _seen(stranger) != before
    stranger.power_cut()
    _await_seen(stranger, before)
    assert json.loads(_host(stranger, "restore", "--json")) == {
        "schema": "linerate.host-restored/1",
        "restored": [],
        "gone": [],
        "failed": [],
    }
    assert _seen(stranger) == before
