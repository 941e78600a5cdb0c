"""Facts about the host: read from the system, checked against the registry, shown with units."""

from __future__ import annotations

import socket
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from linerate.errors import InternalError
from linerate.results import collect_environment
from linerate.results.environment import cpu_list, ports_towards, route_to
from linerate.results.facts import REGISTRY, checked_facts, find_fact, label_of, show_fact

from tests.support import need


def test_this_host_can_be_described() -> None:
    facts = collect_environment(["127.0.0.1:3260", "[::1]:3260", "no.such.host.invalid"])
    assert facts["host.kernel"]
    assert isinstance(facts["memory.total_bytes"], int)
    assert isinstance(facts["port.lo.mtu_bytes"], int)
    assert "127.0.0.1:3260" in str(facts["port.lo.peers"])
    assert all(find_fact(key) for key in facts)


def test_a_host_without_proc_yields_fewer_facts(tmp_path: Path) -> None:
    facts = collect_environment(["127.0.0.1"], root=tmp_path)
    assert "memory.total_bytes" not in facts
    assert not any(key.startswith("sysctl.") for key in facts)
    assert facts["host.architecture"]


def test_facts_are_read_from_where_linux_keeps_them(tmp_path: Path) -> None:
    wanted = {
        "proc/sys/net/ipv4/tcp_congestion_control": "bbr\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/meminfo": "MemTotal:        1024 kB\n",
        "proc/cpuinfo": "processor : 0\nmodel name : A CPU\nflags : fpu hypervisor sse\n",
        "proc/loadavg": "0.50 0.40 0.30 1/100 1\n",
        "etc/os-release": 'NAME="x"\nPRETTY_NAME="An OS 1"\n',
        "sys/class/net/lo/mtu": "65536\n",
        "sys/class/net/lo/speed": "-1\n",
    }
    for name, text in wanted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    facts = collect_environment(["127.0.0.1:3260"], root=tmp_path)
    assert facts["sysctl.net.ipv4.tcp_congestion_control"] == "bbr"
    assert facts["sysctl.net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert facts["memory.total_bytes"] == 1 << 20
    assert facts["cpu.model"] == "A CPU"
    assert facts["host.hypervisor"] is True
    assert facts["host.os"] == "An OS 1"
    assert facts["port.lo.mtu_bytes"] == 65536
    assert "port.lo.speed_mbit_s" not in facts


@pytest.mark.parametrize(
    ("below", "shown"), [((), False), (("device",), True), (("lower_eth0", "device"), True)]
)
def test_only_an_adapter_has_a_link_speed(below: tuple[str, ...], shown: bool, tmp_path: Path) -> None:
    """A veth port always says 10,000 Mbit/s; the line of its lab may have another rate."""
    port = tmp_path / "sys/class/net/lo"
    port.joinpath(*below).mkdir(parents=True)
    (port / "speed").write_text("10000\n")
    facts = collect_environment(["127.0.0.1:3260"], root=tmp_path)
    assert facts.get("port.lo.speed_mbit_s") == (10000 if shown else None)


def test_ports_are_found_by_route() -> None:
    assert ports_towards(["127.0.0.1", "localhost:3260", "[::1]"]).keys() == {"lo"}


def test_a_name_may_begin_with_an_address_that_has_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("fe80::1", 3260, 0, 0))  # of no interface
    here = (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", 3260))
    addresses = [nowhere, here]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    assert route_to("two.example").address == ("127.0.0.1", 3260)
    assert ports_towards(["two.example"]).keys() == {"lo"}
    addresses.remove(here)
    with pytest.raises(OSError, match=r"Invalid argument|unreachable"):
        route_to("two.example")
    assert ports_towards(["two.example"]) == {}


HOST = """
set -e
ip link set lo up
ip link add left type veth peer name right
ip link set left up && ip link set right up
for address in 10.1.0.10/24 10.1.0.9/24; do ip address add $address dev left; done
ip address add fd00::2/64 dev right nodad
ip route add 10.9.0.0/24 dev left src 10.1.0.9
exec "$0" -c "$1"
"""
HAS = """
from linerate.results.environment import host_addresses, ports_towards
found = {str(one): port for one, port in host_addresses().items() if not one.is_link_local}
print([*found.items()], list(ports_towards(["10.9.0.1:3260", "[fd00::3]:3260"])), sep=", ")
"""


def test_a_host_has_several_addresses_on_an_interface() -> None:
    need.tool("ip")
    command = [*need.unshare("--net"), "sh", "-c", HOST, sys.executable, HAS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    addresses, ports = literal_eval(done.stdout)
    assert addresses == [
        ("10.1.0.9", "left"),
        ("10.1.0.10", "left"),
        ("127.0.0.1", "lo"),
        ("::1", "lo"),
        ("fd00::2", "right"),
    ]
    assert ports == ["left", "right"], "also by an address that is not the first one"


@pytest.mark.parametrize(
    ("cpus", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 7], "0,2-3,7")]
)
def test_cpu_lists_read_like_the_kernels(cpus: list[int], text: str) -> None:
    assert cpu_list(cpus) == text


def test_only_registered_facts_of_the_right_type_pass() -> None:
    assert checked_facts({"cpu.count": 8, "host.name": None}) == {"cpu.count": 8, "host.name": None}
    for wrong in ({"cpu.colour": "blue"}, {"cpu.count": "8"}, {"cpu.count": True}):
        with pytest.raises(InternalError):
            checked_facts(wrong)  # type: ignore[arg-type]


def test_facts_are_shown_with_their_units() -> None:
    assert show_fact("memory.total_bytes", 64 << 30) == "64.0 GiB"
    assert show_fact("port.eth0.mtu_bytes", 9000) == "9000 bytes"
    assert show_fact("host.hypervisor", True) == "yes"
    assert show_fact("cpu.governor", None) == "not available"
    assert show_fact("from.the.future", 7) == "7"
    assert label_of("port.eth0.mtu_bytes") == "eth0: MTU"
    assert label_of("from.the.future") == "from.the.future"


def test_every_registered_key_finds_itself() -> None:
    for fact in REGISTRY:
        assert find_fact(fact.key.replace("*", "eth0.100")) is fact
