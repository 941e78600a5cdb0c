"""`linerate array serve`: serves volumes to any iSCSI initiator, and the control API to its owner."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from linerate.cli.array.check import certificate_care
from linerate.cli.array.reach import Yes, confirm
from linerate.cli.job.page import Page, with_page
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate import _core
    from linerate.array import ArrayConfig, VolumeConfig
    from linerate.array.control.partnership import Partnership
    from linerate.array.log import EventLog

SCHEMA = "linerate.array/1"


def serve(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.toml", help="The array file.")] = None,
    example: Annotated[
        bool,
        typer.Option(
            "--example", help="Print an array file with every key, then exit; `array examples` has more."
        ),
    ] = False,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Let the other verbs show and manage it.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Portals and counters as JSON lines.")] = False,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option("--log-format", help="How events are written to standard error."),
    ] = "text",
    log_level: Annotated[
        Literal["error", "warning", "info", "debug", "trace"],
        typer.Option("--log-level", help="The least important events that are written."),
    ] = "info",
    create: Annotated[
        list[str] | None,
        typer.Option(
            "--create", metavar="NAME", help="Create a RAID set, pool or volume again: its data are lost."
        ),
    ] = None,
    page: Page = False,
    yes: Yes = False,
) -> None:
    """Serve the array that FILE.toml describes until Ctrl-C or SIGTERM."""
    from linerate.array.file import example_text, placed_array_file

    if example:
        typer.echo(example_text(), nl=False)
        return
    if file is None:
        raise UserError("array serve needs a file", "`linerate array serve --example > lab.toml` makes one")
    from linerate import _core
    from linerate.array import record
    from linerate.array.control.partnership import Partnership
    from linerate.array.log import EventLog
    from linerate.array.systemd import notify

    if page and not control:
        raise UserError("--page needs the control API", "leave out --no-control")
    _keep_standard_files()
    config, places = placed_array_file(file)
    care = certificate_care(config.control, places) if control else None
    partnership = Partnership.of(config)
    names = _to_create(config, create, yes)
    last = record.load(file)
    record.check_volumes(config, last, names)
    signals = ending_signals()
    with EventLog(log_format, log_level) as log:
        _warn(log, file, config, care)
        array = _core.Array.start(record.seam_json(config, last, names))
        writer = record.RecordWriter(file, config, lambda: array.stats().get("storage", {}), log.report)
        stats: dict[str, Any] = {}
        try:
            with writer.keeping(), _managed(array, config, partnership, control, log) as served:
                _tell_start(config, _places(array), served, _pool_volumes(array), json)
                _warn_of_sizes(config, _pool_volumes(array), log)
                _report_start(config, _places(array), log)
                _await(signals, page=page, json=json)
                notify("STOPPING=1")
                stats = array.stats()
        finally:
            array.stop()
            log.report("info", "array_stopped", "the array has stopped", name=config.name)
    typer.echo(dumps({"schema": SCHEMA, "stats": stats}) if json else "stopped")


def _to_create(config: ArrayConfig, create: list[str] | None, yes: bool) -> tuple[str, ...]:
    """What is created again, with the consent of the user. Raises UserError."""
    from linerate.array import record

    if names := tuple(create or ()):
        record.check_names(config, names)
        confirm(f"Everything on {', '.join(names)} is lost. Create it again?", yes)
        return names
    return ()


def _await(signals: SimpleQueue[int], *, page: bool, json: bool) -> None:
    """Serves until the end is asked for."""
    with with_page("array", str(os.getpid()), wanted=page, json=json):
        while not is_asked_to_end(signals):
            pass


def is_asked_to_end(signals: SimpleQueue[int]) -> bool:
    """Waits a moment for one of `ending_signals`."""
    try:
        signals.get(timeout=0.2)
    except Empty:
        return False
    return True


def _keep_standard_files() -> None:
    """Opens what this process was started without: else a disk could get the number of standard error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _warn(log: EventLog, file: Path, config: ArrayConfig, care: str | None) -> None:
    """Tells what the owner should know before the array serves."""
    from linerate.array.credentials import secret_warnings

    for warning in secret_warnings(file, config):
        log.report("warning", "weak_secret", warning)
    if care:
        log.report("warning", "control_certificate", care)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    wanted = 2 * config.limits.sessions + config.limits.half_open_connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        message = f"this process may open {soft} files, and its limits permit connections for {wanted}"
        log.report("warning", "few_open_files", f"{message}: raise the hard limit (ulimit -Hn, LimitNOFILE)")


@dataclass(frozen=True, slots=True)
class _Served:
    """Where the control API answers; empty without one."""

    url: str = ""
    partner_url: str = ""
    identity: str = ""


@contextlib.contextmanager
def _managed(
    array: _core.Array,
    config: ArrayConfig,
    partnership: Partnership | None,
    control: bool,
    log: EventLog,
) -> Iterator[_Served]:
    """Replicates, reports what changes, and answers the control API if that is wanted."""
    from linerate.array.control import ControlService
    from linerate.array.replication import Replicating
    from linerate.array.watch import Watch

    identity = partnership.own.identity if partnership else None
    with (
        Replicating(array, config, partnership) as replicating,
        Watch(array.stats, replicating.status, log.report),
    ):
        if not control:
            yield _Served()
            return
        from linerate.array.control.server import ControlServer

        service = ControlService(array, config, replicating, identity)
        with ControlServer(service, config, partnership) as server:
            if server.warning:
                log.report("warning", "control_exposed", server.warning)
            yield _Served(server.url, server.partner_url, identity or "")


