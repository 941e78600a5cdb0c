"""A run of file system workloads as results show it: its structures as volumes, its operations as streams."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.workload.files.spec import READING, FileOp, FileStreamSpec, FileWorkSpec, StructureSpec
from linerate.workload.spec import SizeMix, StreamSpec, VolumeSpec
from linerate.workload.url import is_share


def volume_of(index: int, structure: StructureSpec, works: Sequence[FileWorkSpec]) -> VolumeSpec:
    """A structure as results show it."""
    mine = [work for work in works if index in (work.structure, work.target)]
    return VolumeSpec(
        name=structure.name,
        url=structure.anchor if is_share(structure.anchor) else f"file:{structure.anchor}",
        user=structure.user,
        secret=structure.secret,
        outstanding=sum(work.threads for work in mine) or 1,
        direct=any(work.direct for work in mine),
    )


_WITH: dict[FileOp, tuple[FileOp, ...]] = {
    "read": ("open", "close"),
    "write": ("open", "close", "create"),
    "create": ("open", "close"),
    "open": ("close",),
    "close": ("open",),
    "copy": ("read", "write", "open", "close", "create", "delete"),
    "move": ("read", "write", "open", "close", "create", "delete"),
}
"""What an operation brings with it."""


def streams_of(
    works: Sequence[FileWorkSpec], structures: Sequence[StructureSpec]
) -> list[tuple[FileStreamSpec, StreamSpec]]:
    """The operations of each workload, those that were asked for first: as the data plane counts them, and as results
    show them. Names are unique."""
    streams: list[tuple[FileStreamSpec, StreamSpec]] = []
    taken: set[str] = set()
    for index, work in enumerate(works):
        asked: tuple[FileOp, ...] = (work.operation,)
        if work.read_percent is not None:
            asked = ("read", "write")
        elif work.name == "format":
            asked = ("write", "mkdir", "rmdir", "delete")
        more = tuple(
            op for op in dict.fromkeys(op for one in asked for op in _WITH.get(one, ())) if op not in asked
        )
        for operation in (*asked, *more):
            structure = structures[work.structure_of(operation)].name
            name = f"{work.name} {operation}"
            if name in taken:
                name = f"{work.name} {structure} {operation}"
            if name in taken:
                name = f"{work.name} {structure} {index + 1} {operation}"
            taken.add(name)
            sizes = SizeMix(parts=work.sizes) if operation in ("read", "write") else SizeMix.one(4096)
            streams.append(
                (
                    FileStreamSpec(name=name, workload=index, operation=operation),
                    StreamSpec(
                        name=name,
                        volumes=(structure,),
                        sizes=sizes,
                        read_percent=100.0 if operation in READING else 0.0,
                        random_percent=100.0 if work.random_io else 0.0,
                    ),
                )
            )
    return streams
