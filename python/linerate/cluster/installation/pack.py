"""An archive of the files that a host needs, made once and sent to each host."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from linerate import _core
from linerate.cluster.installation.bytecode import bytecode_of, loaded_there, place_of
from linerate.cluster.installation.closure import DISTRIBUTION, Packed, files_of, needed
from linerate.cluster.installation.there import MARKER, SCHEMA

_COMPRESSION = 1
"""Most of it is compiled code: more effort takes long and saves little."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is sent, as long as the `with` block takes. `digest` tells one content from another, also of one version."""

    file: IO[bytes]
    """A tar archive, compressed by gzip; no other process can open it by a name."""
    version: str
    digest: str
    files: int
    unpacked_bytes: int
    packed_bytes: int

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()


def pack(files: Iterable[Packed] | None = None, version: str = _core.__version__) -> Bundle:
    """Packs Linerate and what it needs; `files` are others, for tests. Raises HostError, OSError."""
    distributions = needed() if files is None else {}
    chosen = list(files_of(distributions) if files is None else files)
    modules = loaded_there() if files is None else {one.path for one in chosen if one.path.suffix == ".py"}
    digest = _digest(chosen, {name: one.version for name, one in distributions.items()})
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the bundle keeps it open
    total = count = 0
    with (
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_COMPRESSION, mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one in chosen:
            total += _add(archive, one)
            count += 1
            if one.path in modules and (compiled := bytecode_of(one.path, one.name)):
                _add_bytes(archive, place_of(one.name), compiled)
                total += len(compiled)
                count += 1
        marker = {"schema": SCHEMA, "version": version, "digest": digest, "files": count}
        _add_bytes(archive, MARKER, json.dumps(marker).encode())
    file.flush()  # it is read through another descriptor
    packed_bytes = file.tell()
    return Bundle(file, version, digest, count, total, packed_bytes)


def own_digest() -> str:
    """The digest of the bundle that this machine would send. Raises HostError."""
    distributions = needed()
    return _digest(files_of(distributions), {name: one.version for name, one in distributions.items()})


def _add(archive: tarfile.TarFile, one: Packed) -> int:
    """Gives its size in bytes."""
    with one.path.open("rb") as content:
        member = archive.gettarinfo(arcname=one.name, fileobj=content)
        member.type = tarfile.REGTYPE  # a second name of one file is a file of its own there
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        archive.addfile(member, content)
    return member.size


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _digest(files: Iterable[Packed], versions: dict[str, str]) -> str:
    """Of what Linerate's own files hold, and of the versions of the other packages, whose files are not read."""
    hashed = hashlib.sha256()
    for name, version in sorted(versions.items()):
        hashed.update(f"{name} {version}\n".encode())
    for one in files:
        if not versions or one.name.startswith(("linerate/", DISTRIBUTION.replace("-", "_"))):
            hashed.update(f"{one.name} {one.path.stat().st_size}\n".encode())
            hashed.update(one.path.read_bytes())
    return hashed.hexdigest()