def _places(array: _core.Array) -> list[str]:
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in array.portals]


_PoolVolumes = Mapping[str, dict[str, Any]]
"""Volumes of pools by their names: target, lun, pool and size_bytes, as they are now."""


def _pool_volumes(array: _core.Array) -> _PoolVolumes:
    storage = array.stats().get("storage") or {}
    return {volume["name"]: volume for volume in storage.get("volumes", ())}


def _size_of(volume: VolumeConfig, volumes: _PoolVolumes) -> int | None:
    """Bytes of a volume: a pool's volume may have been resized. None: neither file nor pool gives it."""
    known: int | None = volumes.get(volume.name, {}).get("size_bytes", volume.size_bytes)
    return known


def _warn_of_sizes(config: ArrayConfig, volumes: _PoolVolumes, log: EventLog) -> None:
    """Names each volume that was resized since the array file was written."""
    from linerate.cli.discover import size_text

    for volume in (volume for target in config.targets for volume in target.volumes):
        now = _size_of(volume, volumes)
        if now is None or volume.size_bytes is None or volume.size_bytes == now:
            continue
        message = (
            f"{volume.name} has {size_text(now)}, not the {size_text(volume.size_bytes)} of the array file, "
            "which count when it is made: `linerate array resize` changes it"
        )
        log.report("warning", "size_differs", message, volume=volume.name)


def _tell_start(
    config: ArrayConfig, places: list[str], served: _Served, volumes: _PoolVolumes, json: bool
) -> None:
    if json:
        targets = [target.model_dump(mode="json", exclude={"chap"}) for target in config.targets]
        for target in targets:
            target["volumes"] = [
                one for one in target["volumes"] if not _is_deleted(one["kind"], one["name"], volumes)
            ]
            for volume in target["volumes"]:
                volume["size_bytes"] = volumes.get(volume["name"], volume)["size_bytes"]
        ways = {"control": served.url or None, "partners": served.partner_url or None}
        typer.echo(dumps({"schema": SCHEMA, "portals": places, "targets": targets, **ways}))
        return
    _describe(config, places, volumes)
    if served.partner_url:
        typer.echo(f"partners {served.partner_url}  as {served.identity}")
    if served.url:
        typer.echo(f"control {served.url}  (linerate array show)")
    typer.echo("serving until Ctrl-C")


def _report_start(config: ArrayConfig, places: list[str], log: EventLog) -> None:
    """In the log, and to the service manager."""
    from linerate.array.systemd import notify

    log.report("info", "array_started", "the array serves", name=config.name, portals=places)
    if not notify(f"READY=1\nSTATUS=serving {', '.join(places)}"):
        message = "the service manager could not be notified (NOTIFY_SOCKET)"
        log.report("warning", "notify_failed", message)


def ending_signals() -> SimpleQueue[int]:
    """Gets Ctrl-C and SIGTERM, so that both end the array the same way.

    A handler may run at any instruction of the main thread. An Event would wait for itself if the handler ran while the
    main thread is inside it; a SimpleQueue takes that.
    """
    signals: SimpleQueue[int] = SimpleQueue()

    def end(number: int, frame: FrameType | None) -> None:
        signals.put(number)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    return signals


def _describe(config: ArrayConfig, portals: list[str], volumes: _PoolVolumes) -> None:
    from linerate.cli.discover import size_text

    in_file = {volume.name for target in config.targets for volume in target.volumes}
    for portal in portals:
        typer.echo(f"portal {portal}")
    for target in config.targets:
        login = f"CHAP as {target.chap.user}" if target.chap else "no CHAP"
        typer.echo(f"target {target.name} ({login})")
        for volume in target.volumes:
            if _is_deleted(volume.kind, volume.name, volumes):
                again = (
                    f"`linerate array create-volume {volume.name} SIZE --lun {volume.lun}` makes an empty one"
                )
                typer.echo(f"  no LUN {volume.lun}: {volume.name} was deleted; {again}")
                continue
            known = _size_of(volume, volumes)
            size = size_text(known) if known else _SIZE_OF[volume.kind]
            place = volume.path or volume.pool or volume.raid_set or "memory"
            flags = ", read-only" if volume.read_only else ""
            typer.echo(_lun_line(volume.lun, volume.name, size, place + flags))
        for name, made in volumes.items():
            if made.get("target") == target.name and name not in in_file:
                size = size_text(made["size_bytes"])
                typer.echo(_lun_line(made["lun"], name, size, f"{made['pool']}, not in the array file"))


def _is_deleted(kind: str, name: str, volumes: _PoolVolumes) -> bool:
    """Whether a volume of the array file is no longer there: a pool makes its volumes at the first start only."""
    return kind == "pool" and name not in volumes


def _lun_line(lun: int, name: str, size: str, place: str) -> str:
    return f"  LUN {lun:<4} {name:<12} {size:>10}  {place}"


_SIZE_OF = {"file": "size of the file", "raid": "all of it", "pool": "as it is"}
"""The size of a volume for which the array file gives none."""
