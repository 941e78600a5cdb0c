"""What makes the I/Os of a step: the data plane of this host, or that of several hosts as if they were one."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from linerate import _core
from linerate.errors import LinerateError, UserError
from linerate.results import IntervalSample, TimedEvent, interval_from_core
from linerate.volumes import Cleared, Look, VolumeLock, look_here, refuse_shared, this_process, virtual
from linerate.workload import RunSpec
from linerate.workload.files import FilesLoadSpec
from linerate.workload.url import array_url


@dataclass(frozen=True, slots=True)
class LoadEnd:
    """How a load ended: the measured time as one interval, and what made it fail, if anything did.

    `events` are those that came after the last interval.
    """

    total: IntervalSample
    error: LinerateError | None = None
    events: tuple[TimedEvent, ...] = ()


class Load(Protocol):
    """A load that is going on. One thread pulls; every call answers Ctrl-C."""

    @property
    def spec(self) -> RunSpec:
        """What is carried out, with the names that the intervals use."""

    def facts(self) -> Mapping[str, Any]:
        """What was negotiated and read back."""

    def next_interval(self, timeout_s: float) -> IntervalSample | None:
        """The next interval, or None when the timeout passes or the load has ended (see `finished`)."""

    @property
    def finished(self) -> bool:
        """No further interval will come."""

    def stop(self) -> None:
        """Lets I/Os in flight finish and starts no more; returns at once."""

    def finish(self) -> LoadEnd:
        """Waits for the end."""


class Loader(Protocol):
    """Where loads run: this process, the hosts of a cluster, a virtual SAN, virtual time."""

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        """The contents of the named volumes, as their load generator sees them. Raises LinerateError, and UserError
        for two volumes of the run that are one."""

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """By volume, the hosts that load it; this process loads those that are not named."""

    def start(self, cleared: Cleared) -> Load:
        """Opens every volume and starts the load. Raises LinerateError."""


class Here:
    """Loads run in this process, on volumes that hold what they hold.

    Runs of file system workloads that check data know what those before them wrote.
    """

    def __init__(self) -> None:
        self._written = _core.WrittenFiles()

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        """See `Loader`."""
        return look_here(spec, names)

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """See `Loader`."""
        return this_process(spec)

    def start(self, cleared: Cleared) -> Load:
        """See `Loader`."""
        if isinstance(cleared.spec, RunSpec):
            _refuse_unknown_interfaces(cleared.spec)
        return self._opened(cleared)

    def _opened(self, cleared: Cleared) -> Load:
        if isinstance(cleared.spec, FilesLoadSpec):
            return FilesLoad(cleared.spec, self._written)
        return LocalLoad(cleared)


class VirtualSan(Here):
    """Loads run in this process, on volumes of a virtual SAN: nothing but loads has ever written there."""

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        """See `Loader`."""
        return virtual(spec, names)

    def start(self, cleared: Cleared) -> Load:
        """See `Loader`. Paths begin at interfaces of a host of the virtual SAN, which this process does not have."""
        return self._opened(cleared)


_Core = TypeVar("_Core", bound="_core.Run | _core.FilesRun")


class _CoreLoad(Generic[_Core]):
    """What a load of this process does, of blocks or of files."""

    _spec: RunSpec
    _core: _Core

    @property
    def spec(self) -> RunSpec:
        """As given."""
        return self._spec

    def facts(self) -> Mapping[str, Any]:
        """Of blocks: driver, workers, CPUs, and per volume its size, session and socket.

        Of files: threads, and per structure the size of its files.
        """
        return self._core.facts()

    def next_interval(self, timeout_s: float) -> IntervalSample | None:
        """See `Load`."""
        pulled = self._core.next_interval(timeout_s)
        return None if pulled is None else interval_from_core(pulled)

    @property
    def finished(self) -> bool:
        """See `Load`."""
        return self._core.finished

    def stop(self) -> None:
        """See `Load`."""
        self._core.stop()

    def finish(self) -> LoadEnd:
        """See `Load`."""
        summary = self._core.finish()
        return LoadEnd(interval_from_core(summary.total), summary.error)


class LocalLoad(_CoreLoad[_core.Run]):
    """The load of this process. Block devices that it writes to are held until it has ended."""

    def __init__(self, cleared: Cleared) -> None:
        self._spec = cleared.spec
        refuse_shared(self._spec)
        self._hold = VolumeLock(cleared.free)
        try:
            self._core = _core.Run.start(self._spec.seam_json())
        except BaseException:
            self._hold.release()
            raise

    def finish(self) -> LoadEnd:
        """See `Load`."""
        end = super().finish()
        self._hold.release()
        return end


def _refuse_unknown_interfaces(spec: RunSpec) -> None:
    """Raises UserError for a path that depends on the link of an interface that is not here: it would never fail."""
    here = {name for _, name in socket.if_nameindex()}
    for volume in spec.volumes:
        for path in volume.paths:
            if path.interface is not None and path.interface not in here:
                raise UserError(
                    f"volume {volume.name}: path {path.name}: this host has no interface {path.interface}",
                    f"name one of {', '.join(sorted(here))}, or write the local address of the path instead",
                )


class FilesLoad(_CoreLoad[_core.FilesRun]):
    """The load of a file system workload, in this process."""

    def __init__(self, spec: FilesLoadSpec, written: _core.WrittenFiles) -> None:
        self._spec = spec
        self._core = _core.FilesRun.start(spec.seam_json(), written)


class SimulatedLoad(_CoreLoad[_core.Run]):
    """A load straight onto the volumes of an array that is computed, in the modelled time of its disks.

    Volumes have URLs such as `array:v1`. `array_json` is the seam's JSON of an ArrayConfig.
    """

    def __init__(self, cleared: Cleared, array_json: str) -> None:
        self._spec = _written_through(cleared.spec, array_json)
        self._core = _core.Run.in_virtual_time(self._spec.seam_json(), array_json)
        self._now_s = 0.0

    @property
    def now_s(self) -> float:
        """The end of the interval that was given last, in seconds since the start."""
        return self._now_s

    def storage(self) -> Mapping[str, Any]:
        """What the disks, RAID sets, pools and volumes had counted by then."""
        return self._core.storage()

    def next_interval(self, timeout_s: float) -> IntervalSample | None:
        """See `Load`."""
        interval = super().next_interval(timeout_s)
        if interval is not None:
            self._now_s = interval.end_s
        return interval


def _written_through(spec: RunSpec, array_json: str) -> RunSpec:
    """Writes that complete when they are durable, as those of the array when it serves: on all of its volumes but such
    as have a write cache. Without this they would complete in the buffers of drives that have one."""
    served = [volume for target in json.loads(array_json)["targets"] for volume in target["volumes"]]
    cached = {array_url(volume["name"]) for volume in served if volume.get("write_cache")}
    volumes = tuple(
        volume if volume.url in cached else volume.model_copy(update={"durable_writes": True})
        for volume in spec.volumes
    )
    return spec.model_copy(update={"volumes": volumes})
