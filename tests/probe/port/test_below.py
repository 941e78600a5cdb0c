"""Rings, receive queues and bonds below the port of a path: planted faults, each with a clean twin.

This machine has no such adapters, so all facts are captured ones. That they are read as the kernel has them is tested
with virtual adapters in a network namespace.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linerate.host import inside
from linerate.host.linux.kernel import Kernel
from linerate.probe import Trial, judge, trials
from linerate.probe.port.seen import PortSeen
from linerate.probe.port.watch import PortWatch

from tests.host.conftest import Namespace, make_namespace, may_make_namespaces
from tests.probe.evidence import evidence
from tests.probe.port.captured import CapturedPorts
from tests.support import need

__all__ = ["make_namespace"]

CPUS = 4
FAST: dict[Any, Any] = {
    "large": {"mb_s": 1000.0},
    "sessions": {"mb_s": 1100.0},
    "connections": {"mb_s": 1100.0},
}
During = Callable[[CapturedPorts, Trial], None]


def one_port(root: Path, *, ring: int = 512, queues: int = CPUS) -> CapturedPorts:
    """eth2: a ring of up to 4,096 frames, up to 8 queues, counters of sysfs and of igb."""
    ports = CapturedPorts(root)
    ports.device("eth2", statistics__rx_missed_errors="7", statistics__rx_fifo_errors="0")
    ports.rings["eth2"] = {"rx": ring, "rx_max": 4096}
    ports.channels["eth2"] = {"combined_count": queues, "combined_max": 8}
    counters = {f"rx_queue_{number}_packets": 100 * number for number in range(queues)}
    ports.own["eth2"] = {"rx_no_buffer_count": 3, **counters}
    return ports


def watched(ports: CapturedPorts, during: During, port: str = "eth2") -> PortSeen:
    """What all trials of a probe bring; `during` raises the counters of each."""
    kernel: Any = ports
    watch = PortWatch(port, lambda _: kernel, CPUS)
    for trial in trials(writes=True):
        during(ports, trial)
        watch.over(trial)
    return watch.seen()


def notes(below: PortSeen | None, load: Mapping[Any, Any] = FAST) -> tuple[str, ...]:
    return judge(replace(evidence(load), below=below)).notes


def nothing(_ports: CapturedPorts, _trial: Trial) -> None:
    return


def dropping(counter: str, frames: int) -> During:
    return lambda ports, trial: ports.count("eth2", counter, frames if trial.name == "large" else 0)


@pytest.mark.parametrize("counter", ["rx_missed_errors", "rx_fifo_errors", "rx_no_buffer_count"])
def test_a_small_ring_is_named_while_frames_find_no_buffer(tmp_path: Path, counter: str) -> None:
    (note,) = notes(watched(one_port(tmp_path), dropping(counter, 1234)))
    assert note.startswith(
        "Try rx_ring_frames=4096 on this host: the receive ring of eth2 has 512 of 4,096 frames"
    )
    assert "1,234 received frames found no free buffer" in note
    assert "`linerate run nic-tuning`" in note


def test_a_frame_under_two_names_counts_once(tmp_path: Path) -> None:
    def twice(ports: CapturedPorts, trial: Trial) -> None:
        for counter in ("rx_missed_errors", "rx_no_buffer_count"):
            dropping(counter, 50)(ports, trial)

    assert watched(one_port(tmp_path), twice).adapters[0].unbuffered_frames == 50


@pytest.mark.parametrize(
    ("ring", "frames"),
    [
        (512, 0),  # nothing dropped, whatever was counted before the probe
        (512, 9),  # too few to prove anything
        (4096, 1234),  # there is no larger ring
        (3072, 1234),  # not far below
    ],
)
def test_a_ring_is_not_named_without_drops_or_room(tmp_path: Path, ring: int, frames: int) -> None:
    assert notes(watched(one_port(tmp_path, ring=ring), dropping("rx_missed_errors", frames))) == ()


def test_fewer_queues_than_cpus(tmp_path: Path) -> None:
    (note,) = notes(watched(one_port(tmp_path, queues=1), nothing))
    assert note.startswith(
        "Try rss_queues=4 on this host: eth2 has 1 receive queue for 4 CPUs, and reads bring"
    )
    ports = one_port(tmp_path / "three", queues=3)
    assert "eth2 has 3 receive queues" in notes(watched(ports, nothing))[0]


def test_queues_are_not_named_where_they_do_not_matter(tmp_path: Path) -> None:
    assert notes(watched(one_port(tmp_path), nothing)) == (), "as many as CPUs"
    one = watched(one_port(tmp_path / "one", queues=1), nothing)
    assert notes(one, {}) == (), "few frames per second"
    ports = one_port(tmp_path / "fixed", queues=2)
    ports.channels["eth2"] = {"combined_count": 2, "combined_max": 2}
    assert notes(watched(ports, nothing)) == (), "the device has no more"
    del ports.channels["eth2"]
    assert notes(watched(ports, nothing)) == (), "the driver does not say"


def spread(*shares: int) -> During:
    """Frames of each queue in the trials of several connections; one connection is always on queue 3."""

    def during(ports: CapturedPorts, trial: Trial) -> None:
        if trial.sessions * trial.connections == 1:
            ports.count("eth2", "rx_queue_3_packets", 100_000)
            return
        for number, frames in enumerate(shares):
            ports.count("eth2", f"rx_queue_{number}_packets", frames)

    return during


def test_all_load_on_one_queue(tmp_path: Path) -> None:
    below = watched(one_port(tmp_path), spread(0, 99_000, 500, 500))
    assert below.adapters[0].queue_frames == (0, 198_000, 1000, 1000)
    (note,) = notes(below)
    assert note.startswith(
        "All load of eth2 is on receive queue 1 of 4, so one CPU takes it: 99 % of the frames of 8"
    )
    assert notes(below, {}) == (), "few frames per second"


def test_load_on_several_queues_is_no_note(tmp_path: Path) -> None:
    assert notes(watched(one_port(tmp_path), spread(50_000, 25_000, 25_000, 0))) == ()
    assert notes(watched(one_port(tmp_path / "idle"), spread(0, 0, 0, 0))) == ()


@pytest.mark.parametrize(
    "names",
    [
        ("rx0_packets", "rx1_packets", "rx0_bytes"),  # mlx5
        ("rx-0.packets", "rx-1.packets", "tx-0.packets"),  # i40e
        ("queue_0_rx_cnt", "queue_1_rx_cnt", "queue_0_tx_cnt"),  # ena
        ("[0]: rx_ucast_packets", "[1]: rx_ucast_packets", "[0]: rx_discards"),  # bnxt
        ("rx_queue_0_xdp_packets", "rx_queue_1_xdp_packets", "rx_queue_0_drops"),  # veth
    ],
)
def test_queues_are_counted_by_the_names_of_each_driver(tmp_path: Path, names: tuple[str, ...]) -> None:
    ports = one_port(tmp_path)
    ports.own["eth2"] = dict.fromkeys(names, 1)

    def during(ports: CapturedPorts, trial: Trial) -> None:
        for name in names:
            ports.count("eth2", name, 10 if trial.name == "sessions" else 0)

    assert watched(ports, during).adapters[0].queue_frames == (10, 10)


def bonded(root: Path, mode: str = "802.3ad 4", policy: str = "layer2 0", active: str = "") -> CapturedPorts:
    """bond0.7 over bond0 over eth2 and eth3."""
    ports = CapturedPorts(root)
    for slave in ("eth2", "eth3"):
        ports.device(slave)
    ports.device(
        "bond0",
        ("eth2", "eth3"),
        bonding__mode=mode,
        bonding__xmit_hash_policy=policy,
        bonding__slaves="eth2 eth3",
        bonding__active_slave=active,
    )
    ports.device("bond0.7", ("bond0",))
    return ports


def one_slave_each_way(ports: CapturedPorts, trial: Trial) -> None:
    if trial.name == "large":
        ports.count("eth3", "rx_bytes", 1_000_000)
        ports.count("eth2", "tx_bytes", 49_000)
        ports.count("eth3", "tx_bytes", 1000)


@pytest.mark.parametrize("port", ["bond0", "bond0.7"])
def test_a_bond_is_named_with_its_mode_and_the_slaves_of_a_session(tmp_path: Path, port: str) -> None:
    below = watched(bonded(tmp_path), one_slave_each_way, port)
    assert [one.device for one in below.adapters] == ["eth2", "eth3"]
    (note,) = notes(below, {})
    assert note.startswith("The path goes over bond0 (802.3ad, hash layer2) with the slaves eth2, eth3.")
    assert "While one session read, eth3 received 100 % of the bytes and eth2 sent 98 % of the bytes." in note
    assert "One TCP connection uses one slave in each direction" in note
    assert "With this hash all connections to one portal leave by the same slave" in note
    assert "`linerate run mpio-layouts`" in note


def test_a_hash_of_ports_spreads_connections(tmp_path: Path) -> None:
    (note,) = notes(watched(bonded(tmp_path, policy="layer3+4 1"), one_slave_each_way, "bond0"), {})
    assert "(802.3ad, hash layer3+4)" in note
    assert "One TCP connection uses one slave" in note
    assert "With this hash" not in note


@pytest.mark.parametrize(
    ("mode", "active", "words"),
    [
        ("active-backup 1", "eth3", "(active-backup) with the slaves eth2, eth3. The active slave is eth3."),
        ("balance-rr 0", "", "they can arrive out of order"),
        ("balance-alb 6", "eth2", "One TCP connection uses one slave in each direction"),
    ],
)
def test_other_modes(tmp_path: Path, mode: str, active: str, words: str) -> None:
    (note,) = notes(watched(bonded(tmp_path, mode, active=active), nothing, "bond0"), {})
    assert words in note
    assert "With this hash" not in note
    assert "While one session read" not in note, "no bytes were counted"


def test_a_port_without_a_bond_has_no_such_note(tmp_path: Path) -> None:
    ports = one_port(tmp_path)
    ports.device("eth2.7", ("eth2",))
    below = watched(ports, nothing, "eth2.7")
    assert not below.bonds
    assert [one.device for one in below.adapters] == ["eth2"]
    assert notes(below, {}) == ()
    assert notes(None, {}) == ()


def test_a_port_that_is_gone_says_nothing() -> None:
    seen = PortWatch("p-none").seen()
    assert notes(seen) == ()


def test_counters_and_lower_devices_are_read_as_the_kernel_has_them(
    make_namespace: Callable[[bool], Namespace],
) -> None:
    if not may_make_namespaces():
        pytest.skip("needs root to enter a network namespace")
    there = make_namespace(False)
    there.run("ip", "link", "add", "br0", "type", "bridge")
    for port in ("p0", "p1"):
        there.run("ip", "link", "set", port, "master", "br0")

    def look() -> tuple[dict[str, int], list[str], list[str]]:
        with Kernel(("p0", "br0")) as kernel:
            return kernel.counters("p0"), kernel.lower_devices("br0"), kernel.lower_devices("p0")

    counters, below_bridge, below_port = inside(there.target, look)
    assert (below_bridge, below_port) == (["p0", "p1"], [])
    try:
        shown = there.run(need.tool("ethtool"), "-S", "p0")
    except subprocess.CalledProcessError as error:
        pytest.fail(f"ethtool -S: {error.stderr}")
    lines = (line.rpartition(": ") for line in shown.splitlines()[1:])
    assert counters.keys() == {name.strip() for name, _, _ in lines}
    assert "peer_ifindex" in counters
    assert counters["peer_ifindex"] > 1
