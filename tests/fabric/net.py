"""Hosts of a small network in one process: a namespace each, sockets made inside them, and a fabric in between."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from linerate._core import Fabric
from linerate.lab import system
from linerate.lab.fabric.change import ChangeSpec
from linerate.lab.fabric.spec import (
    FabricSpec,
    InterfaceSpec,
    NicSpec,
    PortSpec,
    SwitchSettings,
    SwitchSpec,
    TrunkSpec,
    WireSpec,
)

T = TypeVar("T")


def in_thread(work: Callable[[], T]) -> T:
    """What `work` gives in a thread of its own, which may change its namespace."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Host:
    """A network namespace; its interface is `p0`, its address 10.9.0.NUMBER."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.address = f"10.9.0.{number}"
        self.netns = in_thread(system.new_network)

    @property
    def path(self) -> str:
        """Where the fabric finds the namespace."""
        return f"/proc/self/fd/{self.netns}"

    def inside(self, work: Callable[[], T]) -> T:
        """What `work` gives inside the namespace."""

        def enter() -> T:
            system.setns(self.netns, system.CLONE_NEWNET)
            return work()

        return in_thread(enter)

    def command(self, *arguments: str) -> str:
        """Output of a command inside."""
        run = partial(subprocess.run, arguments, capture_output=True, text=True, check=True)
        return str(self.inside(run).stdout)

    def socket(self, kind: socket.SocketKind) -> socket.socket:
        """An IPv4 socket of this host; it may be used from anywhere."""
        return self.inside(lambda: socket.socket(socket.AF_INET, kind))


class Net:
    """Hosts on one switch, each with a port `h1`, `h2`, ... of the same kind.

    With `trunk_links` there are two switches joined by a trunk `isl`, and hosts of even numbers are on the second.
    """

    def __init__(
        self,
        hosts: int = 2,
        wire: WireSpec | None = None,
        nic: NicSpec | None = None,
        switch: SwitchSettings | None = None,
        mtu: int = 1500,
        vlans: Mapping[int, int] | None = None,
        links: int = 1,
        trunk_links: int = 0,
    ) -> None:
        self.hosts = [Host(number) for number in range(1, hosts + 1)]
        ports = tuple(
            PortSpec(
                name=f"h{host.number}",
                switch="sw2" if trunk_links and host.number % 2 == 0 else "sw1",
                links=links,
                wire=wire or WireSpec(),
                nic=nic or NicSpec(),
                interfaces=(
                    InterfaceSpec(
                        netns=host.path, interface="p0", mtu=mtu, vlan=(vlans or {}).get(host.number, 0)
                    ),
                ),
            )
            for host in self.hosts
        )
        names = ("sw1", "sw2") if trunk_links else ("sw1",)
        switches = tuple(SwitchSpec(name=name, settings=switch or SwitchSettings()) for name in names)
        trunks = (TrunkSpec(name="isl", a="sw1", b="sw2", links=trunk_links),) if trunk_links else ()
        self.spec = FabricSpec(switches=switches, ports=ports, trunks=trunks, seed=1)
        self.fabric = Fabric.start(self.spec.model_dump_json())
        for host in self.hosts:
            host.command("ip", "address", "add", f"{host.address}/24", "dev", "p0")
            host.command("ip", "link", "set", "p0", "up")

    def __enter__(self) -> Net:
        return self

    def __exit__(self, *_: object) -> None:
        self.fabric.stop()

    def change(self, change: ChangeSpec) -> int:
        """Changes the fabric while it runs; when it did, as of `time.monotonic_ns`."""
        return self.fabric.change(change.model_dump_json(exclude_unset=True))

    def port(self, number: int) -> dict[str, Any]:
        """Counters of a host's port."""
        return dict(self.fabric.stats()["ports"][f"h{number}"])

    def trunk(self) -> dict[str, Any]:
        """Counters of the trunk."""
        return dict(self.fabric.stats()["trunks"]["isl"])

    def echo(self) -> Callable[..., float | None]:
        """A function that sends a datagram (of 100 bytes, or so many) from host 1 to host 2 and back.

        It gives the seconds, or None if nothing came back.
        """
        near, far = (host.socket(socket.SOCK_DGRAM) for host in self.hosts[:2])
        far.bind((self.hosts[1].address, 7))
        near.settimeout(1.0)
        threading.Thread(target=_echo, args=(far,), daemon=True).start()
        return lambda size=100: _ask(near, (self.hosts[1].address, 7), b"x" * size)

    def transfer(self, data: bytes, sender: int = 1, receiver: int = 2) -> bytes:
        """Sends bytes over TCP; what has arrived."""
        source, sink = self.hosts[sender - 1], self.hosts[receiver - 1]
        listener, client = sink.socket(socket.SOCK_STREAM), source.socket(socket.SOCK_STREAM)
        with listener, client:
            listener.bind((sink.address, 0))
            listener.listen()
            client.settimeout(20)
            client.connect(listener.getsockname())
            connection, _ = listener.accept()
            connection.settimeout(20)
            writer = threading.Thread(target=_send, args=(client, data))
            writer.start()
            with connection:
                received = b"".join(iter(lambda: connection.recv(1 << 20), b""))
            writer.join()
            return received

    def fill_links(self, data: bytes, frames: Callable[[], list[int]]) -> None:
        """Sends over new connections until each link has carried more than 100 frames: the hash of a port decides."""
        # Each port misses a link with one chance in two: together less than one in 10^9.
        for _ in range(30):
            assert self.transfer(data) == data
            if min(frames()) > 100:
                return
        raise AssertionError(f"a link of the team stays idle: {frames()} frames")


def _echo(server: socket.socket) -> None:
    while True:
        data, sender = server.recvfrom(65_536)
        server.sendto(data, sender)


def _ask(client: socket.socket, address: tuple[str, int], data: bytes) -> float | None:
    began = time.perf_counter()
    try:
        client.sendto(data, address)
        answer, _ = client.recvfrom(65_536)
    except TimeoutError:
        return None
    assert answer == data
    return time.perf_counter() - began


def _send(client: socket.socket, data: bytes) -> None:
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
