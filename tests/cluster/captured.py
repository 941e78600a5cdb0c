"""A program: two workers on the loopback of a namespace get a volume with a CHAP secret; every packet is kept and
searched. Prints JSON."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

from linerate.errors import LinerateError
from linerate.lab import enter

SECRET = "open-sesame-0123456789"
USER = "ali-baba-of-load1"
CONTROL = b"this is sent in the clear"
VOLUME = "iqn.2026-11.lab:forty-jars"
_ALL_PROTOCOLS = 0x0003  # ETH_P_ALL of <linux/if_ether.h>


class _Capture:
    """The packets of the loopback, from now on."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)
        self._packets: list[bytes] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _keep(self) -> None:
        while True:
            try:
                self._packets.append(self._socket.recv(1 << 17))
            except TimeoutError:
                if self._ended.is_set():
                    return

    def end(self) -> bytes:
        """All of it."""
        self._ended.set()
        self._thread.join()
        self._socket.close()
        return b"\0".join(self._packets)


def _say_in_the_clear() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(CONTROL)
        server.accept()[0].close()


def main() -> None:
    """Captures, loads, searches."""
    from linerate.cluster import Cluster, local_endpoint
    from linerate.workload import RunSpec

    from tests.support.cleared import cleared

    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    capture = _Capture()
    _say_in_the_clear()
    volume = {
        "name": "v",
        "url": f"iscsi://127.0.0.1:9/{VOLUME}/0",  # refused at once: the secret goes no further than the worker
        "user": USER,
        "secret": SECRET,
    }
    spec = RunSpec.model_validate(
        {"name": "secret", "volumes": [volume], "streams": [{"name": "s", "volumes": ["v"]}]}
    )
    error = ""
    with Cluster([local_endpoint("h1"), local_endpoint("h2")]) as cluster:
        assert SECRET in spec.seam_json(), "what the workers are told holds it"
        try:
            cluster.start(cleared(spec))
        except LinerateError as refused:
            error = refused.message
    seen = capture.end()
    found = {
        "in the clear on purpose": seen.count(CONTROL),
        "error": error,
        "tls records": seen.count(b"\x17\x03\x03"),  # application data, RFC 8446 section 5.1
        "user": seen.count(USER.encode()),
        "secret": seen.count(SECRET.encode()),
        "volume": seen.count(VOLUME.encode()),
        "private key": seen.count(b"PRIVATE KEY"),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    try:
        enter()
    except LinerateError as error:
        sys.exit(f"no right to build a lab: {error}")
    main()
