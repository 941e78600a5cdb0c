"""A lab comes up fast, serves, and leaves nothing behind, however it ends; CPUs stay awake no longer than asked."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.lab import Lab, protocol
from linerate.lab.cpu.idle import DEVICE, POLLING, SLEEPING, kept_awake
from linerate.lab.supervisor import arrays
from linerate.san import load_topology, parse_fault

from tests.lab.conftest import HOLD, TIMEOUT_S, as_user, end, hold, run, unique, with_rights
from tests.lab.trace import Trace, outer_interfaces

needs_device = pytest.mark.skipif(not os.access(DEVICE, os.R_OK), reason=f"{DEVICE} is root's")
UP_WITHIN_S = 3.0
TRIES = 2

LARGE = """
[link]
rate = "100mbit"
[[switch]]
name = "sw1"
[[switch]]
name = "sw2"
[[host]]
name = "h{n}"
count = 8
port = [{ name = "p0", switch = "sw1" }, { name = "p1", switch = "sw2" }]
[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }, { name = "p1", switch = "sw2" }]
volume = [{ name = "v{n}", count = 8, size = "16m" }]
[[array]]
name = "a2"
port = [{ name = "p0", switch = "sw1" }, { name = "p1", switch = "sw2" }]
volume = [{ name = "v{n}", count = 8, size = "16m" }]
"""

TIMED = """
import sys, time
from linerate.lab import enter
enter()
from linerate.lab import Lab
from linerate.san import load_topology
topology = load_topology(sys.argv[1])
for _ in range(int(sys.argv[2])):
    start = time.monotonic()
    with Lab.up(topology) as lab:
        print(time.monotonic() - start)
        for host in topology.hosts:
            assert len(lab.volume_urls(host.name)) == 16
