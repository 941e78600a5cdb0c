"""The worker process of one host: `python -m linerate.cluster.worker SCHEDULER NAME [ADDRESS]`.

It ends when its scheduler goes away or its standard input closes, whichever comes first: a host keeps no process of a
machine that has died.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from typing import Any

import dask
from distributed import Worker

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
_SCHEDULER_TIMEOUT_S = 30


async def serve(scheduler: str, name: str, address: str | None) -> None:
    """Serves until the scheduler or the parent is gone."""
    orphaned = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: _read(orphaned))
    with tempfile.TemporaryDirectory(prefix="linerate-worker-") as folder:
        worker = Worker(
            scheduler,
            name=name,
            host=address,
            nthreads=1,
            memory_limit=0,
            dashboard=False,
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


if __name__ == "__main__":
    dask.config.set(CONFIG)
    asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
