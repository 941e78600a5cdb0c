"""BackupJobSpec, version 1: one phase of an image backup, as handed to the data plane in JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from linerate.workload.spec import REVEAL, FrozenSpec, Percent, VolumeSpec

BackupPhase = Literal["create", "full", "incremental", "restore"]
ImageKind = Literal["fixed", "dynamic"]
DriverName = Literal["auto", "io_uring", "epoll"]
CLUSTER_BYTES = 64 << 10
"""The unit of the maps of used and of changed data; the image has a whole number of them."""


class BackupSpec(FrozenSpec):
    """What is backed up, and how: a model of the source volume."""

    image_bytes: PositiveInt
    """Size of source, image and target: whole clusters of 64 KiB."""
    used_percent: Annotated[float, Field(gt=0, le=100)]
    """Share of the source's clusters that are used."""
    changed_percent: Percent
    """Share of the used clusters that change between two backups."""
    used_run_clusters: PositiveInt = 64
    """Mean length of a run of used clusters."""
    changed_run_clusters: PositiveInt = 4
    """Mean length of a run of changed clusters."""
    transfer_bytes: PositiveInt = 1 << 20
    """Longest read or write: whole clusters, at most 16 MiB."""
    writes_per_metadata_write: PositiveInt = 100
    """Writes of data between two writes of metadata."""
    flush_bytes: PositiveInt = 1 << 30
    """Data between two flushes."""
    seed: NonNegativeInt = 1
    """Determines both maps, and the data."""


class BackupJobSpec(FrozenSpec):
    """One phase of an image backup."""

    version: Literal[1] = 1
    phase: BackupPhase
    incrementals: NonNegativeInt = 0
    """Incremental backups that were made before this phase."""
    backup: BackupSpec
    kind: ImageKind = "fixed"
    """fixed: all blocks are there from the beginning. dynamic: a block is allocated at its first write."""
    block_bytes: PositiveInt = 32 << 20
    """Block of a new image: a power of two from 1 to 256 MiB."""
    overwrite: bool = False
    """A new image may replace what the volume holds."""
    image: VolumeSpec
    source: VolumeSpec | None = None
    """The volume that backups read; null: their data are made in memory."""
    target: VolumeSpec | None = None
    """The volume that a restore writes; null: it reads and verifies only."""
    interval_s: Annotated[float, Field(ge=0.1, le=3600)] = 1.0
    driver: DriverName = "auto"

    def seam_json(self) -> str:
        """The JSON for the data plane, secrets included: for `linerate._core` only, never for a file or a log."""
        return self.model_dump_json(context={REVEAL: True})
