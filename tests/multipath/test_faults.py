"""Faults in a lab, on both fabrics: a silent fault keeps the carrier, a healed network is as before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from linerate.errors import UserError
from linerate.lab import Lab
from linerate.lab.faults import FaultPlayer
from linerate.san import Fault, parse_fault

from tests.lab.conftest import COMMAND, TIMEOUT_S, message, run, unique, with_rights
from tests.multipath.agents import AGAIN_S, Agents, agents_in
from tests.support.traffic import python

pytestmark = pytest.mark.long

TWO_CONTROLLERS = """
fabric = "{fabric}"
[[switch]]
name = "sw1"
[[switch]]
name = "sw2"
[[trunk]]
name = "isl"
a = "sw1"
b = "sw2"
[[host]]
name = "h1"
port = [{{ name = "p0", switch = "sw1" }}]
[[host]]
name = "h2"
port = [{{ name = "p0", switch = "sw2" }}]
[[array]]
name = "a1"
port = [
  {{ name = "p0", switch = "sw1", controller = "A" }},
  {{ name = "p1", switch = "sw2", controller = "B" }},
]
volume = [{{ name = "v1", size = "1m" }}]
"""


@pytest.fixture(scope="module", params=["kernel", "user"])
def hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """A host at each of two switches."""
    file = tmp_path_factory.mktemp("faults") / "faults.toml"
    file.write_text(TWO_CONTROLLERS.format(fabric=request.param))
    name = unique(f"faults-{request.param}")
    up = run("up", str(file), "--name", name, rights="user")
    assert up.returncode == 0, up.stderr
    with Lab.look(name) as lab:
        assert lab.fabric == request.param
        with agents_in(lab) as agents:
            yield agents
        lab.down()


@pytest.fixture(autouse=True)
def _as_it_came(hosts: Agents) -> Iterator[None]:
    yield
    for fault in hosts.lab.faults:
        hosts.lab.heal(fault)
    for name, link in hosts.lab.topology.links.items():
        hosts.lab.change_link(name, **link.model_dump())
    hosts.meet()


@pytest.mark.parametrize(
    ("text", "out", "back", "small", "carriers"),
    [
        ("cable h1.p0", False, False, False, (False, True)),
        ("cable isl", False, False, False, (True, True)),
        ("switch sw2", False, False, False, (True, False)),
        ("one_way h1.p0 from", False, True, False, (True, True)),
        ("one_way h1.p0 to", True, False, True, (True, True)),
        ("one_way isl from", False, True, False, (True, True)),
        ("mtu h1.p0 1000", False, False, True, (True, True)),
        ("mtu isl 1428", True, True, True, (True, True)),  # 1400 bytes and 28 of headers
        ("mtu isl 1423", False, False, True, (True, True)),
        ("controller a1.A", True, True, True, (True, True)),
    ],
)
def test_a_fault_stops_what_it_should_and_nothing_else(
    hosts: Agents, text: str, out: bool, back: bool, small: bool, carriers: tuple[bool, bool]
) -> None:
    hosts.meet()
    fault = parse_fault(text)
    before_ns = time.monotonic_ns()
    at_ns = hosts.lab.fault(fault)
    assert before_ns <= at_ns <= time.monotonic_ns()
    assert hosts.lab.faults == (fault,)
    assert hosts.passes("h1", "h2") is out
    assert hosts.passes("h2", "h1") is back
    assert hosts.passes("h1", "h2", 100) is small
    assert (hosts["h1"].carrier(), hosts["h2"].carrier()) == carriers
    assert hosts.lab.links["h1.p0"].up == carriers[0]
    assert hosts.lab.heal(fault) > at_ns
    hosts.meet()
    assert hosts.lab.faults == ()
    assert hosts.passes("h1", "h2")
    assert all(link.up for link in hosts.lab.links.values())


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 3260), timeout=float(sys.argv[2]))"


def _reaches(lab: Lab, host: str, port: int, within_s: float = 0.7) -> bool:
    address = lab.topology.node("a1").interfaces[port].address
    return lab.execute(host, python(CONNECT, address, within_s)).returncode == 0


def test_each_controller_is_a_portal_group(hosts: Agents) -> None:
    first, second = (inside.address for inside in hosts.lab.topology.node("a1").interfaces)
    command = [sys.executable, "-m", "linerate.cli", "discover", f"iscsi://{first}:3260"]
    told = hosts.lab.execute("h1", command).stdout.splitlines()
    portals = [line.split()[1] for line in told if "portal" in line]
    assert portals == [f"{first}:3260,1", f"{second}:3260,2"]


def test_a_controller_falls_silent_and_the_other_does_not(hosts: Agents) -> None:
    fault = parse_fault("controller a1.A")
    hosts.lab.fault(fault)
    assert [_reaches(hosts.lab, "h1", port) for port in (0, 1)] == [False, True]
    carrier = hosts.lab.execute("a1", ["cat", "/sys/class/net/p0/carrier"])
    assert carrier.stdout == "1\n"
    hosts.lab.heal(fault)
    assert _reaches(hosts.lab, "h1", 0, AGAIN_S)


def test_an_address_goes_and_comes_back(hosts: Agents) -> None:
    fault = parse_fault("address a1.p0")
    hosts.lab.fault(fault)
    assert [_reaches(hosts.lab, "h1", port) for port in (0, 1)] == [False, True]
    hosts.lab.heal(fault)
    assert _reaches(hosts.lab, "h1", 0, AGAIN_S)


def test_a_flapping_link_goes_down_and_up(hosts: Agents) -> None:
    def changes() -> int:
        return int(hosts["h1"].do("read", "/sys/class/net/p0/carrier_changes"))

    fault = parse_fault("flap h1.p0 100ms")
    before = changes()
    hosts.lab.fault(fault)
    deadline = time.monotonic() + AGAIN_S
    while changes() < before + 6:
        assert time.monotonic() < deadline
    hosts.lab.heal(fault)
    hosts.meet()
    healed = changes()
    time.sleep(0.25)
    assert changes() == healed


def test_faults_add_up_and_heal_one_by_one(hosts: Agents) -> None:
    cable, switch = parse_fault("cable h1.p0"), parse_fault("switch sw1")
    for fault in (cable, switch):
        hosts.lab.fault(fault)
    hosts.lab.heal(switch)
    assert not hosts["h1"].carrier()
    assert hosts.lab.links["a1.p0"].up
    hosts.lab.heal(cable)
    hosts.meet()


def test_a_link_can_be_changed_while_it_is_pulled(hosts: Agents) -> None:
    fault = parse_fault("cable h1.p0")
    hosts.lab.fault(fault)
    changed = hosts.lab.change_link("h1.p0", rate_bits_per_s=5e8)
    assert (changed.rate_bits_per_s, changed.up) == (5e8, False)
    hosts.lab.heal(fault)
    assert hosts.lab.links["h1.p0"].up


def test_plugging_a_cable_in_heals_its_fault(hosts: Agents) -> None:
    hosts.lab.fault(parse_fault("cable h1.p0"))
    assert hosts.lab.change_link("h1.p0", up=True).up
    assert hosts.lab.faults == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cable h9.p0", "has no link h9.p0"),
        ("controller a1.C", "has no controller a1.C -> there are a1.A, a1.B"),
    ],
)
def test_what_is_not_there_cannot_fail(hosts: Agents, text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        hosts.lab.fault(parse_fault(text))
    assert says in message(caught.value)
    assert hosts.lab.faults == ()


def test_a_fault_happens_once_and_is_healed_once(hosts: Agents) -> None:
    fault = parse_fault("cable h1.p0")
    with pytest.raises(UserError, match="is not in force"):
        hosts.lab.heal(fault)
    hosts.lab.fault(fault)
    with pytest.raises(UserError, match="is already in effect"):
        hosts.lab.fault(fault)
    assert hosts.lab.faults == (fault,)


def test_a_player_keeps_time_and_heals_what_is_left(hosts: Agents) -> None:
    told: list[tuple[str, str, int]] = []
    faults = [parse_fault("cable h1.p0 at 200ms for 300ms"), parse_fault("mtu h2.p0 1000 at 100ms")]
    started_ns = time.monotonic_ns()
    over = time.monotonic() + TIMEOUT_S
    with FaultPlayer(
        hosts.lab, faults, lambda fault, what, at: told.append((fault.kind, what, at))
    ) as player:
        player.start(started_ns)
        while len(told) < 3:
            assert time.monotonic() < over
        assert hosts.lab.faults == (faults[1],)
    assert [(kind, what) for kind, what, _ in told] == [
        ("mtu", "fault"),
        ("cable", "fault"),
        ("cable", "healed"),
        ("mtu", "healed"),
    ]
    after_ms = [(at_ns - started_ns) / 1e6 for _, _, at_ns in told]
    assert all(at >= planned for at, planned in zip(after_ms, (100, 200, 500, 500), strict=True))
    assert hosts.lab.faults == ()


def test_a_player_tells_what_the_lab_refuses(hosts: Agents) -> None:
    twice = [Fault(kind="cable", target="h1.p0"), Fault(kind="cable", target="h1.p0", at_s=0.01)]
    player = FaultPlayer(hosts.lab, twice, lambda *_: None)
    player.start(time.monotonic_ns())
    time.sleep(0.5)
    with pytest.raises(UserError, match="is already in effect"):
        player.stop()
    assert hosts.lab.faults == ()
    with pytest.raises(UserError, match="has no switch sw7"):
        FaultPlayer(hosts.lab, [parse_fault("switch sw7")], lambda *_: None)


def test_the_command_pulls_and_plugs(hosts: Agents) -> None:
    lab = ("--lab", hosts.lab.name)
    pulled = run("cable", "pull", "h1.p0", *lab, rights="user")
    assert (pulled.returncode, pulled.stdout) == (0, "cable h1.p0  in force\n")
    assert not hosts["h1"].carrier()
    shown = run("show", *lab, "--seconds", "0.1", rights="user")
    assert "in force: cable h1.p0" in shown.stdout
    assert run("cable", "plug", "h1.p0", *lab, rights="user").stdout == "cable h1.p0  healed\n"
    assert hosts.lab.faults == ()
    hosts.lab.change_link("h1.p0", up=False)
    assert run("cable", "plug", "h1.p0", *lab, rights="user").returncode == 0
    assert hosts.lab.links["h1.p0"].up


def test_the_command_keeps_times_and_tells_instants(hosts: Agents) -> None:
    lab = ("--lab", hosts.lab.name, "--json")
    start_ns = time.monotonic_ns()
    done = run("fault", "mtu", "h1.p0", "1000", "--at", "100ms", "--for", "200ms", *lab, rights="user")
    assert done.returncode == 0, done.stderr
    broke, healed = map(json.loads, done.stdout.splitlines())
    assert (broke["fault"], broke["what"], healed["what"]) == ("mtu h1.p0 1000", "fault", "healed")
    assert broke["monotonic_ns"] - start_ns > 0.1e9
    assert healed["monotonic_ns"] - broke["monotonic_ns"] >= 0.2e9
    hosts.lab.fault(parse_fault("one_way h2.p0 to"))
    assert run("heal", *lab, rights="user").returncode == 0
    assert hosts.lab.faults == ()


def test_ctrl_c_heals_what_was_to_heal(hosts: Agents) -> None:
    command = with_rights(
        "user", (*COMMAND, "cable", "pull", "h1.p0", "--for", "1h", "--lab", hosts.lab.name)
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as pulling:
        try:
            assert pulling.stdout is not None
            assert pulling.stdout.readline() == "cable h1.p0  in force\n"
            pulling.send_signal(signal.SIGINT)
            assert pulling.stdout.readline() == "cable h1.p0  healed\n"
            assert pulling.wait(TIMEOUT_S) == 130
        finally:
            pulling.kill()
    assert hosts.lab.faults == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cable", "pull", "h7.p0"), "has no link h7.p0"),
        (("cable", "pull", "h1.p0", "--at", "noon"), "--at: 'noon' is not a time"),
        (("fault", "fire", "sw1"), "kinds are cable"),
        (("fault",), "is no fault"),
        (("heal", "cable", "h1.p0"), "nothing has failed"),
    ],
)
def test_the_command_refuses_with_a_way_out(hosts: Agents, words: tuple[str, ...], says: str) -> None:
    refused = run(*words, "--lab", hosts.lab.name, rights="user")
    assert refused.returncode == 2
    assert says in refused.stderr
    assert "  -> " in refused.stderr
