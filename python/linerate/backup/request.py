"""What `backup-load` is asked to do: the phases in their order, each as a job of the data plane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from linerate.backup.spec import BackupJobSpec, BackupPhase, BackupSpec, DriverName, ImageKind
from linerate.errors import UserError
from linerate.workload.spec import RunSpec, SizeMix, StreamSpec, VolumeSpec


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """An image and what is done with it. Its first phase is always that it is created.

    Raises UserError for phases that need another one.
    """

    data: BackupSpec
    image: VolumeSpec
    source: VolumeSpec | None = None
    """None: backups read no volume."""
    target: VolumeSpec | None = None
    """None: a restore writes no volume."""
    kind: ImageKind = "fixed"
    block_bytes: int = 32 << 20
    full: bool = True
    incrementals: int = 1
    restore: bool = True
    driver: DriverName = "auto"

    def __post_init__(self) -> None:
        if not self.full and (self.incrementals or self.restore):
            raise UserError(
                "--no-full: an incremental backup and a restore need a full one",
                "add --incrementals 0 --no-restore, or leave --no-full out",
            )
        if self.target is not None and not self.restore:
            raise UserError("--restore-to goes with a restore", "leave --no-restore out")

    def phases(self) -> Iterator[tuple[str, BackupJobSpec]]:
        """Name and job of each phase, in order."""
        yield "create", self._job("create")
        if self.full:
            yield "full", self._job("full")
        for number in range(self.incrementals):
            yield f"incremental {number + 1}", self._job("incremental", number)
        if self.restore:
            yield "restore", self._job("restore", self.incrementals)

    @property
    def writing_phases(self) -> int:
        """Phases that write to the image."""
        return sum(job.phase != "restore" for _, job in self.phases())

    def volumes(self) -> tuple[VolumeSpec, ...]:
        """Those that are used."""
        return tuple(one for one in (self.image, self.source, self.target) if one is not None)

    def run_spec(self, phase: BackupPhase | None = None) -> RunSpec:
        """The reads and writes of a phase, or of all of them, in the form of a run: for records, and to look at what is
        written. Names of streams are those of the data plane."""
        streams = [
            self._stream(name, volume, is_read=is_read)
            for name, volume, is_read, phases in (
                ("write_zeros", self.image, False, ("create",)),
                ("read_source", self.source, True, ("full", "incremental")),
                ("write_data", self.image, False, ("full", "incremental")),
                ("read_image", self.image, True, ("restore",)),
                ("write_target", self.target, False, ("restore",)),
            )
            if volume is not None and (phase is None or phase in phases)
        ]
        used = {volume for stream in streams for volume in stream.volumes}
        return RunSpec(
            name="backup-load",
            seed=self.data.seed,
            driver=self.driver,
            volumes=tuple(volume for volume in self.volumes() if volume.name in used),
            streams=tuple(streams),
        )

    def _stream(self, name: str, volume: VolumeSpec, *, is_read: bool) -> StreamSpec:
        return StreamSpec(
            name=name,
            volumes=(volume.name,),
            sizes=SizeMix.one(self.data.transfer_bytes),
            read_percent=100 if is_read else 0,
            random_percent=0,
        )

    def _job(self, phase: BackupPhase, incrementals: int = 0) -> BackupJobSpec:
        return BackupJobSpec(
            phase=phase,
            incrementals=incrementals,
            backup=self.data,
            kind=self.kind,
            block_bytes=self.block_bytes,
            image=self.image,
            source=self.source,
            target=self.target,
            driver=self.driver,
        )
