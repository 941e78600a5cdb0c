"""The array processes, each inside its array's namespace, so that its CPU and its TCP are its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from linerate.array import ArrayConfig, EmbeddedArray, Portal, PortalGroup, Target, Volume
from linerate.lab.keeper.nodes import Node
from linerate.san import ISCSI_PORT, Array


def array_config(array: Array) -> ArrayConfig:
    """What the array of a topology serves: one target, memory volumes, on every address that its ports have or get."""
    volumes = tuple(
        Volume(lun=volume.lun, name=volume.name, size_bytes=volume.size_bytes) for volume in array.volumes
    )
    states = {port.portal_group: port.alua for port in array.ports}
    return ArrayConfig(
        name=array.name,
        portals=tuple(
            Portal(interface=interface.name, port=ISCSI_PORT, group=port.portal_group)
            for port in array.ports
            for interface in port.interfaces
        ),
        portal_groups=tuple(PortalGroup(tag=tag, alua=state) for tag, state in states.items()),
        targets=(Target(name=array.target, volumes=volumes),),
    )


def start_arrays(arrays: tuple[Array, ...], nodes: dict[str, Node]) -> dict[str, EmbeddedArray]:
    """Starts all arrays at once and waits until they serve. Raises HostError when one of them does not."""

    def start(array: Array) -> EmbeddedArray:
        # Only this thread moves, and its child is born where it is.
        with nodes[array.name].visit():
            return EmbeddedArray(array_config(array)).__enter__()

    if not arrays:
        return {}
    with ThreadPoolExecutor(len(arrays)) as pool:
        started = pool.map(start, arrays)
        return {array.name: process for array, process in zip(arrays, started, strict=True)}
