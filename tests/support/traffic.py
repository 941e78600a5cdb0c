"""Traffic between the hosts of a lab, made by programs that run inside them."""

from __future__ import annotations

import json
import subprocess
import sys

from linerate.lab import Lab

MIB = 1 << 20

SEND = """
import json, socket, sys, time
address, size = sys.argv[1], int(sys.argv[2])
with socket.create_connection((address, 7000), timeout=20) as link:
    start = time.monotonic()
    link.sendall(bytes(size))
    link.shutdown(socket.SHUT_WR)
    link.recv(1)
    print(json.dumps(time.monotonic() - start))
"""

SINK = """
import socket
with socket.create_server(("0.0.0.0", 7000)) as server:
    print("listening", flush=True)
    link, _ = server.accept()
    while link.recv(1 << 20):
        pass
    link.sendall(b"x")
    link.close()
"""

BURST = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    sender.sendto(bytes(1400), (sys.argv[1], 9))
"""


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, words)]


def address_of(lab: Lab, host: str) -> str:
    return lab.topology.node(host).interfaces[0].address


def transfer_s(lab: Lab, size_bytes: int) -> float:
    """Seconds that a TCP transfer from h1 to h2 takes."""
    with subprocess.Popen(lab.inside("h2", python(SINK)), stdout=subprocess.PIPE) as sink:
        assert sink.stdout is not None
        assert sink.stdout.readline() == b"listening\n"
        sent = lab.execute("h1", python(SEND, address_of(lab, "h2"), size_bytes), timeout_s=60)
    assert sent.returncode == 0, sent.stderr
    return float(json.loads(sent.stdout))
