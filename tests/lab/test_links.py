"""Links, buffers and counters of the kernel fabric: what is asked for is what frames meet."""

from __future__ import annotations

import subprocess
import time

import pytest
from linerate.errors import HostError, UserError
from linerate.lab import Lab, utilisation

from tests.lab.conftest import message
from tests.support.patience import a_busy_machine_may_spoil
from tests.support.traffic import BURST, MIB, SEND, address_of, python, transfer_s

BURN = """
import time
while time.process_time() < 0.3:
    pass
print("burnt", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _as_it_came(lab: Lab) -> None:
    """Every test begins with the topology's own links and switches."""
    for name, link in lab.topology.links.items():
        lab.change_link(name, **link.model_dump())
    for switch in lab.topology.switches:
        lab.change_switch(switch.name, buffer_bytes=switch.buffer_bytes)


@a_busy_machine_may_spoil
def test_a_line_is_as_fast_as_it_says(lab: Lab) -> None:
    """2 MiB take at least what the wire needs for them; how much more is the machine's business."""
    lab.change_link("h2.p0", rate_bits_per_s=20e6)
    frames = 2 * MIB / 1448
    wire_s = frames * 1538 * 8 / 20e6
    assert lab.links["h2.p0"].rate_bits_per_s == 20e6
    # The shaper's burst at once; and a frame leaves when its time on the wire begins.
    early_s = (15_000 + 1538) * 8 / 20e6
    assert wire_s - early_s <= transfer_s(lab, 2 * MIB) < 3 * wire_s


@pytest.mark.parametrize("mtu", [1500, 9000])
@a_busy_machine_may_spoil
def test_frames_are_frames(lab: Lab, mtu: int) -> None:
    """No super-packets: one frame for each segment that fits into the MTU."""
    for host in ("h1", "h2"):
        assert lab.change_link(f"{host}.p0", mtu=mtu).mtu == mtu
    before = lab.counters()
    transfer_s(lab, MIB)
    after = lab.counters()
    segments = MIB / (mtu - 52)
    for name in ("port.h1.p0.frames_sent", "port.h2.p0.frames_received"):
        assert segments <= after[name] - before[name] < 1.5 * segments + 100
    assert after["port.h1.p0.bytes_sent"] - before["port.h1.p0.bytes_sent"] > MIB


@pytest.mark.long
def test_a_full_buffer_drops_and_a_larger_one_does_not(lab: Lab) -> None:
    lab.change_link("h2.p0", rate_bits_per_s=1e6)
    drops = {}
    for buffer_bytes in (16_384, 1 << 20):
        assert lab.change_switch("sw1", buffer_bytes=buffer_bytes).buffer_bytes == buffer_bytes
        before = lab.counters()["port.h2.p0.switch_drops"]
        assert lab.execute("h1", python(BURST, address_of(lab, "h2"), 100)).returncode == 0
        drops[buffer_bytes] = lab.counters()["port.h2.p0.switch_drops"] - before
    # 16 KiB hold 11 of these frames, the burst of the shaper lets 10 through, the line takes one in 11 ms.
    assert 40 < drops[16_384] < 85
    assert drops[1 << 20] == 0


def test_a_pulled_cable_carries_nothing(lab: Lab) -> None:
    assert not lab.change_link("h2.p0", up=False).up
    failed = lab.execute("h1", python(SEND.replace("timeout=20", "timeout=0.3"), address_of(lab, "h2"), 1))
    assert failed.returncode != 0
    assert lab.change_link("h2.p0", up=True).up
    assert transfer_s(lab, 1) < 10


