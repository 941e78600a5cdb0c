"""Facts of a backup image: VHDX or VHD, of fixed size or not, from its headers.

Sources: MS-VHDX 2.2.3 (region table), 2.6 (metadata), 2.6.2.1 (file parameters); the Virtual Hard Disk image format
specification 1.0 (footer, disk type). All numbers of a VHDX are little endian, those of a VHD big endian.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from linerate.advice.facts import AuditSubject, FactValue, SanFactSheet
from linerate.errors import UserError

_VHDX = b"vhdxfile"
_VHD = b"conectix"
_FOOTER_BYTES = 512
_REGION_TABLE = 192 << 10
_REGIONS_MAX = 2047
_METADATA_ITEMS_MAX = 2047
_METADATA_REGION = UUID("8b7ca206-4790-4b9a-b8fe-575f050f886e")
_FILE_PARAMETERS = UUID("caa16737-fa36-4d43-b3b6-33f0aa44e76b")
_LEAVE_BLOCKS_ALLOCATED = 1
_HAS_PARENT = 2
_DISK_TYPES = {2: "fixed", 3: "dynamic", 4: "differencing"}


def read_image(path: Path) -> SanFactSheet:
    """The facts of an image file. Raises UserError when it cannot be read or is no image."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            facts, unknown = _facts(file, str(path))
    except OSError as error:
        hint = "give the path of a VHDX or VHD file"
        if path.parts[:1] == ("smb:",):
            hint = "the image is read as a file of this host: mount the share, and give its path there"
        raise UserError(f"{path}: {error.strerror}", hint) from error
    return SanFactSheet((AuditSubject("image", path.name, "image", facts, unknown),))


def _facts(file: BinaryIO, shown: str) -> tuple[dict[str, FactValue], dict[str, str]]:
    if _at(file, 0, len(_VHDX)) == _VHDX:
        flags = _file_parameters(file)
        if flags is None:
            return {"format": "vhdx"}, {
                "allocation": "the metadata of the image cannot be read: it is damaged"
            }
        kind = (
            "differencing"
            if flags & _HAS_PARENT
            else "fixed"
            if flags & _LEAVE_BLOCKS_ALLOCATED
            else "dynamic"
        )
        return {"format": "vhdx", "allocation": kind}, {}
    size = file.seek(0, os.SEEK_END)
    footer = _at(file, max(0, size - _FOOTER_BYTES), _FOOTER_BYTES)
    if footer[: len(_VHD)] == _VHD and len(footer) == _FOOTER_BYTES:
        kind = _DISK_TYPES.get(int.from_bytes(footer[60:64], "big"), "")
        facts: dict[str, FactValue] = {"format": "vhd"}
        if kind:
            facts["allocation"] = kind
        return facts, {"allocation": "the disk type of the image is none that is specified"}
    raise UserError(
        f"{shown}: neither a VHDX nor a VHD image", "give the image that the backup is written to"
    )


def _file_parameters(file: BinaryIO) -> int | None:
    """Flags of the file parameters; None where the tables do not lead to them."""
    table = _at(file, _REGION_TABLE, 16 + 32 * _REGIONS_MAX)
    if table[:4] != b"regi":
        return None
    for entry in _entries(table, 16, min(_u32(table, 8), _REGIONS_MAX)):
        if UUID(bytes_le=entry[:16]) == _METADATA_REGION:
            return _parameters_in(file, int.from_bytes(entry[16:24], "little"))
    return None


def _parameters_in(file: BinaryIO, region: int) -> int | None:
    table = _at(file, region, 32 + 32 * _METADATA_ITEMS_MAX)
    if table[:8] != b"metadata":
        return None
    for entry in _entries(table, 32, min(int.from_bytes(table[10:12], "little"), _METADATA_ITEMS_MAX)):
        if UUID(bytes_le=entry[:16]) == _FILE_PARAMETERS:
            item = _at(file, region + _u32(entry, 16), 8)
            return _u32(item, 4) if len(item) == 8 else None
    return None


def _entries(table: bytes, start: int, count: int) -> list[bytes]:
    """Entries of 32 bytes, as many as there are whole ones."""
    found = (table[start + 32 * number :][:32] for number in range(count))
    return [entry for entry in found if len(entry) == 32]


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    """So many bytes from there, fewer at the end of the file, none beyond it."""
    if offset >= os.fstat(file.fileno()).st_size:
        return b""
    file.seek(offset)
    return file.read(size)
