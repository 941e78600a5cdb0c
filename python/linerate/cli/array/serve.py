"""`linerate array serve`: serves volumes to any iSCSI initiator, and the control API to its owner."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linerate.cli.array.reach import Yes, confirm
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate import _core
    from linerate.array import ArrayConfig

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
    create: Annotated[
        list[str] | None,
        typer.Option(
            "--create", metavar="NAME", help="Make a RAID set, pool or volume anew: what it held is lost."
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Serve the array that FILE.toml describes until Ctrl-C or SIGTERM."""
    from linerate.array import example_text, load_array_file

    if example:
        typer.echo(example_text(), nl=False)
        return
    if file is None:
        raise UserError("array serve needs a file", "`linerate array serve --example > lab.toml` makes one")
    from linerate import _core
    from linerate.array import record

    config = load_array_file(file)
    anew = tuple(create or ())
    if anew:
        confirm(f"Whatever {', '.join(anew)} held is lost. Make that anew?", yes)
    served = record.load(file)
    record.check_volumes(config, served, anew)
    ended = _ended_by_signal()
    array = _core.Array.start(record.seam_json(config, served, anew))
    keeper = record.Keeper(file, config, lambda: array.stats().get("storage", {}), _warn)
    stats: dict[str, Any] = {}
    try:
        with keeper.keeping(), _managed(array, config, control) as (url, warning):
            _tell_start(config, array.portals, url, warning, json)
            while not ended.wait(0.2):
                pass
            stats = array.stats()
    finally:
        array.stop()
    typer.echo(dumps({"schema": SCHEMA, "stats": stats}) if json else "stopped")


def _warn(text: str) -> None:
    typer.echo(f"warning: {text}", err=True)


@contextlib.contextmanager
def _managed(array: _core.Array, config: ArrayConfig, control: bool) -> Iterator[tuple[str, str]]:
    """Replicates, and answers the control API if that is wanted: its URL, and what to warn of."""
    from linerate.array.control import Service
    from linerate.array.replication import Replicating

    with Replicating(array, config) as replicating:
        if not control:
            yield "", ""
            return
        from linerate.array.control.server import ControlServer

        with ControlServer(Service(array, config, replicating), config) as server:
            yield server.url, server.warning


def _tell_start(
    config: ArrayConfig, portals: list[tuple[str, int]], url: str, warning: str, json: bool
) -> None:
    places = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in portals]
    if warning:
        typer.echo(f"warning: {warning}", err=True)
    if json:
        targets = [target.model_dump(mode="json", exclude={"chap"}) for target in config.targets]
        typer.echo(dumps({"schema": SCHEMA, "portals": places, "targets": targets, "control": url or None}))
        return
    _describe(config, places)
    if url:
        typer.echo(f"control {url}  (linerate array show)")
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
