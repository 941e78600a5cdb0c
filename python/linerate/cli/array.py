"""`linerate array`: serves volumes to any iSCSI initiator."""

from __future__ import annotations

import signal
import threading
from json import dumps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.array import ArrayConfig

app = typer.Typer(help="Serve an iSCSI array.", no_args_is_help=True)


@app.callback()
def _array() -> None:
    """Serve an iSCSI array."""


@app.command()
def serve(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.toml", help="The array file.")] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a commented array file and end.")] = False,
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

    config = load_array_file(file)
    ended = _ended_by_signal()
    array = _core.Array.start(config.seam_json())
    portals = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in array.portals]
    if json:
        targets = [target.model_dump(mode="json", exclude={"chap"}) for target in config.targets]
        typer.echo(dumps({"schema": "linerate.array/1", "portals": portals, "targets": targets}))
    else:
        _describe(config, portals)
    try:
        while not ended.wait(0.2):
            pass
    finally:
        stats = array.stats()
        array.stop()
    if json:
        typer.echo(dumps({"schema": "linerate.array/1", "stats": stats}))
    else:
        typer.echo("stopped")


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
            size = size_text(volume.size_bytes) if volume.size_bytes else "size of the file"
            place = volume.path or "memory"
            flags = ", read-only" if volume.read_only else ""
            typer.echo(f"  LUN {volume.lun:<4} {volume.name:<12} {size:>10}  {place}{flags}")
    typer.echo("serving until Ctrl-C")
