"""The SMB client against Samba's server: CPU time of the client per I/O, and of signatures beside hashing alone.

The limit is a bare TCP client that receives and sends as many bytes at the same rate, without SMB.

The client waits as it does by default: it polls for a short time before it sleeps. Polls that found nothing are no CPU
time of an I/O; their share is printed beside the figure. A client that sleeps at once is measured beside the bare one.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from linerate.lab.supervisor import smbd

from . import processes
from .cases import VOLUME_BYTES, Result, Setting, skipped
from .processes import (
    CLIENT_CPU,
    RELEASE,
    SERVER_CPU,
    SHARED_MEMORY,
    SMB_PASSWORD,
    SMB_USER,
    Server,
    Shape,
)

READY_S = 10.0
LOOPBACK_ONLY = "interfaces = 127.0.0.1\nbind interfaces only = yes\n"
SMALL = (
    Shape("SMB: 8K random read, depth 32", 8192, 32, wait="auto"),
    Shape("SMB: 8K random write, depth 32", 8192, 32, read_percent=0, wait="auto"),
)
LARGE = (
    Shape("SMB: 1M sequential read, depth 8", 1 << 20, 8, random_percent=0, wait="auto"),
    Shape("SMB: 1M sequential write, depth 8", 1 << 20, 8, read_percent=0, random_percent=0, wait="auto"),
)
MOST_US = {8192: 6.0, 1 << 20: 150.0}
"""Client CPU time of an I/O without signatures, by its length. libsmb2 took 13 us for 8 KiB on such a machine."""
BARE_MOST = 1.5
"""Client CPU time of an I/O over that of a bare TCP client, both asleep. A ring has one system call more."""
SIGNED_MOST = 1.3
"""Client CPU time of a signed I/O over that of hashing its data alone."""
SIGNATURES = {"2.1": "HMAC-SHA256", "3.0.2": "AES-CMAC", "3.1.1": "AES-GMAC"}
"""The algorithm of each dialect."""


def smb(setting: Setting) -> Iterator[Result]:
    """Client CPU per I/O over the bar in microseconds, then signed I/Os over hashing alone."""
    missing = [tool for tool in ("unshare", "smbd", "pdbedit") if not _tool(tool)]
    if missing:
        yield skipped("SMB client", f"{missing[0]} is not installed (Debian package samba)")
        return
    with samba(setting) as server:
        for shape in (*SMALL, *LARGE):
            yield _beside(setting, shape, server)
        for shape in (*SMALL, *LARGE):
            yield _beside_bare(setting, replace(shape, wait="block"), server)
        for dialect, algorithm in SIGNATURES.items():
            for shape in LARGE:
                signed = replace(shape, smb={"signing": "on", "dialect": dialect})
                ratios = tuple(
                    _client_us(setting, signed, server) / _hash_us(shape.size_bytes, algorithm)
                    for _ in range(setting.rounds)
                )
                name = f"{shape.name}, signed by {algorithm}: client CPU / hashing"
                yield Result(name, SIGNED_MOST, ratios, at_most=True)


def _beside(setting: Setting, shape: Shape, server: Server) -> Result:
    """Client CPU time per I/O over the most that its length may take."""
    most_us = MOST_US[shape.size_bytes]
    taken = [
        processes.measure(setting.directory, shape, server, setting.seconds) for _ in range(setting.rounds)
    ]
    ratios = tuple(measure.client_cpu_us / most_us for measure in taken)
    polled = statistics.median(measure.client_polled for measure in taken)
    name = f"{shape.name}: client CPU / {most_us:.0f} us"
    return Result(name, 1.0, ratios, at_most=True, note=f"polls: {polled:.0%} of the time")


def _beside_bare(setting: Setting, shape: Shape, server: Server) -> Result:
    """Client CPU time per I/O over that of a bare TCP client, whose server answers one by one at the same rate."""
    pairs: list[tuple[float, float]] = []
    answer_us = 0.0
    # The first round only shows how long an answer of the bare server takes by itself.
    for attempt in range(setting.rounds + 1):
        ours = processes.measure(setting.directory, shape, server, setting.seconds)
        work_us = max(1e6 / ours.iops - answer_us, 1.0)
        bare = processes.measure_raw(
            shape, setting.seconds, VOLUME_BYTES, work_us=round(work_us), own_buffers=True
        )
        answer_us = max(1e6 / bare.iops - work_us, 0.0)
        if attempt > 0:
            pairs.append((ours.client_cpu_us, bare.client_cpu_us))
    name = f"{shape.name}, asleep: client CPU / bare TCP client at the same rate"
    ours_us, bare_us = (statistics.median(of_one) for of_one in zip(*pairs, strict=True))
    note = f"{ours_us:.1f} us / {bare_us:.1f} us"
    return Result(name, BARE_MOST, tuple(ours / bare for ours, bare in pairs), at_most=True, note=note)


def _client_us(setting: Setting, shape: Shape, server: Server) -> float:
    return processes.measure(setting.directory, shape, server, setting.seconds).client_cpu_us


def _hash_us(size_bytes: int, algorithm: str) -> float:
    """Time of the signature over the data of one I/O, without a network."""
    command = ["taskset", "-c", str(CLIENT_CPU), str(RELEASE / "bench-signing"), algorithm, str(size_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["hash_us"])


@contextmanager
def samba(setting: Setting) -> Iterator[Server]:
    """Samba's server with one share in memory and one file on it, which was written once."""
    with tempfile.TemporaryDirectory(prefix="linerate-bench-", dir=SHARED_MEMORY) as shared:
        (Path(shared) / "volume").write_bytes(b"\x5a" * VOLUME_BYTES)
        port = processes.free_port()
        state = setting.directory / "samba"
        configuration = smbd.write_configuration(
            state, port, LOOPBACK_ONLY, {"share": (Path(shared), "read only = no\n")}
        )
        unshare = _tool("unshare")
        subprocess.run(
            smbd.add_user_command(unshare, _tool("pdbedit"), configuration, SMB_USER),
            input=f"{SMB_PASSWORD}\n" * 2,
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        command = smbd.serve_command(unshare, _tool("smbd"), configuration)
        process = processes.pinned(SERVER_CPU, [*command], start_new_session=True, stdout=subprocess.DEVNULL)
        try:
            _wait_until_ready(process, port)
            yield Server(process, [f"smb://127.0.0.1:{port}/share/volume"])
        finally:
            # Its processes for connections end with it only after this signal.
            process.terminate()
            process.wait(READY_S)


def _tool(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""


def _wait_until_ready(process: subprocess.Popen[str], port: int) -> None:
    deadline_s = time.monotonic() + READY_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError("smbd does not come up") from None
            time.sleep(0.02)
