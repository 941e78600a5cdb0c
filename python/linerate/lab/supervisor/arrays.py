"""The array processes, each inside its array's namespace, so that its CPU and its TCP are its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import ValidationError

from linerate.array import ArrayConfig, EmbeddedArray, Portal, PortalGroup
from linerate.errors import HostError, UserError
from linerate.lab.cpu.idle import WAIT
from linerate.lab.supervisor.nodes import NodeNamespace
from linerate.san import ISCSI_PORT, Array, Storage

TOUCH_S = 10.0
"""Longest wait for the memory of volumes. What is left is touched while the lab is up."""
_LOOK_S = 0.02
POOL = "p0"
"""The pool over all RAID sets, where there is one."""
_DISK, _SET = "d", "r"


def array_config(array: Array) -> ArrayConfig:
    """What the array of a topology serves: one target, its volumes, on every address that its ports have or get."""
    states = {port.portal_group: port.alua for port in array.ports}
    served: dict[str, Any] = {
        "name": array.name,
        "wait": WAIT,
        "portals": tuple(
            Portal(interface=interface.name, port=ISCSI_PORT, group=port.portal_group)
            for port in array.ports
            for interface in port.interfaces
        ),
        "portal_groups": tuple(PortalGroup(tag=tag, alua=state) for tag, state in states.items()),
        "targets": [{"name": array.target, "volumes": list(_volumes(array))}],
    }
    if array.storage is not None:
        served["storage"] = storage_config(array.storage)
    return ArrayConfig.model_validate(served)


def storage_config(storage: Storage) -> dict[str, Any]:
    """Disks, RAID sets and pool as the data plane takes them. The hot spares of a set are the last of its disks."""
    each = storage.disks // storage.sets
    names = [f"{_DISK}{number}" for number in range(storage.disks)]
    sets = []
    for number in range(storage.sets):
        of_set = names[number * each : (number + 1) * each]
        sets.append(
            {
                "name": f"{_SET}{number}",
                "level": storage.raid_level,
                "disks": of_set[: storage.members],
                "spares": of_set[storage.members :],
                "chunk_bytes": storage.chunk_bytes,
                "groups": storage.groups,
                "initialise": storage.initialise,
            }
        )
    disk = {
        "name": _DISK,
        "kind": "memory",
        "size_bytes": storage.disk_bytes,
        "sector_bytes": storage.disk_sector_bytes,
        "model": storage.model,
        "count": storage.disks,
    }
    pools = [{"name": POOL, "raid_sets": [one["name"] for one in sets]}] if storage.backing == "pool" else []
    return {"disks": [disk], "raid_sets": sets, "pools": pools}


def _volumes(array: Array) -> Iterator[dict[str, Any]]:
    """The volumes in memory, on RAID sets, one on each, or in the pool."""
    storage = array.storage
    for number, volume in enumerate(array.volumes):
        one: dict[str, Any] = {"lun": volume.lun, "name": volume.name}
        if storage is not None:
            one |= {"sector_bytes": storage.sector_bytes, "physical_sector_bytes": storage.sector_bytes}
        if storage is not None and storage.backing == "raid":
            yield {**one, "kind": "raid", "raid_set": f"{_SET}{number}"}
        elif storage is not None:
            yield {**one, "kind": "pool", "pool": POOL, "size_bytes": volume.size_bytes}
        else:
            yield {**one, "size_bytes": volume.size_bytes}


class Arrays:
    """The processes of a lab's iSCSI arrays."""

    def __init__(self, arrays: Sequence[Array], nodes: dict[str, NodeNamespace]) -> None:
        self._arrays = {array.name: array for array in arrays if array.kind == "iscsi"}
        self._nodes = nodes
        self._running: dict[str, EmbeddedArray] = {}

    def start(self) -> None:
        """Starts all at once and waits until they serve. Raises HostError when one of them does not."""
        if not self._arrays:
            return
        with ThreadPoolExecutor(len(self._arrays)) as pool:
            configs = [array_config(array) for array in self._arrays.values()]
            started = pool.map(self._started, self._arrays, configs)
            self._running = dict(zip(self._arrays, started, strict=True))

    def await_memory(self) -> None:
        """Waits until the arrays have the memory of their volumes: I/O of the first runs would wait for it."""
        until_s = time.monotonic() + TOUCH_S
        pause = threading.Event()
        for process in self._running.values():
            while process.stats()["untouched_bytes"] and time.monotonic() < until_s:
                pause.wait(_LOOK_S)

    def restart(self, name: str, storage: Storage) -> Storage:
        """Ends an array's process and starts one with other disks. Raises HostError, and UserError for disks that form
        no such sets; then the old ones serve."""
        before = self._arrays[name]
        wanted = before.model_copy(update={"storage": storage})
        try:
            config = array_config(wanted)
        except ValidationError as error:
            raise UserError(
                f"array {name}: {error.errors()[0]['msg']}", "change the array's storage"
            ) from error
        self._running.pop(name).__exit__(None, None, None)
        try:
            self._running[name] = self._started(name, config)
        except (HostError, UserError):
            self._running[name] = self._started(name, array_config(before))
            raise
        self.await_memory()
        self._arrays[name] = wanted
        return storage

    @property
    def pids(self) -> dict[str, int]:
        """Process ids, by array."""
        return {name: process.pid for name, process in self._running.items()}

    def page_faults(self) -> dict[str, int]:
        """Pages that the kernel had to give to each array or fetch for it so far."""
        return {name: process.page_faults() for name, process in self._running.items()}

    @property
    def storages(self) -> dict[str, Storage]:
        """The disks of every array that has any."""
        return {name: array.storage for name, array in self._arrays.items() if array.storage is not None}

    def reports(self) -> dict[str, Any]:
        """Counters of the disks, RAID sets and pools of every array that has any."""
        return {name: self._running[name].stats()["storage"] for name in self.storages}

    def manage(self, name: str, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Has an array carry out a management command. Raises what it refuses it with."""
        return self._running[name].manage(verb, **fields)

    def _started(self, name: str, config: ArrayConfig) -> EmbeddedArray:
        # Only this thread moves, and its child is born where it is.
        with self._nodes[name].visit():
            return EmbeddedArray(config).__enter__()
