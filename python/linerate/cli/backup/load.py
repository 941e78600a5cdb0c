"""`linerate backup-load`: the I/O of an image backup, on any volume."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from linerate.cli import INTERRUPTED
from linerate.cli.backup import words
from linerate.cli.job import flags
from linerate.cli.job.machine import shared_machine
from linerate.cli.job.overwrite import consent_of
from linerate.cli.place import place_of
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.backup import BackupSpec
    from linerate.workload.spec import SessionSpec, SmbSpec, VolumeSpec

_MIB = 1 << 20
_IMAGE_BYTES_MAX = 64 << 40
"""Of a VHDX image."""
_OUTSTANDING, _OUTSTANDING_MAX = 8, 65_536


def backup_load(
    url: words.Image,
    size: words.Size,
    source: words.Source = words.NO_VOLUME,
    restore_to: words.RestoreTo = words.NO_VOLUME,
    kind: words.KindOfImage = words.ImageForm.FIXED,
    full: words.Full = True,
    incrementals: words.Incrementals = 1,
    restore: words.Restore = True,
    used: words.Used = 50.0,
    changed: words.Changed = 5.0,
    seed: words.Seed = 1,
    transfer: words.Transfer = "1m",
    block: words.Block = "32m",
    outstanding: flags.Outstanding = _OUTSTANDING,
    write_through: words.WriteThrough = False,
    buffered: words.Buffered = False,
    set_: flags.Settings = None,
    driver: flags.DriverName = None,
    overwrite: flags.Overwrite = None,
    wait: flags.WaitForLab = False,
    output: flags.Output = None,
    json: words.Json = False,
) -> None:
    """Load a volume as an image backup does: create a VHDX image, full and incremental backups, a restore.

    All data are generated: the image is no backup of the source, which is only read.
    """
    from linerate.backup import BackupRequest, carry_out
    from linerate.cli.backup.told import progress, result_lines, result_object
    from linerate.cli.job import options
    from linerate.workload import Overrides

    session = options.with_settings(Overrides(), set_ or [], [], None)
    volumes = _Volumes(
        session.iscsi, session.smb, _bytes("--size", size), _outstanding(outstanding), write_through, buffered
    )
    request = BackupRequest(
        data=_data(size, used, changed, transfer, seed),
        image=volumes.of("image", url),
        source=volumes.optional("source", source),
        target=volumes.optional("target", restore_to),
        kind=kind.value,
        block_bytes=_block(block),
        full=full,
        incrementals=incrementals,
        restore=restore,
        driver=driver.value if driver else "auto",
    )
    consent = consent_of(overwrite, json=json)
    consent.check_names((volume.name, volume.url) for volume in request.volumes())
    # SIGTERM ends it as Ctrl-C does, with a closed run directory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = output or place_of("backup-load")
    with shared_machine("backup-load", wait=wait), progress(quiet=json) as tell:
        outcome = carry_out(request, consent, directory, tell)
    if json:
        typer.echo(result_object(request, outcome))
    else:
        from linerate.cli.console import console, show_lines

        out = console()
        show_lines([*result_lines(request, outcome, out.width if out.is_terminal else None)])
    if outcome.error is not None:
        raise outcome.error
    if outcome.state == "interrupted":
        raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True, slots=True)
class _Volumes:
    """Makes the volumes of a job, all with the same options."""

    iscsi: SessionSpec | None
    smb: SmbSpec | None
    size_bytes: int
    outstanding: int
    write_through: bool
    buffered: bool

    def of(self, name: str, text: str) -> VolumeSpec:
        """Raises UserError for a URL that no volume has."""
        from linerate.workload.spec import SmbSpec, VolumeSpec
        from linerate.workload.url import parse_target, path_of

        place = parse_target(text)
        if name == "image" and place.kind in ("null", "array"):
            raise UserError(f"{text}: no image can be kept there", "name a share, a file, a device or a LUN")
        path = path_of(place.url)
        if name == "source" and path is not None and not Path(path).exists():
            raise UserError(
                f"--source {text}: there is no such file", "check the path: a source is read and never made"
            )
        return VolumeSpec(
            name=name,
            url=place.url,
            user=place.user,
            secret=place.secret,
            mutual_user=place.mutual_user,
            mutual_secret=place.mutual_secret,
            iscsi=place.iscsi.merged(self.iscsi) if self.iscsi else place.iscsi,
            smb=self.smb or SmbSpec(),
            size_bytes=self.size_bytes,
            create=name != "source" and place.can_be_made,
            outstanding=self.outstanding,
            durable_writes=self.write_through and name != "source",
            direct=not self.buffered,
        )

    def optional(self, name: str, text: str) -> VolumeSpec | None:
        """None for `null`."""
        return None if text == words.NO_VOLUME else self.of(name, text)


def _data(size: str, used: float, changed: float, transfer: str, seed: int) -> BackupSpec:
    from linerate.backup import CLUSTER_BYTES, BackupSpec

    image_bytes, transfer_bytes = _bytes("--size", size), _bytes("--transfer", transfer)
    if image_bytes % CLUSTER_BYTES or not CLUSTER_BYTES < image_bytes <= _IMAGE_BYTES_MAX:
        raise UserError(
            f"--size {size}: not a size of a virtual disk",
            "give a multiple of 64k, more than 64k and at most 64t",
        )
    if transfer_bytes % CLUSTER_BYTES or not 0 < transfer_bytes <= 16 * _MIB:
        raise UserError(
            f"--transfer {transfer}: not a size of a transfer", "give a multiple of 64k up to 16m"
        )
    if used == 0:
        raise UserError("--used 0: there would be nothing to back up", "give more than 0 percent")
    return BackupSpec(
        image_bytes=image_bytes,
        used_percent=used,
        changed_percent=changed,
        transfer_bytes=transfer_bytes,
        seed=seed,
    )


def _outstanding(given: int | None) -> int:
    if given is None:
        return _OUTSTANDING
    if not 0 < given <= _OUTSTANDING_MAX:
        raise UserError(f"--outstanding {given}: out of range", f"1 to {_OUTSTANDING_MAX:,}")
    return given


def _block(text: str) -> int:
    block_bytes = _bytes("--block", text)
    if block_bytes & (block_bytes - 1) or not _MIB <= block_bytes <= 256 * _MIB:
        raise UserError(
            f"--block {text}: not a size of an image's block", "give a power of two from 1m to 256m"
        )
    return block_bytes


def _bytes(option: str, text: str) -> int:
    from linerate.quantity import SIZE_FORM, parse_size

    try:
        return int(parse_size(text))
    except ValueError as error:
        raise UserError(f"{option} {text}: no size", f"write {SIZE_FORM}") from error