def test_cpu_is_charged_to_the_host_whose_namespace_it_was_spent_in(lab: Lab) -> None:
    before = lab.counters()
    with subprocess.Popen(lab.inside("h1", python(BURN)), stdout=subprocess.PIPE) as burning:
        assert burning.stdout is not None
        assert burning.stdout.readline() == b"burnt\n"
        after = lab.counters()
        burning.terminate()
    used = {name: after[name] - before[name] for name in after if name.endswith(".cpu_s")}
    assert 0.3 <= used["host.h1.cpu_s"] < 1.0
    assert used["host.h2.cpu_s"] < 0.05
    assert used["array.a1.cpu_s"] < 0.05


def test_receiving_is_charged_to_the_receiver(lab: Lab) -> None:
    if not lab.facts()["receive_threads"]:
        pytest.skip("this kernel has no receive threads for veth pairs")
    before = lab.counters()
    transfer_s(lab, 8 * MIB)
    after = lab.counters()
    assert after["host.h2.cpu_s"] > before["host.h2.cpu_s"]
    assert after["fabric.cpu_s"] > before["fabric.cpu_s"]


@a_busy_machine_may_spoil
def test_utilisation_tells_how_busy_a_line_was(lab: Lab) -> None:
    lab.change_link("h2.p0", rate_bits_per_s=20e6)
    before = lab.counters()
    elapsed_s = -time.monotonic()
    transfer_s(lab, MIB)
    elapsed_s += time.monotonic()
    used = utilisation(lab.now().line_rates, before, lab.counters())
    assert 0.5 * MIB * 8 / 20e6 / elapsed_s < used["h2.p0"] <= 1.1
    assert used["h1.p0"] < 0.2
    assert used["a1.p0"] < 0.01


def test_facts_are_read_back(lab: Lab) -> None:
    facts = lab.facts()
    assert facts["fabric"] == "kernel"
    assert facts["default.net.ipv4.tcp_congestion_control"] == "reno"
    said = lab.execute("h1", ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"])
    assert said.stdout == "reno\n"


def test_now_is_the_topology_with_all_changes(lab: Lab) -> None:
    lab.change_link("a1.p0", rate_bits_per_s=5e8, mtu=4000)
    now = lab.now()
    assert (now.links["a1.p0"].rate_bits_per_s, now.links["a1.p0"].mtu) == (5e8, 4000)
    assert now.links["h1.p0"] == lab.topology.links["h1.p0"]


@pytest.mark.parametrize(
    ("name", "changes", "error", "says"),
    [
        ("h9.p0", {"mtu": 9000}, UserError, "there is no link h9.p0 -> there are h1.p0, h2.p0, a1.p0"),
        ("eth0", {"up": False}, UserError, "there is no link eth0"),
        ("h1.p0", {"mtu": 99}, UserError, "link h1.p0: mtu: must be at least 576"),
        ("h1.p0", {"speed": 1}, UserError, "link h1.p0: speed: no such key"),
        ("h1.p0", {"mtu": 9000, "delay_us": 5.0}, HostError, "the kernel fabric has no delay_us"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    lab: Lab, name: str, changes: dict[str, float], error: type[UserError], says: str
) -> None:
    before = lab.links
    with pytest.raises(error) as caught:
        lab.change_link(name, **changes)
    assert says in message(caught.value)
    assert lab.links == before


def test_an_unknown_node_is_named_with_those_that_exist(lab: Lab) -> None:
    with pytest.raises(UserError) as caught:
        lab.execute("h9", ["true"])
    assert "its nodes are control, h1, h2, a1, sw1" in message(caught.value)


def test_the_control_network_reaches_every_node(lab: Lab) -> None:
    before = lab.counters()
    for node in (*lab.topology.hosts, *lab.topology.arrays):
        code = f"import socket; socket.create_connection(({node.control_address!r}, 22), timeout=5)"
        answer = lab.execute("control", python(code))
        assert (
            "ConnectionRefusedError" in answer.stderr
        )  # by the node itself: it is there and has no such service
    after = lab.counters()
    moved = [name for name in after if name.startswith("port.") and after[name] != before[name]]
    assert not moved  # the SAN's own links saw none of it
