"""`linerate array serve`: serves volumes to any iSCSI initiator, and the control API to its owner."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate import _core
    from linerate.array import ArrayConfig
    from linerate.array.control.partnership import Partnership

SCHEMA = "linerate.array/1"


def serve(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.toml", help="The array file.")] = None,
    example: Annotated[
        bool,
        typer.Option(
            "--example", help="Print an array file with every key and end; `array examples` has more."
        ),
    ] = False,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Let the other verbs look at it and manage it.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Portals and counters as JSON lines.")] = False,
) -> None:
    """Serve the array that FILE.toml describes until Ctrl-C or SIGTERM."""
    from linerate.array import example_text, load_array_file

    if example:
        typer.echo(example_text(), nl=False)
        return
    if file is None:
        raise UserError("array serve needs a file", "`linerate array serve --example > lab.toml` makes one")
    from linerate import _core
    from linerate.array.control.partnership import Partnership

    config = load_array_file(file)
    partnership = Partnership.of(config)
    ended = _ended_by_signal()
    array = _core.Array.start(config.seam_json())
    stats: dict[str, Any] = {}
    try:
        with _managed(array, config, partnership, control) as served:
            _tell_start(config, array.portals, served, json)
            while not ended.wait(0.2):
                pass
            stats = array.stats()
    finally:
        array.stop()
    typer.echo(dumps({"schema": SCHEMA, "stats": stats}) if json else "stopped")


@dataclass(frozen=True, slots=True)
class _Served:
    """Where the control API answers, and what to warn of; empty without one."""

    url: str = ""
    partner_url: str = ""
    identity: str = ""
    warning: str = ""


@contextlib.contextmanager
def _managed(
    array: _core.Array, config: ArrayConfig, partnership: Partnership | None, control: bool
) -> Iterator[_Served]:
    """Replicates, and answers the control API if that is wanted."""
    from linerate.array.control import Service
    from linerate.array.replication import Replicating

    identity = partnership.own.identity if partnership else None
    with Replicating(array, config, partnership) as replicating:
        if not control:
            yield _Served()
            return
        from linerate.array.control.server import ControlServer

        service = Service(array, config, replicating, identity)
        with ControlServer(service, config, partnership) as server:
            yield _Served(server.url, server.partner_url, identity or "", server.warning)


def _tell_start(config: ArrayConfig, portals: list[tuple[str, int]], served: _Served, json: bool) -> None:
    places = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in portals]
    if served.warning:
        typer.echo(f"warning: {served.warning}", err=True)
    if json:
        targets = [target.model_dump(mode="json", exclude={"chap"}) for target in config.targets]
        ways = {"control": served.url or None, "partners": served.partner_url or None}
        typer.echo(dumps({"schema": SCHEMA, "portals": places, "targets": targets, **ways}))
        return
    _describe(config, places)
    if served.partner_url:
        typer.echo(f"partners {served.partner_url}  as {served.identity}")
    if served.url:
        typer.echo(f"control {served.url}  (linerate array show)")
    typer.echo("serving until Ctrl-C")


def _ended_by_signal() -> threading.Event:
    """Set by Ctrl-C or SIGTERM, so that both end the array the same way."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    return ended


def _describe(config: ArrayConfig, portals: list[str]) -> None:
    from linerate.cli.discover import size_text

    for portal in portals:
        typer.echo(f"portal {portal}")
    for target in config.targets:
        login = f"CHAP as {target.chap.user}" if target.chap else "no login needed"
        typer.echo(f"target {target.name} ({login})")
        for volume in target.volumes:
            size = size_text(volume.size_bytes) if volume.size_bytes else _SIZE_OF[volume.kind]
            place = volume.path or volume.pool or volume.raid_set or "memory"
            flags = ", read-only" if volume.read_only else ""
            typer.echo(f"  LUN {volume.lun:<4} {volume.name:<12} {size:>10}  {place}{flags}")


_SIZE_OF = {"file": "size of the file", "raid": "all of it", "pool": "as it is"}
"""The size of a volume for which the array file gives none."""
