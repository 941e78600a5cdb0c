"""The worker process of one host: `python -m linerate.cluster.worker NAME`, its `Assignment` on standard input.

NAME is for people who list processes. It ends when its scheduler goes away or its standard input closes, whichever
comes first: a host keeps no process of a machine that has died.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import Any

import dask
from distributed import Worker

from linerate.cluster.ports import PortRange
from linerate.cluster.tls import Assignment
from linerate.errors import LinerateError

CONFIG: dict[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.comm.timeouts.connect": "15s",
    "distributed.comm.timeouts.tcp": "15s",
}
"""No work is moved, nothing is sampled, no memory is watched while a host measures."""
NO_PAGES = "127.0.0.1:0"
"""Dask always starts an HTTP server, here one without pages; outside of this machine its port cannot be reached."""
_SCHEDULER_TIMEOUT_S = 30


_LINE_BYTES_MAX = 1 << 16


async def serve(assignment: Assignment) -> None:
    """Serves until the scheduler or the parent is gone. Raises HostError if no port of its range is free."""
    ports = PortRange.parse(assignment.ports) if assignment.ports else None
    if ports is not None:
        ports.free(assignment.address)  # dask would tell less
    orphaned = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: _read(orphaned))
    with tempfile.TemporaryDirectory(prefix="linerate-worker-") as folder:
        worker = Worker(
            assignment.scheduler,
            name=assignment.name,
            host=assignment.address,
            port=ports.as_dask if ports is not None else None,
            security=assignment.security,
            nthreads=1,
            memory_limit=0,
            dashboard=False,
            dashboard_address=NO_PAGES,
            local_directory=folder,
            death_timeout=_SCHEDULER_TIMEOUT_S,
        )
        async with worker:
            ends = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(orphaned.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()


def _read(orphaned: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        orphaned.set()


def _assignment() -> Assignment:
    """The first line of standard input. Nothing beyond it is taken: its end is watched for."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_BYTES_MAX:
        if not (more := os.read(sys.stdin.fileno(), 4096)):
            break
        line += more
    try:
        return Assignment.of_line(line)
    except (ValueError, TypeError):  # they quote what they were given, which holds a key
        sys.exit("no assignment on standard input: a worker is started by `linerate run --hosts`")


if __name__ == "__main__":
    dask.config.set(CONFIG)
    try:
        asyncio.run(serve(_assignment()))
    except LinerateError as error:
        sys.exit(error.message)
