"""How much the fabrics of a lab carry: `python -m bench.fabric [--pairs N ...] [--mtu N ...] [--seconds S]`.

Pairs of hosts, each host on a line of `--rate` of its own, one TCP stream per pair (iperf3), all on one switch. Beside
each other: the user-space fabric with three kinds of NIC and the kernel's bridge with HTB, as labs build them. Rates
are of what arrived, payload only, in MB/s of 10^6 bytes; `line` is what the headers leave of it. CPU is of the whole
machine, hosts' stacks included. `late` counts turns of the fabric that began more than a millisecond late: such a run
would be void.

Needs root, or `unshare --user --map-root-user --net` in front; and iperf3, iproute2, util-linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linerate.lab.fabric.spec import FabricSpec, InterfaceSpec, NicSpec, PortSpec, SwitchSpec, WireSpec
from linerate.lab.user.channel import Channel

# The kernel's fabric must see frames, or its shapers charge 64 KiB for one set of headers.
FRAMES = "from pyroute2.ethtool.ioctl import IoctlEthtool as E; E('p0').set_offload_flag('tcp-segmentation-offload', 0)"
# NIC, and whether the kernel's NAPI receives for the host (else the fabric's own thread does).
NICS = {
    "user": (NicSpec(), False),
    "user, 50 us, RSC": (NicSpec(moderation_us=50, rsc=True), False),
    "the same, NAPI": (NicSpec(moderation_us=50, rsc=True), True),
}


class Namespace:
    """A network namespace that lives as long as a process that sleeps in it."""

    def __init__(self, stack: ExitStack) -> None:
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        own, path = os.stat("/proc/self/ns/net").st_ino, f"/proc/{self.process.pid}/ns/net"
        while os.stat(path).st_ino == own:
            pass  # the process is about to enter it
        self.path = path

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """A command inside."""
        return subprocess.Popen(["nsenter", f"--net={self.path}", *arguments], text=True, **options)

    def run(self, *arguments: str, check: bool = True) -> None:
        """A command inside that ends."""
        if self.start(*arguments).wait() and check:
            raise SystemExit(f"{' '.join(arguments)} failed")

    def settle(self, address: str) -> None:
        """An address, and the congestion control that labs use."""
        self.run("sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
        self.run("ip", "address", "add", f"{address}/16", "dev", "p0")
        self.run("ip", "link", "set", "p0", "up")


@dataclass
class Row:
    """One measurement."""

    fabric: str
    mtu: int
    pairs: int
    mb_s: float
    mb_s_least: float
    line_mb_s: float
    retransmits: int
    machine_cpus: float
    fabric_cpus: float | None = None
    late_turns: int | None = None


class UserFabric:
    """The fabric's process."""

    def __init__(self, spec: FabricSpec) -> None:
        self.channel = Channel(spec)

    def stats(self) -> dict[str, Any]:
        """Counters so far."""
        counted: dict[str, Any] = self.channel.ask("stats")
        return counted


@contextmanager
def user(hosts: list[Namespace], rate: int, mtu: int, nic: NicSpec, napi: bool) -> Iterator[UserFabric]:
    """All hosts on the switch of a user-space fabric."""
    ports = tuple(
        PortSpec(
            name=f"h{number}",
            switch="sw1",
            wire=WireSpec(rate_bits_per_s=rate),
            nic=nic,
            interfaces=(InterfaceSpec(netns=host.path, interface="p0", mtu=mtu, napi=napi),),
        )
        for number, host in enumerate(hosts)
    )
    fabric = UserFabric(FabricSpec(switches=(SwitchSpec(name="sw1"),), ports=ports))
    try:
        yield fabric
    finally:
        fabric.channel.close(20.0)


@contextmanager
def kernel(hosts: list[Namespace], rate: int, mtu: int) -> Iterator[None]:
    """All hosts on a bridge; HTB at both ends of each link, frames as they are on the wire."""
    with ExitStack() as stack:
        switch = Namespace(stack)
        switch.run("ip", "link", "add", "br0", "mtu", str(mtu), "type", "bridge")
        switch.run("ip", "link", "set", "br0", "up")
        for number, host in enumerate(hosts):
            peer = [
                "type",
                "veth",
                "peer",
                "name",
                f"s{number}",
                "netns",
                str(switch.process.pid),
                "mtu",
                str(mtu),
            ]
            host.run("ip", "link", "add", "p0", "mtu", str(mtu), *peer)
            host.run(sys.executable, "-c", FRAMES)
            switch.run("ip", "link", "set", f"s{number}", "master", "br0", "up")
            for end, device in ((host, "p0"), (switch, f"s{number}")):
                end.run("tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")
                htb = f"rate {rate}bit ceil {rate}bit burst 15kb cburst 15kb overhead 24 linklayer ethernet".split()
                end.run("tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb", *htb)
                end.run("tc", "qdisc", "add", "dev", device, "parent", "1:1", "bfifo", "limit", "512kb")
        yield None


