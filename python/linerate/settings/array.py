"""Settings of the arrays of a virtual SAN: their disks, RAID sets and replication.

Disk settings apply to every array with disks. An array whose disks change is started again with empty disks.
"""

from __future__ import annotations

from typing import get_args

from linerate.array.storage import Drive
from linerate.san import RAID_LEVELS
from linerate.setting import Choice, Number, OnOff
from linerate.settings.san_setting import AS_BUILT, ModelField, SanSetting, size

REPLICATION = "array.replication"
CPU = "array.cpu_percent"
_DISKS_MAX = 1024
_SECTORS = Choice(("512", "4096"))

SETTINGS = (
    SanSetting(
        name="array.raid_level",
        title="RAID level",
        applier="array",
        kind=Choice(RAID_LEVELS),
        default=AS_BUILT,
        field=ModelField("storage", "raid_level"),
        doc="""The level of each RAID set. It decides how many disks may fail, how much capacity is left, and
        how many disk I/Os one write costs.""",
    ),
    SanSetting(
        name="array.disks",
        title="Disks",
        applier="array",
        kind=Number("disks", 1, _DISKS_MAX),
        default=AS_BUILT,
        field=ModelField("storage", "disks"),
        doc="""The number of disks of an array, hot spares included. The RAID sets share them equally.""",
    ),
    SanSetting(
        name="array.spares",
        title="Hot spares",
        applier="array",
        kind=Number("disks", 0, _DISKS_MAX),
        default=AS_BUILT,
        field=ModelField("storage", "spares"),
        doc="""The number of hot spares of each RAID set. A spare holds no data until another disk fails.""",
    ),
    SanSetting(
        name="array.groups",
        title="RAID groups",
        applier="array",
        kind=Number("groups", 2, 32),
        default=AS_BUILT,
        field=ModelField("storage", "groups"),
        doc="""The number of parts of each RAID 50 or RAID 60 set. Each part has its own parity. Other levels
        ignore it.""",
    ),
    SanSetting(
        name="array.chunk",
        title="Chunk size",
        applier="array",
        kind=size("64k"),
        default=AS_BUILT,
        field=ModelField("storage", "chunk_bytes"),
        doc="""The number of consecutive bytes on one disk of a RAID set. I/Os up to this size need one disk;
        full-stripe writes need the chunk times the number of data disks.""",
    ),
    SanSetting(
        name="array.disk_model",
        title="Disk model",
        applier="array",
        kind=Choice(get_args(Drive)),
        default=AS_BUILT,
        field=ModelField("storage", "model"),
        doc="""The drive that each disk behaves like. Without a model disks are as fast as memory.""",
    ),
    SanSetting(
        name="array.disk_size",
        title="Disk size",
        applier="array",
        kind=size("600g"),
        default=AS_BUILT,
        field=ModelField("storage", "disk_bytes"),
        doc="""The capacity of each disk. A disk that is smaller than its model still has the full seek range
        and all zones of that drive.""",
    ),
    SanSetting(
        name="array.disk_sector_bytes",
        title="Disk sector",
        applier="array",
        kind=_SECTORS,
        default=AS_BUILT,
        field=ModelField("storage", "disk_sector_bytes", int),
        doc="""The logical sector size of the disks in bytes. An array that shows a smaller sector to hosts
        must read before it writes a part of a disk sector.""",
    ),
    SanSetting(
        name="array.sector_bytes",
        title="Volume sector",
        applier="array",
        kind=_SECTORS,
        default=AS_BUILT,
        field=ModelField("storage", "sector_bytes", int),
        doc="""The logical sector size in bytes that hosts see. I/O smaller than a sector is not possible.""",
    ),
    SanSetting(
        name="array.initialise",
        title="RAID initialisation",
        applier="array",
        kind=Choice(("assume_clean", "background")),
        default=AS_BUILT,
        field=ModelField("storage", "initialise"),
        doc="""background computes parity while the case runs, as after a set is created, and takes disk time
        from the hosts. assume_clean starts with correct parity.""",
    ),
    SanSetting(
        name=CPU,
        title="CPU of an array",
        applier="array",
        kind=Number("percent of one CPU", 1, 6400),
        default="all",
        doc="""The CPU time that the processes of all arrays get together. It makes a small NAS of a fast machine.
        It needs control groups (v1 or v2) with the CPU controller, and root; elsewhere the case is not applicable.""",
    ),
    SanSetting(
        name=REPLICATION,
        title="Replication",
        applier="array",
        kind=OnOff(),
        default="off",
        doc="""on: while the case runs, the first array copies all its volumes to the second array again and
        again. Both arrays need a pool.""",
    ),
)
