"""FilesRunSpec, version 1: a run of a file system workload, as handed to the data plane in JSON."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from linerate.workload.spec import REVEAL, DedupSpec, FrozenSpec, Percent, RunSpec, Secret, SmbSpec

FileOp = Literal[
    "read",
    "write",
    "mkdir",
    "rmdir",
    "create",
    "delete",
    "getattr",
    "setattr",
    "access",
    "open",
    "close",
    "copy",
    "move",
]
"""An operation on files and folders, in the words of vdbench."""

READING: frozenset[FileOp] = frozenset({"read", "getattr", "access", "open", "close"})
"""Operations that change nothing."""


class HostPart(FrozenSpec):
    """The part of a structure that belongs to one of the hosts that share it: every `of`-th file, from `number` on.

    Folders are made by the host that comes first; hosts divide those of the first level when they remove.
    """

    number: NonNegativeInt
    """Of this host, from 0."""
    of: PositiveInt
    """How many hosts share the structure."""


class StructureSpec(FrozenSpec):
    """A structure of folders and files under one folder, its anchor (vdbench: file system definition)."""

    name: str
    anchor: str
    """Path of the anchor, or `smb://host:port/share/folder`; never holds a user or a secret."""
    user: str | None = None
    """Of a share: the user, as `user` or `DOMAIN\\user`."""
    secret: Secret | None = None
    """Of a share: the password. Shown as stars everywhere but in `FilesLoadSpec.seam_json`."""
    smb: SmbSpec = SmbSpec()
    """Of a share: options of the session."""
    depth: PositiveInt
    """Levels of folders."""
    width: PositiveInt
    """Folders in each folder."""
    files: NonNegativeInt
    """Files in each folder that has files."""
    sizes: tuple[tuple[PositiveInt, NonNegativeFloat], ...]
    """Sizes of files in bytes, each with its percentage. One size with 0 percent: sizes around it."""
    files_in: Literal["bottom", "all"] = "bottom"
    """Folders that have files: those of the last level, or all."""
    total_bytes: PositiveInt | None = None
    """Only so many bytes of the files are used, chosen at random."""
    working_set_bytes: PositiveInt | None = None
    """Of these, only so many bytes are used, chosen at random. A format ignores it."""
    create_anchor: bool = False
    """Make the anchor and its parents."""
    host_part: HostPart | None = None
    """Other hosts use it at the same time; None: this run alone does."""

    @model_serializer(mode="wrap")
    def _options_where_they_apply(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        if not values["smb"]:
            del values["smb"]
        return values

    @property
    def file_count(self) -> int:
        """Files of the whole structure; with `total_bytes` about as many as fit."""
        deepest: int = self.width**self.depth
        folders = sum(self.width**level for level in range(1, self.depth + 1))
        files = self.files * (deepest if self.files_in == "bottom" else folders)
        return min(files, math.ceil(self.total_bytes / self._mean_size)) if self.total_bytes else files

    @property
    def mean_bytes(self) -> int:
        """Bytes of all these files, by the mean of their sizes."""
        return self.total_bytes or round(self.file_count * self._mean_size)

    @property
    def _mean_size(self) -> float:
        weight = math.fsum(percent for _, percent in self.sizes)
        if not weight:
            return float(self.sizes[0][0])
        return math.fsum(size * percent for size, percent in self.sizes) / weight


class FileWorkSpec(FrozenSpec):
    """What a group of threads does: one operation on one structure."""

    name: str
    structure: NonNegativeInt
    """Index into the structures."""
    operation: FileOp
    target: NonNegativeInt | None = None
    """Index into the structures: where copies go. It has the same folders and files."""
    read_percent: Percent | None = None
    """Percentage of blocks that are read of each file; None: as the operation says."""
    random_io: bool = False
    """Blocks at random places, not one after the other."""
    shared_files: bool = False
    """Several threads may use one file."""
    select: Literal["sequential", "random", "once"] = "sequential"
    """How files and folders are chosen."""
    sizes: tuple[tuple[PositiveInt, NonNegativeFloat], ...]
    """Sizes of blocks in bytes, each with its percentage."""
    threads: PositiveInt
    share_percent: PositiveFloat
    """Percentage of all operations that were asked for."""
    stop_after_blocks: PositiveInt | None = None
    """A file is closed after so many blocks."""
    stop_after_percent: PositiveFloat | None = None
    """A file is closed after this percentage of its size."""
    direct: bool = False
    """O_DIRECT."""
    durable: bool = False
    """O_DSYNC."""

    def structure_of(self, operation: FileOp) -> int:
        """The structure that an operation of it changes or reads, as results show it."""
        in_target = operation in ("write", "create", "copy") or (
            operation == "delete" and self.operation == "copy"
        )
        return self.structure if self.target is None or not in_target else self.target


class FormatSpec(FrozenSpec):
    """What a format does. It ends when it is done."""

    delete: bool
    """First remove what has names of a structure."""
    folders: bool
    """Make the folders."""
    files: bool
    """Make the files, and write those that are not full."""


class FileRateSpec(FrozenSpec):
    """The rate of operations."""

    per_s: PositiveFloat
    """Operations that were asked for, per second."""
    process: Literal["deterministic", "poisson", "uniform"]
    """Times between them."""


class FileStreamSpec(FrozenSpec):
    """What a stream of the results counts: one operation of one workload."""

    name: str
    workload: NonNegativeInt
    """Index into the workloads."""
    operation: FileOp


class FilesRunSpec(FrozenSpec):
    """One run of a file system workload."""

    version: Literal[1] = 1
    seed: NonNegativeInt = 0
    warmup_s: NonNegativeFloat = 0.0
    elapsed_s: PositiveFloat | None = None
    """Measured time after the warm-up; None: until the work is done."""
    interval_s: Annotated[float, Field(ge=0.1)]
    structures: tuple[StructureSpec, ...]
    workloads: tuple[FileWorkSpec, ...]
    streams: tuple[FileStreamSpec, ...]
    rate: FileRateSpec | None = None
    """The rate of operations; None: the maximum."""
    format: FormatSpec | None = None
    """The run is a format: its workloads, one per structure, write files."""
    compression_ratio: Annotated[float, Field(ge=1)] | None = None
    """Written data compress so many to one; None: not at all."""
    dedup: DedupSpec | None = None
    """Duplicates in written data."""
    verify_unit_bytes: PositiveInt | None = None
    """Every block of so many bytes is checked when it is read; None: data are not checked."""


class FilesLoadSpec(RunSpec):
    """A run of a file system workload: its volumes are the structures, its streams the operations of each workload."""

    files: FilesRunSpec
    hosts: tuple[tuple[str, ...], ...] = ()
    """By workload, the labels of the hosts that run it, in their order; empty: the file names no hosts."""
    shared: tuple[str, ...] = ()
    """Names of the structures that several hosts may use at the same time (vdbench: shared=yes)."""

    def host_json(self) -> str:
        """The JSON for the agent of a host, with secrets."""
        return self.model_dump_json(context={REVEAL: True})

    def seam_json(self) -> str:
        """The JSON for the data plane, with secrets. The options of a structure's session are those of its volume."""
        volumes = {volume.name: volume for volume in self.volumes}
        update: dict[str, Any] = {"seed": self.seed, "warmup_s": self.warmup_s, "interval_s": self.interval_s}
        update["structures"] = tuple(
            structure.model_copy(update={"smb": volumes[structure.name].smb})
            for structure in self.files.structures
        )
        if self.files.elapsed_s is not None:
            update["elapsed_s"] = self.elapsed_s
        return self.files.model_copy(update=update).model_dump_json(context={REVEAL: True})