def busy_s() -> float:
    """CPU time that this machine has spent on anything, in seconds."""
    user_, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split(maxsplit=8)[1:8])
    return (user_ + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def streams(hosts: list[Namespace], seconds: float) -> list[dict[str, Any]]:
    """One TCP stream per pair, all at once: what iperf3 says about each."""
    servers = [host.start("iperf3", "-s", "-1", stdout=subprocess.DEVNULL) for host in hosts[1::2]]
    for server, host in zip(servers, hosts[1::2], strict=True):
        while server.poll() is None and not _listens(host):
            pass
    clients = [
        host.start("iperf3", "-J", "-t", str(seconds), "-c", address(2 * pair + 1), stdout=subprocess.PIPE)
        for pair, host in enumerate(hosts[::2])
    ]
    answers = [json.loads(client.communicate()[0])["end"] for client in clients]
    for server in servers:
        server.wait()
    return answers


def _listens(host: Namespace) -> bool:
    # 0A = LISTEN, 1451 = port 5201 (proc(5), net/tcp6).
    return ":1451 " in Path(f"/proc/{host.process.pid}/net/tcp6").read_text()


def address(number: int) -> str:
    """The address of a host."""
    return f"10.9.{number // 200}.{number % 200 + 1}"


def measure(fabric: str, pairs: int, mtu: int, rate: int, seconds: float) -> Row:
    """One row of the table."""
    with ExitStack() as stack:
        hosts = [Namespace(stack) for _ in range(2 * pairs)]
        made = kernel(hosts, rate, mtu) if fabric == "kernel" else user(hosts, rate, mtu, *NICS[fabric])
        process = stack.enter_context(made)
        for number, host in enumerate(hosts):
            host.settle(address(number))
        before, busy = process.stats() if process else None, busy_s()
        answers = streams(hosts, seconds)
        busy = busy_s() - busy
        rates = [answer["sum_received"]["bits_per_second"] / 8e6 for answer in answers]
        row = Row(
            fabric,
            mtu,
            pairs,
            mb_s=sum(rates),
            mb_s_least=min(rates),
            line_mb_s=pairs * rate / 8e6 * (mtu - 52) / (mtu + 38),
            retransmits=sum(answer["sum_sent"]["retransmits"] for answer in answers),
            machine_cpus=busy / seconds,
        )
        if process and before:
            after = process.stats()
            row.fabric_cpus = (after["cpu_us"] - before["cpu_us"]) / 1e6 / seconds
            row.late_turns = after["lag"]["late_turns"] - before["lag"]["late_turns"]
        return row


def main() -> int:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.fabric", description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--mtu", type=int, nargs="+", default=[1500, 9000])
    parser.add_argument("--rate", type=int, default=10**9, help="bits per second of every line")
    parser.add_argument("--seconds", type=float, default=3.0, help="time of one measurement")
    parser.add_argument("--fabric", nargs="+", default=["kernel", *NICS], choices=["kernel", *NICS])
    parser.add_argument("--json", type=Path, help="write the results there too")
    options = parser.parse_args()
    rows = []
    print(
        f"{'fabric':<20} {'MTU':>5} {'pairs':>5} {'MB/s':>7} {'line':>7} {'least':>6} {'retr':>5} {'CPUs':>5}"
        f" {'own':>5} {'late':>5}"
    )
    for mtu in options.mtu:
        for pairs in options.pairs:
            for fabric in options.fabric:
                row = measure(fabric, pairs, mtu, options.rate, options.seconds)
                rows.append(asdict(row))
                own = f"{row.fabric_cpus:5.2f} {row.late_turns:5}" if row.fabric_cpus is not None else ""
                figures = f"{row.mb_s:7.1f} {row.line_mb_s:7.1f} {row.mb_s_least:6.1f} {row.retransmits:5}"
                print(f"{fabric:<20} {mtu:5} {pairs:5} {figures} {row.machine_cpus:5.2f} {own}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