"""


@pytest.mark.alone
def test_eight_hosts_are_up_in_time(rights: str, tmp_path: Path) -> None:
    """8 hosts, 2 arrays, 2 switches in 3 s; longer by as much as others want the CPUs, too."""
    file = tmp_path / "large.toml"
    file.write_text(LARGE)
    command = with_rights(rights, (sys.executable, "-c", TIMED, str(file), str(TRIES)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    crowd = 1 + os.getloadavg()[0] / (os.cpu_count() or 1)
    assert min(map(float, done.stdout.split())) < UP_WITHIN_S * crowd


@pytest.mark.long
def test_an_attached_lab_ends_with_its_block(topology_file: Path) -> None:
    before = outer_interfaces()
    holder = hold(topology_file, unique("block"), "user")
    with Lab.look(unique("block")) as lab:
        assert lab.attached
        trace = Trace.of(lab)
        assert outer_interfaces() == before
    assert end(holder) == 0
    trace.assert_gone()


def test_a_detached_lab_stays_until_down(rights: str, topology_file: Path) -> None:
    name = unique("detached")
    assert run("up", str(topology_file), "--name", name, rights=rights).returncode == 0
    with Lab.look(name) as lab:
        assert not lab.attached
        trace = Trace.of(lab)
    down = run("down", name, rights=rights)
    assert (down.returncode, down.stdout) == (0, f"{name} is down\n")
    trace.assert_gone()


@pytest.mark.long
@pytest.mark.parametrize("victim", ["command", "supervisor"])
def test_kill_9_leaves_nothing(rights: str, victim: str, topology_file: Path) -> None:
    name = unique(f"kill-{victim}")
    holder = hold(topology_file, name, rights)
    with Lab.look(name) as lab:
        trace = Trace.of(lab)
        os.kill(holder.pid if victim == "command" else lab.supervisor_pid, signal.SIGKILL)
    end(holder)
    trace.assert_gone()


@pytest.mark.long
def test_ctrl_c_leaves_nothing(rights: str, topology_file: Path) -> None:
    """As a terminal does it: the signal goes to the command's whole process group."""
    name = unique("ctrl-c")
    holder = subprocess.Popen(
        with_rights(rights, (sys.executable, "-c", _HOLD_QUIETLY, str(topology_file), name)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == name
    with Lab.look(name) as lab:
        trace = Trace.of(lab)
    os.killpg(holder.pid, signal.SIGINT)
    assert end(holder) == 130
    trace.assert_gone()


LOOK_S = 0.005
"""Looking for labs is a command to each that is up, those of tests beside this one too."""

_HOLD_QUIETLY = """
import sys
from linerate.lab import enter
enter()
from linerate.lab import Lab
from linerate.san import load_topology
try:
    with Lab.up(load_topology(sys.argv[1]), name=sys.argv[2]) as lab:
        print(lab.name, flush=True)
        sys.stdin.read()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_command_that_ends_while_it_builds_leaves_nothing(how: signal.Signals, topology_file: Path) -> None:
    names = (unique(f"early-{how.name.lower()}-{attempt}") for attempt in range(5))
    assert any(_ends_while_it_builds(name, how, topology_file) for name in names), "each lab was up before"


def _ends_while_it_builds(name: str, how: signal.Signals, topology_file: Path) -> bool:
    """Ends a command as soon as its lab is seen, and waits until nothing is left. False: the lab was up already, which
    happens on a busy machine."""
    command = as_user((sys.executable, "-c", HOLD, str(topology_file), name))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as builder:
        deadline = time.monotonic() + TIMEOUT_S
        while name not in protocol.names():
            assert time.monotonic() < deadline
            assert builder.poll() is None
            time.sleep(LOOK_S)
        builder.send_signal(how)
        assert builder.wait(TIMEOUT_S) != 0
        assert builder.stdout is not None
        was_up = builder.stdout.read() != b""
    while name in protocol.names():
        assert time.monotonic() < deadline
        time.sleep(LOOK_S)
    return not was_up


@pytest.mark.long
def test_two_labs_at_once_know_nothing_of_each_other(topology_file: Path) -> None:
    names = [unique("one"), unique("two")]
    holders = [hold(topology_file, name, who) for name, who in zip(names, ("root", "user"), strict=True)]
    with Lab.look(names[0]) as one, Lab.look(names[1]) as two:
        traces = [Trace.of(one), Trace.of(two)]
        assert not traces[0].holders.keys() & traces[1].holders.keys()
        assert one.change_link("h1.p0", mtu=9000).mtu == 9000
        assert two.links["h1.p0"].mtu == 1500
    end(holders[0])
    traces[0].assert_gone()
    with Lab.look(names[1]) as two:
        listed = two.execute("h1", [sys.executable, "-m", "linerate.cli", "discover", _portal(two)])
        assert (listed.returncode, listed.stderr) == (0, "")
        assert "LUN 1" in listed.stdout
    end(holders[1])
    traces[1].assert_gone()


def _portal(lab: Lab) -> str:
    return "/".join(lab.volume_urls("h1")[0].url.split("/")[:3])


@pytest.mark.long
def test_what_runs_inside_ends_with_the_lab(topology_file: Path) -> None:
    name = unique("inside")
    holder = hold(topology_file, name, "user")
    with Lab.look(name) as lab:
        inside = subprocess.Popen(
            lab.inside("h1", ["sh", "-c", "echo up; exec sleep 600"]), stdout=subprocess.PIPE
        )
        assert inside.stdout is not None
        assert inside.stdout.readline() == b"up\n"
        trace = Trace.of(lab)
        assert len(trace.processes) == 3
    end(holder)
    with inside:
        assert inside.wait(TIMEOUT_S) == 128 + signal.SIGKILL
    trace.assert_gone()


@pytest.mark.long
def test_a_flapping_link_does_not_keep_a_lab_from_its_end(topology_file: Path) -> None:
    name = unique("flapping")
    assert run("up", str(topology_file), "--name", name, rights="user").returncode == 0
    with Lab.look(name) as lab:
        trace = Trace.of(lab)
        lab.fault(parse_fault("flap h1.p0 20ms"))
        lab.down()
    trace.assert_gone()


def latency_us() -> int:
    """The least wake-up latency that anyone asks for; asking for none at all is how it is read."""
    return int(struct.unpack("=i", DEVICE.read_bytes()[:4])[0])


@needs_device
def test_no_cpu_sleeps_until_it_ends() -> None:
    before = latency_us()
    with kept_awake() as idle_cpus:
        assert (idle_cpus, latency_us()) == (POLLING, 0)
    assert latency_us() == before


@needs_device
def test_a_failure_within_ends_it_too() -> None:
    before = latency_us()
    with pytest.raises(KeyError), kept_awake():
        raise KeyError
    assert latency_us() == before


def test_without_the_right_to_ask_nothing_changes(tmp_path: Path) -> None:
    with kept_awake(tmp_path / "absent") as idle_cpus:
        assert idle_cpus == SLEEPING


@pytest.mark.long
def test_the_arrays_of_a_lab_have_the_memory_of_their_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    size_bytes = 256 << 20  # 128 huge pages, or many small ones
    target = TargetConfig(
        name="iqn.2026-11.lab.linerate:memory",
        volumes=(VolumeConfig(lun=0, name="v", size_bytes=size_bytes),),
    )
    config = ArrayConfig(portals=("127.0.0.1:0",), targets=(target,))
    running = EmbeddedArray(config)
    monkeypatch.setattr(arrays, "array_config", lambda _array: config)
    monkeypatch.setattr(arrays, "EmbeddedArray", lambda _config: running)
    node: Any = SimpleNamespace(visit=nullcontext)
    array: Any = SimpleNamespace(name="a1", kind="iscsi", storage=None)
    started = arrays.Arrays([array], {"a1": node})
    try:
        started.start()
        started.await_memory()
        pages = started.page_faults()["a1"]
        time.sleep(1.0)
        assert pages > size_bytes // (2 << 20)
        assert started.page_faults()["a1"] - pages < 16
    finally:
        running.__exit__(None, None, None)


def test_arrays_of_a_lab_touch_their_memory_ahead(topology_file: Path) -> None:
    assert all(arrays.array_config(array).touch_memory for array in load_topology(topology_file).arrays)
