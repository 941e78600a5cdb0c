"""`linerate probe`: what one path carries, and what limits it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linerate.cli.job.flags import Overwrite, Settings, WaitForLab
from linerate.cli.job.machine import shared_machine
from linerate.cli.job.overwrite import consent_of
from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.probe import RawRate, SizeTimes, Survey, TrialResult
    from linerate.probe.survey import Tell
    from linerate.probe.tcp_state import TcpState
    from linerate.setting import Value
    from linerate.workload.spec import VolumeSpec

SECONDS = 60.0
SERVE_SECONDS = 600.0
SECONDS_MIN = 5.0


def probe(
    target: Annotated[
        str | None, typer.Argument(metavar="URL", help="A LUN: iscsi://[user%secret@]host[:port]/target/lun.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=SECONDS_MIN,
            max=3600.0,
            help="Time for all trials together (60), or for --serve (600).",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Try writes too. They destroy the data on the volume.")
    ] = False,
    raw: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Try raw TCP too, with a host that runs `probe --serve PORT`."
        ),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="PORT", help="Be the far side of --raw for a while: no URL, no I/O; for one host only."
        ),
    ] = None,
    overwrite: Overwrite = None,
    settings: Settings = None,
    wait: WaitForLab = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Find out in a minute what one path to a LUN carries, what limits it, and which two settings to try.

    Reads only, unless --write is given.
    """
    from linerate.probe import ProbeRequest, survey
    from linerate.probe.raw import parse_peer

    if serve is not None:
        if target is not None or raw is not None or write:
            raise UserError("--serve is without URL, --raw and --write", "run the probe on the other host")
        _serve(serve, seconds or SERVE_SECONDS)
        return
    if target is None:
        raise UserError("no URL", "name a LUN: iscsi://host/target/lun; or be the far side: --serve PORT")
    asked = ProbeRequest(
        _volume(target, settings or ()),
        consent_of(overwrite, json=json),
        seconds or SECONDS,
        writes=write,
        raw=parse_peer(raw) if raw is not None else None,
    )
    with shared_machine("probe", wait=wait), _progress() as tell:
        found = survey(asked, tell)
    typer.echo(dumps(_object(found)) if json else "\n".join(_lines(found)))


def _serve(place: str, seconds: float) -> None:
    from linerate.probe.raw.server import listen, serve

    with listen(place) as listener:
        port = listener.getsockname()[1]
        typer.echo(f"serving raw TCP on port {port} for {seconds:g} s, to the first host that asks", err=True)
        typer.echo(
            f"next: on that host, linerate probe URL --raw HOST:{port} with an address of this host", err=True
        )
        serve(listener, seconds, lambda done: typer.echo(done, err=True))


def _volume(target: str, settings: Sequence[str]) -> VolumeSpec:
    from linerate.cli.job.options import session_of
    from linerate.workload.spec import VolumeSpec
    from linerate.workload.url import parse_target

    place = parse_target(target)
    return VolumeSpec(
        name="LUN",
        url=place.url,
        user=place.user,
        secret=place.secret,
        mutual_user=place.mutual_user,
        mutual_secret=place.mutual_secret,
        iscsi=place.iscsi.merged(session_of(settings)),
    )


@contextmanager
def _progress() -> Iterator[Tell]:
    """What is done now, on standard error: a bar on a terminal, else one line for each trial."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    out = Console(stderr=True, highlight=False)
    if not out.is_terminal:
        said: set[str] = set()

        def line(doing: str, _share: float) -> None:
            if doing not in said:
                said.add(doing)
                sys.stderr.write(f"{doing}\n")

        yield line
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda doing, share: progress.update(task, description=doing, completed=share)


_HEADS = ("trial", "I/Os per s", "MB/s", "p50 ms", "p99 ms", "CPUs")
_SIZE_HEADS = ("sizes in turn, depth 1", "read p50 ms", "p95 ms", "write p50 ms", "p95 ms")
_TCP_HEADS = (
    "TCP of one connection",
    "rtt ms",
    "MSS",
    "cwnd KiB",
    "own window",
    "array's",
    "sends MB/s",
    "busy %",
    "rwnd %",
    "sndbuf %",
)
"""Windows in KiB; rwnd and sndbuf are shares of busy."""


def _lines(found: Survey) -> Iterator[str]:
    """The path, what was negotiated, the trials, the limit and what to try."""
    seen = found.evidence
    if seen.measured:
        session = seen.measured["floor"].session
        yield f"path    {session.get('local_address', '?')} -> {session.get('peer_address', '?')}{_port(found)}"
        yield f"login   {_negotiated(session)}"
    yield f"frames  {_frames(found)}"
    if seen.adapter:
        yield f"adapter {_adapter(seen.adapter)}"
    if seen.measured:
        yield from _trials(found)
    yield ""
    yield f"limit: {found.diagnosis.sentence}"
    yield from (f"note:  {note}" for note in found.diagnosis.notes)
    for number, hint in enumerate(found.diagnosis.hints, 1):
        proof = f"`linerate run {hint.study}`" if hint.study else "a second probe"
        yield f"try {number}: {hint.setting}: {hint.why}; {proof} shows what it brings"


def _trials(found: Survey) -> Iterator[str]:
    seen = found.evidence
    raw = (_raw_row(one) for one in seen.raw)
    yield from _table([_HEADS, *(_row(one) for one in seen.measured.values()), *raw])
    for name, why in seen.skipped.items():
        yield f"not tried: {name}: {why}"
    if "write" not in {*seen.measured, *seen.skipped}:
        yield "not tried: writes; they destroy data (--write)"
    if seen.sizes:
        yield from _table([_SIZE_HEADS, *_size_rows(seen.sizes)])
    states = [(one.trial.title, one.tcp_state) for one in seen.bulk if one.tcp_state is not None]
    if states:
        yield from _table([_TCP_HEADS, *(_tcp_row(title, state) for title, state in states)])


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """An empty line, then the rows: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield ""
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *cells])


