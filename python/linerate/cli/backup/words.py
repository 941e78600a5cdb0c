"""The words of `backup-load`, by name: type, place on the command line, and help."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

NO_VOLUME = "null"


class ImageForm(StrEnum):
    """Kinds of images."""

    FIXED = "fixed"
    DYNAMIC = "dynamic"


Image = Annotated[
    str, Argument(metavar="URL", help="The image: smb://host/share/file, a path, or iscsi://host/target/lun.")
]
Size = Annotated[str, Option(metavar="SIZE", help="Size of the virtual disk: 4g.")]
_SOURCE = "The volume that backups read. null: their data are made in memory."
Source = Annotated[str, Option(metavar="URL", help=_SOURCE)]
_RESTORE_TO = "The volume that the restore writes. null: it reads and verifies only."
RestoreTo = Annotated[str, Option(metavar="URL", help=_RESTORE_TO)]
_KIND = "fixed: zeros are written from end to end. dynamic: the image grows as it is written."
KindOfImage = Annotated[ImageForm, Option(help=_KIND)]
Full = Annotated[bool, Option("--full/--no-full", help="Make a full backup.")]
Incrementals = Annotated[
    int, Option(metavar="N", min=0, max=1000, help="Incremental backups after the full one.")
]
Restore = Annotated[
    bool, Option("--restore/--no-restore", help="Read the image at the end, and verify all data.")
]
_USED = "Share of the source that is used."
Used = Annotated[float, Option(metavar="PERCENT", min=0, max=100, help=_USED)]
_CHANGED = "Share of the used data that changes before an incremental backup."
Changed = Annotated[float, Option(metavar="PERCENT", min=0, max=100, help=_CHANGED)]
Seed = Annotated[int, Option(metavar="N", min=0, help="Same seed, same data in the same places.")]
Transfer = Annotated[str, Option(metavar="SIZE", help="Longest read or write: 64k to 16m.")]
Block = Annotated[str, Option(metavar="SIZE", help="Block of the image: 1m to 256m.")]
WriteThrough = Annotated[
    bool, Option("--write-through", help="Each write is on stable storage before it is answered.")
]
Buffered = Annotated[
    bool, Option("--buffered", help="Local files and devices: through this host's page cache.")
]
Json = Annotated[bool, Option("--json", help="One JSON object at the end instead of text.")]
