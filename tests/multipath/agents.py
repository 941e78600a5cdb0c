"""Programs that stay inside the nodes of a lab and do small things at once when told: send, count, read a file."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from linerate.lab import Lab

from tests.support.traffic import address_of, python

ARRIVE_S = 0.4
"""A datagram that has not come by then has been lost."""
AGAIN_S = 15.0
"""A cable that was plugged in has a carrier at both ends by then, and neighbours have found each other."""

AGENT = """
import json, pathlib, socket, sys, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", 7009))
def send(address, count, size):
    for _ in range(count):
        udp.sendto(bytes(size), (address, 7009))
def heard(count, within_s):
    got, deadline = 0, time.monotonic() + within_s
    while got < count and (left := deadline - time.monotonic()) > 0:
        udp.settimeout(left)
        try:
            udp.recv(65536)
        except TimeoutError:
            break
        got += 1
    return got
def read(path):
    return pathlib.Path(path).read_text().strip()
def forget():
    udp.setblocking(False)
    try:
        while udp.recv(65536):
            pass
    except BlockingIOError:
        pass
    udp.setblocking(True)
print("ready", flush=True)
for line in sys.stdin:
    name, *words = json.loads(line)
    print(json.dumps(globals()[name](*words)), flush=True)
"""


class Agent:
    """A program inside a node."""

    def __init__(self, lab: Lab, node: str) -> None:
        self.node = node
        self._process = subprocess.Popen(
            lab.inside(node, python(AGENT)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def do(self, what: str, *words: object) -> Any:
        """Has it done, and gives the result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, *words]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def carrier(self, interface: str = "p0") -> bool:
        """The interface has one."""
        return bool(self.do("read", f"/sys/class/net/{interface}/carrier") == "1")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


class Agents:
    """Those of a lab's hosts."""

    def __init__(self, lab: Lab, agents: dict[str, Agent]) -> None:
        self.lab = lab
        self._agents = agents

    def __getitem__(self, node: str) -> Agent:
        return self._agents[node]

    def passes(self, source: str, sink: str, size_bytes: int = 1400) -> bool:
        """Datagrams of this size arrive: all of them, or none."""
        self._agents[sink].do("forget")
        self._agents[source].do("send", address_of(self.lab, sink), 5, size_bytes)
        got = self._agents[sink].do("heard", 5, ARRIVE_S)
        assert got in (0, 5)
        return bool(got)

    def meet(self) -> None:
        """Waits until every pair of hosts has found each other."""
        deadline = time.monotonic() + AGAIN_S
        for source in self._agents:
            for sink in self._agents:
                while source != sink and not self._arrives(source, sink):
                    assert time.monotonic() < deadline, f"{source} does not reach {sink}"

    def _arrives(self, source: str, sink: str) -> bool:
        self._agents[sink].do("forget")
        self._agents[source].do("send", address_of(self.lab, sink), 1, 100)
        return bool(self._agents[sink].do("heard", 1, ARRIVE_S))


@contextmanager
def agents_in(lab: Lab) -> Iterator[Agents]:
    """One agent in every host of a lab."""
    with ExitStack() as stack:
        yield Agents(
            lab, {host.name: stack.enter_context(Agent(lab, host.name)) for host in lab.topology.hosts}
        )
