"""A SAN whose array is computed and not run: loads go straight onto its volumes, in the modelled time of its disks.

A workload with more volumes than the array has uses each of
them several times: volumes of several hosts that are parts of one RAID set.

There is no network, no host and no array process: only the disks and the layers above them in the array are
measured, the machine's own speed has no part in it, and minutes take seconds. It has the settings of loads and disks
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from linerate.host import SetUp
from linerate.lab.supervisor.arrays import array_config
from linerate.run import ArrayWatch, Load, SimulatedLoad, VirtualSan
from linerate.san import Topology
from linerate.study.laboratory.base import Measured
from linerate.study.laboratory.measure import LaboratoryRun, Placed, measure
from linerate.study.laboratory.settings import changed_topology, is_of_modelled_time
from linerate.study.model import Settings, SettingValue, Workload
from linerate.volumes import Cleared, Consent
from linerate.workload.url import array_url

NONE_IN_MODELLED_TIME = "in modelled time there is neither a network nor a host"


class ModelledSan:
    """Takes the place of a lab that is up."""

    def __init__(self, topology: Topology) -> None:
        self._as_built = topology
        self._settings: Settings = {}

    def facts(self) -> Mapping[str, Any]:
        """What a result should say about it."""
        return {"clock": "virtual", "topology": self._as_built.name, "network": "none"}

    def close(self) -> None:
        """Nothing is left of it between two runs."""

    def apply(self, settings: Settings) -> SetUp:
        """Holds the settings of loads and disks for the next runs, and refuses all others."""
        refused = {name: NONE_IN_MODELLED_TIME for name in settings if not is_of_modelled_time(name)}
        self._settings = {name: value for name, value in settings.items() if name not in refused}
        readback: dict[str, SettingValue | None] = dict(self._settings)
        return SetUp(readback, refused)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """Computes the run of the workload on an array that is new."""
        (array,) = changed_topology(self._as_built, self._settings).arrays
        asked = len(workload.spec.volumes) if workload.spec else 0
        dealt = islice(cycle(array.volumes), max(asked, len(array.volumes)))
        return measure(
            LaboratoryRun(
                workload,
                self._settings,
                tuple(Placed(array_url(volume.name)) for volume in dealt),
                directory,
                {**record, "facts": dict(self.facts())},
                Consent.nothing(),
                _Computed(array_config(array).seam_json()),
                arrays=partial(_watched, array.name),
            )
        )


class _Computed(VirtualSan):
    """Loads run in virtual time, each on an array that is new."""

    def __init__(self, array_json: str) -> None:
        self._array_json = array_json

    def start(self, cleared: Cleared) -> Load:
        """See `Loader`."""
        return SimulatedLoad(cleared, self._array_json)


def _watched(name: str, load: Load) -> ArrayWatch:
    assert isinstance(load, SimulatedLoad)
    return ArrayWatch(lambda: {name: load.storage()}, lambda: load.now_s)
