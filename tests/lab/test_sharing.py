"""Storage and LAN on one wire (802.1Qaz), on both fabrics: shares when both send, the whole line when one does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from linerate.lab import Lab

from tests.lab.conftest import run, unique
from tests.support.patience import a_busy_machine_may_spoil
from tests.support.traffic import python

pytestmark = pytest.mark.long

SHARED = """
fabric = "{fabric}"
[link]
rate = "40mbit"
[[switch]]
name = "sw1"
buffer = "256k"
schedule = {{ kind = "ets", shares = {{ 3 = 70, 0 = 30 }} }}
[[host]]
name = "h1"
port = [
  {{ name = "p0", switch = "sw1", interface = [
    {{ name = "san0", vlan = 10, priority = 3 }}, {{ name = "lan0", vlan = 20 }} ] }},
]
[[host]]
name = "l1"
port = [{{ name = "p0", switch = "sw1", vlan = 20 }}]
[[array]]
name = "a1"
port = [{{ name = "p0", switch = "sw1", vlan = 10, priority = 3 }}]
volume = [{{ name = "v1", size = "16m" }}]
"""

DRAIN = """
import socket, threading
def drain(link):
    while link.recv(1 << 20):
        pass
with socket.create_server(("0.0.0.0", 7000)) as server:
    print("listening", flush=True)
    while True:
        threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()
"""

FLOOD = """
import socket, sys, threading
def flood():
    with socket.create_connection((sys.argv[1], 7000), timeout=20) as link:
        while True:
            link.sendall(bytes(65536))
for _ in range(4):
    threading.Thread(target=flood).start()
"""

WARM_UP_S = 1.0
MEASURED_S = 2.5
LINE_BYTES_PER_S = 40e6 / 8 * 1448 / 1538


@pytest.fixture(scope="module", params=["kernel", "user"])
def converged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """h1 has one port for storage and LAN."""
    file = tmp_path_factory.mktemp("shared") / "shared.toml"
    file.write_text(SHARED.format(fabric=request.param))
    name = unique(f"shared-{request.param}")
    up = run("up", str(file), "--name", name, rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        assert lab.fabric == request.param
        with _running(lab, "h1", DRAIN) as sink:
            assert sink.stdout is not None
            assert sink.stdout.readline() == b"listening\n"
            yield lab
        lab.down()


@contextmanager
def _running(lab: Lab, node: str, code: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(lab.inside(node, python(code, *words)), stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


def _received_bytes_per_s(lab: Lab, *sources: str) -> dict[str, float]:
    """What arrives at each of h1's interfaces while these send to it."""
    addresses = {interface.name: interface.address for interface in lab.topology.node("h1").interfaces}
    target = {"a1": "san0", "l1": "lan0"}
    with ExitStack() as stack:
        for source in sources:
            stack.enter_context(_running(lab, source, FLOOD, addresses[target[source]]))
        time.sleep(WARM_UP_S)
        before = lab.counters()
        time.sleep(MEASURED_S)
        after = lab.counters()
    elapsed_s = after["machine.clock_s"] - before["machine.clock_s"]
    counters = {name: f"interface.h1.{name}.bytes_received" for name in addresses}
    return {name: (after[counter] - before[counter]) / elapsed_s for name, counter in counters.items()}


@pytest.mark.parametrize(("shares", "storage"), [({3: 70, 0: 30}, 0.7), ({3: 50, 0: 50}, 0.5)])
@a_busy_machine_may_spoil
def test_each_class_gets_its_share(converged: Lab, shares: dict[int, float], storage: float) -> None:
    """Within 3 points, by live change as well as from the start."""
    switch = converged.change_switch("sw1", schedule={"kind": "ets", "shares": shares})
    assert switch.schedule.shares == shares
    rates = _received_bytes_per_s(converged, "a1", "l1")
    assert rates["san0"] / sum(rates.values()) == pytest.approx(storage, abs=0.03)
    assert sum(rates.values()) > 0.8 * LINE_BYTES_PER_S


@pytest.mark.parametrize(("source", "interface"), [("a1", "san0"), ("l1", "lan0")])
@a_busy_machine_may_spoil
def test_a_class_alone_has_the_whole_line(converged: Lab, source: str, interface: str) -> None:
    rates = _received_bytes_per_s(converged, source)
    assert rates[interface] > 0.8 * LINE_BYTES_PER_S
    assert rates[interface] < 1.1 * LINE_BYTES_PER_S


@a_busy_machine_may_spoil
def test_both_interfaces_together_send_no_faster_than_their_wire(converged: Lab) -> None:
    """The other direction: one adapter, one line."""
    before = converged.counters()
    with ExitStack() as stack:
        for peer, process in (("a1", "storage"), ("l1", "lan")):
            sink = stack.enter_context(_running(converged, peer, DRAIN))
            assert sink.stdout is not None, process
            assert sink.stdout.readline() == b"listening\n"
            address = converged.topology.node(peer).interfaces[0].address
            stack.enter_context(_running(converged, "h1", FLOOD, address))
        time.sleep(WARM_UP_S)
        before = converged.counters()
        time.sleep(MEASURED_S)
        after = converged.counters()
    elapsed_s = after["machine.clock_s"] - before["machine.clock_s"]
    received = sum(
        after[f"port.{peer}.p0.bytes_received"] - before[f"port.{peer}.p0.bytes_received"]
        for peer in ("a1", "l1")
    )
    assert 0.8 * LINE_BYTES_PER_S < received / elapsed_s < 1.15 * LINE_BYTES_PER_S


def test_the_topology_may_ask_for_what_the_kernel_has(tmp_path: Path) -> None:
    """VLANs and ETS alone need no user fabric."""
    file = tmp_path / "auto.toml"
    file.write_text(SHARED.format(fabric="auto"))
    name = unique("auto")
    assert run("up", str(file), "--name", name, rights="user").returncode == 0
    with Lab.look(name) as lab:
        assert (lab.fabric, lab.fabric_reasons) == ("kernel", ())
        lab.down()
