"""`--virtual-time`: the runs of a workload, computed on the modelled disks of an array file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from linerate.array import ArrayConfig, load_array_file
from linerate.errors import UserError
from linerate.run import ArrayWatch, Load, SimulatedLoad
from linerate.volumes import Cleared, Consent, Look, clear, this_process, virtual
from linerate.workload import RunSpec, StreamSpec
from linerate.workload.url import array_url


@dataclass(frozen=True, slots=True)
class VirtualTime:
    """An array that is computed and not run."""

    array: ArrayConfig

    @classmethod
    def of(cls, file: Path | None, hosts: str | None) -> Self | None:
        """From the command line. Raises UserError."""
        if file is None:
            return None
        if hosts is not None:
            raise UserError("--virtual-time and --hosts", "in virtual time there are no hosts: leave one out")
        return cls(load_array_file(file))

    def targets(self, targets: Sequence[str], maps: Sequence[str]) -> Sequence[str]:
        """The volumes in the order of the file, unless the user says where the workload's volumes are."""
        if targets or maps:
            return targets
        return [array_url(volume.name) for target in self.array.targets for volume in target.volumes]

    def look(self, spec: RunSpec, names: Collection[str]) -> Sequence[Look]:
        """A computed array holds nothing, and its volumes have sizes. A `linerate.run.Loader`, with `start`."""
        sizes_bytes = self._sizes_bytes(spec, names)
        looks = virtual(spec, names)
        return [look.model_copy(update={"size_bytes": sizes_bytes.get(look.volume)}) for look in looks]

    def hosts_of(self, spec: RunSpec) -> Mapping[str, Sequence[str]]:
        """There are no hosts."""
        return this_process(spec)

    def _sizes_bytes(self, spec: RunSpec, names: Collection[str]) -> dict[str, int]:
        """Of the volumes as a whole: those of RAID sets follow from their disks."""
        whole = [volume for volume in spec.volumes if volume.name in names]
        if not whole:
            return {}
        asked = spec.model_copy(
            update={
                "volumes": tuple(volume.model_copy(update={"size_bytes": None}) for volume in whole),
                "streams": (StreamSpec(name="look", volumes=tuple(volume.name for volume in whole)),),
            }
        )
        load = self.start(clear([asked], virtual, Consent.nothing()).of(asked))
        load.stop()
        load.finish()
        return {volume["name"]: volume["capacity_bytes"] for volume in load.facts()["volumes"]}

    def start(self, cleared: Cleared) -> Load:
        """Starts the load of a step on an array that is new. Raises LinerateError."""
        return SimulatedLoad(cleared, self.array.seam_json())

    def watch(self, load: Load) -> ArrayWatch:
        """What the disks count, on the load's own clock."""
        if not isinstance(load, SimulatedLoad):
            raise TypeError(f"{load!r} does not run in virtual time")
        return ArrayWatch(lambda: {self.array.name: load.storage()}, lambda: load.now_s)
