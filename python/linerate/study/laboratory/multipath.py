"""The paths of a case: which paths a study gives each volume, and how the run uses them.

Without `multipath.paths` a volume has the paths that its topology gives it, or its single one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate.san import Path, Topology, layout
from linerate.settings import PATHS, applied_by, find
from linerate.study.model import Settings
from linerate.workload import VolumeSpec
from linerate.workload.spec import PathSpec


def is_of_paths(name: str) -> bool:
    """Whether a setting needs volumes with several paths."""
    return applied_by(name) == "multipath"


def paths_of(topology: Topology, host: str, settings: Settings) -> Mapping[str, tuple[Path, ...]]:
    """`array.volume` -> the paths by which a host reaches it under these settings.

    A volume that no path reaches is left out. Raises UserError for a path that the topology does not have.
    """
    value = settings.get(PATHS)
    return layout(topology, host, None if value is None else find(PATHS).meaning(value))


def path_specs(paths: tuple[Path, ...], settings: Settings) -> tuple[PathSpec, ...]:
    """The paths as a run needs them; none for a single path without multipath settings."""
    if len(paths) < 2 and not any(is_of_paths(name) for name in settings):
        return ()
    return tuple(
        PathSpec(
            name=path.name,
            portal=path.portal,
            source_address=path.host_address,
            interface=path.host_interface,
            weight=path.weight,
            standby=path.standby,
        )
        for path in paths
    )


def multipathed(volume: VolumeSpec, options: Mapping[str, Any], of_path: Mapping[str, Any]) -> VolumeSpec:
    """The volume with these fields of its multipath options and of each of its paths."""
    return volume.model_copy(
        update={
            "multipath": volume.multipath.model_copy(update=options),
            "paths": tuple(path.model_copy(update=of_path) for path in volume.paths),
        }
    )
