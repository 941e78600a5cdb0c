"""The user fabric under a lab: what only it can do, and that it answers by the same names as the kernel's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.errors import HostError, UserError
from linerate.lab import Lab, running

from tests.lab.conftest import TIMEOUT_S, TOPOLOGY, as_user, end, hold, message, run, unique
from tests.lab.trace import Trace
from tests.support.patience import a_busy_machine_may_spoil
from tests.support.traffic import BURST, MIB, address_of, python, transfer_s

PING = """
import json, socket, sys, time
with socket.create_connection((sys.argv[1], 3260), timeout=20) as link:
    pass
times = []
for _ in range(5):
    start = time.monotonic()
    with socket.create_connection((sys.argv[1], 3260), timeout=20):
        times.append(time.monotonic() - start)
print(json.dumps(min(times)))
"""

CONVERGED = """
fabric = "user"
[link]
rate = "100mbit"
[[switch]]
name = "sw1"
flow_control = "pfc"
lossless = [3]
schedule = { kind = "ets", shares = { 3 = 50, 0 = 50 } }
[[host]]
name = "h1"
port = [
  { name = "p0", switch = "sw1", interface = [
    { name = "san0", vlan = 10, priority = 3 }, { name = "lan0", vlan = 20 } ] },
]
[[host]]
name = "l1"
port = [{ name = "p0", switch = "sw1", vlan = 20 }]
[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1", vlan = 10, priority = 3 }]
volume = [{ name = "v1", size = "16m" }]
"""


@pytest.fixture(scope="module")
def user_lab(topology_file: Path) -> Iterator[Lab]:
    """Two hosts and an array, joined by the user fabric; built without root."""
    name = unique("user")
    up = run("up", str(topology_file), "--name", name, "--fabric", "user", rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        yield lab
        lab.down()


@pytest.fixture(autouse=True)
def _as_it_came(request: pytest.FixtureRequest) -> None:
    """Every test begins with the topology's own links, adapters and switches."""
    if "user_lab" in request.fixturenames:
        lab: Lab = request.getfixturevalue("user_lab")
        for name, link in lab.topology.links.items():
            lab.change_link(name, **link.model_dump())
        for switch in lab.topology.switches:
            lab.change_switch(switch.name, **switch.model_dump(exclude={"name"}))


@pytest.mark.long
def test_the_fabric_says_who_it_is_and_why(user_lab: Lab) -> None:
    assert (user_lab.fabric, user_lab.fabric_reasons) == ("user", ("asked for",))
    assert user_lab.facts()["fabric"] == "user"


def test_delay_is_there_and_both_ways(user_lab: Lab) -> None:
    array = user_lab.topology.arrays[0].interfaces[0].address
    delayed = user_lab.change_link("h1.p0", delay_us=20_000)
    assert delayed.delay_us == 20_000
    measured = user_lab.execute("h1", python(PING, array))
    assert 0.040 <= float(measured.stdout) < 0.5


@a_busy_machine_may_spoil
def test_a_line_is_as_fast_as_it_says(user_lab: Lab) -> None:
    user_lab.change_link("h2.p0", rate_bits_per_s=20e6)
    wire_s = 2 * MIB / 1448 * 1538 * 8 / 20e6
    assert 0.99 * wire_s <= transfer_s(user_lab, 2 * MIB) < 3 * wire_s


@a_busy_machine_may_spoil
def test_frames_are_counted_as_they_are_on_the_wire(user_lab: Lab) -> None:
    before = user_lab.counters()
    transfer_s(user_lab, MIB)
    after = user_lab.counters()
    segments = MIB / 1448
    for name in ("port.h1.p0.frames_sent", "port.h2.p0.frames_received"):
        assert segments <= after[name] - before[name] < 1.5 * segments + 100
    assert after["host.h2.cpu_s"] >= before["host.h2.cpu_s"]
    assert after["fabric.cpu_s"] > before["fabric.cpu_s"]
    assert after["fabric.lag_ns_max"] > 0


@a_busy_machine_may_spoil
def test_a_reader_beside_a_measurement_takes_nothing_from_it(user_lab: Lab) -> None:
    user_lab.counters()
    transfer_s(user_lab, MIB)
    seen = user_lab.traffic()
    assert seen["port.h1.p0.queue_bytes"] == seen["port.h2.p0.switch_queue_bytes"] == 0
    after = user_lab.counters()
    assert after["port.h2.p0.bytes_received"] >= seen["port.h2.p0.bytes_received"] > MIB
    # An idle fabric is late by a few microseconds at most: this lag is of the transfer, before it was looked at.
    assert after["fabric.lag_ns_max"] > user_lab.counters()["fabric.lag_ns_max"]


def test_loss_costs_retransmissions(user_lab: Lab) -> None:
    before = user_lab.counters()
    assert user_lab.change_link("h2.p0", loss=0.02).loss == 0.02
    transfer_s(user_lab, 4 * MIB)
    after = user_lab.counters()
    assert after["port.h2.p0.lost"] > before["port.h2.p0.lost"]
    name = "host.h1.tcp_segments_retransmitted"
    assert after[name] > before[name]


def test_pause_keeps_what_a_shallow_buffer_drops(user_lab: Lab) -> None:
    user_lab.change_link("h2.p0", rate_bits_per_s=2e6)
    dropped = {}
    for flow_control in ("none", "pause"):
        now = user_lab.change_switch(
            "sw1", buffer_bytes=16_384, flow_control=flow_control, xoff_bytes=8192, xon_bytes=4096
        )
        assert now.flow_control == flow_control
        before = user_lab.counters()
        assert user_lab.execute("h1", python(BURST, address_of(user_lab, "h2"), 60)).returncode == 0
        after = user_lab.counters()
        dropped[flow_control] = after["port.h2.p0.switch_drops"] - before["port.h2.p0.switch_drops"]
        paused = after["port.h1.p0.pauses"] - before["port.h1.p0.pauses"]
    assert dropped["none"] > 20
    assert (dropped["pause"], paused > 0) == (0, True)


def test_adapters_can_be_changed(user_lab: Lab) -> None:
    nic = user_lab.change_nic("h1.p0", moderation_us=50, rsc=True, rx_ring_frames=256)
    assert (nic.moderation_us, nic.rsc, nic.rx_ring_frames) == (50, True, 256)
    assert user_lab.now().node("h1").ports[0].nic == nic
    user_lab.change_nic("h1.p0", **user_lab.topology.node("h1").ports[0].nic.model_dump())


def test_mtu_is_read_back_from_the_interface(user_lab: Lab) -> None:
    assert user_lab.change_link("h1.p0", mtu=9000).mtu == 9000
    assert user_lab.execute("h1", ["cat", "/sys/class/net/p0/mtu"]).stdout == "9000\n"


def test_a_value_that_it_cannot_have_is_refused(user_lab: Lab) -> None:
    before = user_lab.links
    with pytest.raises(UserError) as caught:
        user_lab.change_link("h1.p0", mtu=9000, rate_bits_per_s=10)
    assert "the user fabric cannot have rate_bits_per_s 10" in message(caught.value)
    assert user_lab.links == before


@pytest.mark.long
def test_storage_and_lan_share_a_wire_by_vlan(tmp_path: Path) -> None:
    """Two interfaces on one port; each reaches its own network only."""
    file = tmp_path / "converged.toml"
    file.write_text(CONVERGED)
    name = unique("converged")
    holder = hold(file, name, "user")
    with Lab.look(name) as lab:
        trace = Trace.of(lab)
        array, lan_host = lab.topology.node("a1"), lab.topology.node("l1")
        before = lab.counters()
        assert lab.execute("h1", python(PING, array.interfaces[0].address)).returncode == 0
        refused = lab.execute("h1", python(PING, lan_host.interfaces[0].address))
        after = lab.counters()
        assert "ConnectionRefusedError" in refused.stderr  # l1 is there, and no array
        for interface in ("san0", "lan0"):
            counter = f"interface.h1.{interface}.bytes_received"
            assert after[counter] > before[counter]
        crossed = lab.execute(
            "l1", python(PING.replace("timeout=20", "timeout=0.3"), array.interfaces[0].address)
        )
        assert crossed.returncode != 0
    end(holder)
    trace.assert_gone()


@pytest.mark.long
def test_a_dead_fabric_is_told(topology_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "mortal.toml"
    file.write_text(f'fabric = "user"\n{TOPOLOGY}')
    name = unique("mortal")
    holder = hold(file, name, "user")
    with Lab.look(name) as lab:
        trace = Trace.of(lab)
        for pid, _ in trace.processes:
            if b"linerate.lab.fabric" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + TIMEOUT_S
        with pytest.raises(HostError) as caught:
            _count_until(lab, deadline)
        assert "the fabric" in message(caught.value)
    assert [one.name for one in running() if one.name == name] == [name]
    with Lab.look(name) as lab:
        lab.down()
    assert end(holder) == 0
    trace.assert_gone()


LATE = """
import os, signal, time
from linerate.lab import enter
enter()
from linerate.errors import HostError
from linerate.lab.fabric.spec import FabricSpec, SwitchSpec
from linerate.lab.user import channel
fabric = channel.Channel(FabricSpec(switches=(SwitchSpec(name="sw1"),), ports=()))
os.kill(fabric.pid, signal.SIGSTOP)
try:
    fabric.ask("stats", timeout_s=0.2)
except HostError as error:
    print(error.message)
os.kill(fabric.pid, signal.SIGCONT)
print(type(fabric.ask("change")))
"""


@pytest.mark.long
def test_an_answer_that_comes_late_is_not_taken_for_the_next_one() -> None:
    done = subprocess.run(
        as_user((sys.executable, "-c", LATE)), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    said = "the fabric process has not answered in 0.2 s"
    assert (done.stdout.splitlines(), done.stderr) == ([said, "<class 'int'>"], "")


def test_what_is_told_of_a_change_is_what_the_fabric_has(user_lab: Lab) -> None:
    """Values are those of its own units: whole nanoseconds, whole microseconds of moderation."""
    assert user_lab.change_link("h1.p0", delay_us=1.2345).delay_us == 1.234
    assert user_lab.links["h1.p0"].delay_us == 1.234
    assert user_lab.change_nic("h1.p0", moderation_us=10.4).moderation_us == 10


def _count_until(lab: Lab, deadline: float) -> None:
    while time.monotonic() < deadline:
        lab.counters()


def test_a_shell_command_fails_as_it_does_outside(user_lab: Lab) -> None:
    missing = subprocess.run(
        user_lab.inside("h1", ["no-such-program"]), capture_output=True, text=True, check=False
    )
    assert (missing.returncode, missing.stderr) == (
        127,
        "linerate: no-such-program: No such file or directory\n",
    )