def _port(found: Survey) -> str:
    seen = found.evidence
    if not seen.port:
        return ""
    rate = f", {seen.port_mbit_s:,.0f} Mbit/s" if seen.port_mbit_s else ""
    mtu = f", MTU {seen.frames.port_mtu_bytes}" if seen.frames.port_mtu_bytes else ""
    return f" (port {seen.port}{rate}{mtu})"


def _frames(found: Survey) -> str:
    frames = found.evidence.frames
    if frames.why_not:
        return f"not known: {frames.why_not}"
    parts = [f"up to {frames.largest_bytes} bytes arrive"]
    if frames.refused:
        parts.append(f"{min(frames.refused)} and more are refused")
    if frames.lost:
        parts.append(f"{', '.join(map(str, frames.lost))} vanish")
    return f"{'; '.join(parts)}; round trip {frames.rtt_ms:.3g} ms"


def _adapter(settings: Mapping[str, Value]) -> str:
    """By the names of `linerate host show`."""
    from linerate.host import named

    return ", ".join(f"{name} {named(name).text(value)}" for name, value in settings.items())


def _negotiated(session: Any) -> str:
    keys = (
        ("header digest", "header_digest"),
        ("data digest", "data_digest"),
        ("first burst", "first_burst_bytes"),
        ("largest burst", "max_burst_bytes"),
        ("data segment", "peer_max_recv_data_segment_bytes"),
        ("receive buffer", "recv_buffer_bytes"),
        ("MSS", "snd_mss"),
        ("congestion control", "congestion_control"),
    )
    return ", ".join(f"{title} {session[key]}" for title, key in keys if key in session)


def _row(one: TrialResult) -> tuple[str, ...]:
    return (
        one.trial.title,
        f"{one.iops:,.0f}",
        f"{one.mb_s:,.1f}",
        f"{one.p50_ms:.3g}",
        f"{one.p99_ms:.3g}",
        f"{one.load_cores:.2f}",
    )


def _size_rows(sizes: Sequence[SizeTimes]) -> Iterator[tuple[str, ...]]:
    for size_bytes in dict.fromkeys(one.size_bytes for one in sizes):
        row = [f"{size_bytes} bytes"]
        for is_write in (False, True):
            mine = [one for one in sizes if (one.size_bytes, one.is_write) == (size_bytes, is_write)]
            row += [f"{mine[0].p50_ms:.3g}", f"{mine[0].p95_ms:.3g}"] if mine else ["-", "-"]
        yield tuple(row)


def _tcp_row(title: str, state: TcpState) -> tuple[str, ...]:
    return (
        title,
        f"{state.rtt_ms:.3g}",
        f"{state.mss_bytes}",
        f"{state.congestion_window_bytes / 1024:,.0f}",
        f"{state.receive_window_bytes / 1024:,.0f}",
        f"{state.peer_window_bytes / 1024:,.0f}" if state.peer_window_bytes else "?",
        "-" if state.delivery_mb_s is None else f"{state.delivery_mb_s:,.1f}",
        f"{state.busy_percent:.0f}",
        f"{state.rwnd_limited_percent:.0f}",
        f"{state.sndbuf_limited_percent:.0f}",
    )


def _raw_row(one: RawRate) -> tuple[str, ...]:
    return (
        f"raw TCP {'to' if one.is_to_peer else 'from'} the far side",
        "-",
        f"{one.mb_s:,.1f}",
        "-",
        "-",
        "-",
    )


def _object(found: Survey) -> dict[str, Any]:
    """For programs; units in the names."""
    return {
        "schema": "linerate.probe/1",
        "limit": found.diagnosis.limit,
        "sentence": found.diagnosis.sentence,
        "notes": found.diagnosis.notes,
        "hints": [asdict(hint) for hint in found.diagnosis.hints],
        "port": found.evidence.port,
        "port_mbit_s": found.evidence.port_mbit_s,
        "adapter": dict(found.evidence.adapter),
        "below": asdict(found.evidence.below) if found.evidence.below else None,
        "frames": asdict(found.evidence.frames),
        "trials": {name: asdict(one) for name, one in found.evidence.measured.items()},
        "raw": [asdict(one) for one in found.evidence.raw],
        "sizes": [asdict(one) for one in found.evidence.sizes],
        "skipped": dict(found.evidence.skipped),
    }
