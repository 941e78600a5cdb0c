"""Image backups as a load: an image is created, and full and incremental backups and a restore are carried out on it.

Open `carry_out` first. `request` says which phases there are, `spec` what the data plane gets, `rates` what came out.
"""

from __future__ import annotations

from linerate.backup.carry_out import BackupOutcome, ImageState, PhaseProgress, carry_out
from linerate.backup.rates import PhaseResult
from linerate.backup.request import BackupRequest
from linerate.backup.spec import (
    CLUSTER_BYTES,
    BackupJobSpec,
    BackupPhase,
    BackupSpec,
    DriverName,
    ImageKind,
)

__all__ = [
    "CLUSTER_BYTES",
    "BackupJobSpec",
    "BackupOutcome",
    "BackupPhase",
    "BackupRequest",
    "BackupSpec",
    "DriverName",
    "ImageKind",
    "ImageState",
    "PhaseProgress",
    "PhaseResult",
    "carry_out",
]
