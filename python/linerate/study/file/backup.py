"""[workload.backup] of a study file: a phase of an image backup as a workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linerate.backup import CLUSTER_BYTES, BackupRequest, BackupSpec
from linerate.settings import model_field
from linerate.study.file.model import BackupTable, StudyFile
from linerate.study.model import BackupWorkload, San, Workload
from linerate.toml_lines import Key
from linerate.workload import RunSpec, VolumeSpec

IMAGE = "image"
"""The volume's name in runs."""
_STAND_IN = "smb://127.0.0.1/share/stand-in"
Unfit = tuple[Key, str, str]


def backup_of(table: BackupTable) -> BackupWorkload:
    """The phase, and the data that it moves."""
    data = BackupSpec(
        image_bytes=table.image,
        used_percent=table.used_percent,
        changed_percent=table.changed_percent,
        transfer_bytes=table.transfer,
        flush_bytes=table.flush,
    )
    return BackupWorkload(phase=table.phase, data=data)


def spec_of(name: str, backup: BackupWorkload, elapsed_s: float) -> RunSpec:
    """What the phases read and write, in the form of a run."""
    image = VolumeSpec(name=IMAGE, url=_STAND_IN)
    spec = BackupRequest(backup.data, image).run_spec()
    return spec.model_copy(update={"name": name, "warmup_s": 0.0, "elapsed_s": elapsed_s})


def unfit_backups(file: StudyFile, workloads: Sequence[Workload], sans: Sequence[San]) -> Iterator[Unfit]:
    """What is wrong with the image backups of a study: key, what, what is right."""
    for index, table in enumerate(file.workload):
        key: Key = ("workload", index, "backup")
        if table.backup is None:
            continue
        for name in ("image", "transfer"):
            if getattr(table.backup, name) % CLUSTER_BYTES or not getattr(table.backup, name):
                yield (*key, name), "not a multiple of 64 KiB", 'write whole clusters, "128m"'
        if table.file is not None or table.lan:
            yield key, "an image backup, and a file or LAN streams", "give each a workload of its own"
        san = next((one for one in sans if one.name == table.san), sans[0])
        if san.topology is None or san.clock == "virtual":
            what = f"{san.name} is no virtual SAN with a network"
            yield key, what, "name a topology; `linerate backup-load` does it on volumes that exist"
        if file.scale is not None or table.warm_up == "steady":
            yield key, "an image backup has neither a search nor a warm-up", "leave them out"
    settings = {name for case in (file.baseline, *file.case) for name in case.settings}
    ours = sorted(name for name in settings if (field := model_field(name)) and field.part == "backup")
    if ours and any(workload.backup is None for workload in workloads):
        yield (
            ("baseline", "settings"),
            f"{ours[0]} is of image backups alone",
            "use [workload.backup] everywhere",
        )
