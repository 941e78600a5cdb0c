"""What a run of a file system workload does: structures of files, and what threads do to them.

`spec` is the model. A `FilesLoadSpec` is a `RunSpec` too, so a plan, a run directory and reports take it as any other
run: its volumes are the structures, its streams are the operations of each workload.
"""

from __future__ import annotations

from linerate.workload.files.spec import (
    FileOp,
    FileRateSpec,
    FilesLoadSpec,
    FilesRunSpec,
    FileStreamSpec,
    FileWorkSpec,
    FormatSpec,
    HostPart,
    StructureSpec,
)

__all__ = [
    "FileOp",
    "FileRateSpec",
    "FileStreamSpec",
    "FileWorkSpec",
    "FilesLoadSpec",
    "FilesRunSpec",
    "FormatSpec",
    "HostPart",
    "StructureSpec",
]
