"""`linerate lab cable`, `fault` and `heal`: what fails in a lab, at once or at a time, for good or for a while."""

from __future__ import annotations

import threading
import time
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from linerate.errors import UserError

if TYPE_CHECKING:
    from linerate.san import Fault

cable = typer.Typer(help="Pull a cable, and plug it in again.", no_args_is_help=True)

_Link = Annotated[str, typer.Argument(metavar="LINK", help="`host.port`, `array.port`, or a trunk.")]
_At = Annotated[str, typer.Option("--at", metavar="TIME", help="From now: 10s. At once.")]
_For = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="How long: 5s. Until it is healed by hand.")
]
_Lab = Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Which lab, where several are up.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object per instant.")]
_Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KIND TARGET [VALUE]", help="controller a1.A; one_way h1.p0 from; mtu h1.p0 1500."
    ),
]


@cable.command()
def pull(link: _Link, at: _At = "0s", lasts: _For = None, lab: _Lab = None, json: _Json = False) -> None:
    """Pull a cable: the link is down both ways, and the host sees it. With --for, plug it in again."""
    _carry_out(f"cable {link}", at, lasts, lab, json)


@cable.command()
def plug(link: _Link, at: _At = "0s", lab: _Lab = None, json: _Json = False) -> None:
    """Plug a cable in again."""
    from linerate.lab import Lab
    from linerate.san import parse_fault

    fault = _timed(parse_fault(f"cable {link}"), at, None)
    with Lab.find(lab) as found:
        threading.Event().wait(fault.at_s)
        _tell(fault, "healed", found.plug(link), json)


def fault(
    words: _Words = None, at: _At = "0s", lasts: _For = None, lab: _Lab = None, json: _Json = False
) -> None:
    """Let something fail: cable, switch, port, controller, one_way, flap or mtu, and what it hits."""
    _carry_out(" ".join(words or ()), at, lasts, lab, json)


def heal(words: _Words = None, lab: _Lab = None, json: _Json = False) -> None:
    """Heal a fault, or without words all that are in force."""
    from linerate.lab import Lab
    from linerate.san import parse_fault

    with Lab.find(lab) as found:
        meant = (parse_fault(" ".join(words)),) if words else found.faults
        for one in meant:
            _tell(one, "healed", found.heal(one), json)


def _carry_out(text: str, at: str, lasts: str | None, lab: str | None, json: bool) -> None:
    from linerate.lab import Lab
    from linerate.san import links_hit, parse_fault

    fault = _timed(parse_fault(text), at, lasts)
    with Lab.find(lab) as found:
        links_hit(found.topology, fault)  # what is not there is told now, not when its time has come
        threading.Event().wait(fault.at_s)
        at_ns = found.fault(fault)
        try:
            _tell(fault, "fault", at_ns, json)
            if fault.for_s is not None:
                threading.Event().wait(max(0.0, fault.for_s - (time.monotonic_ns() - at_ns) * 1e-9))
        finally:  # also after Ctrl-C
            if fault.for_s is not None:
                _tell(fault, "healed", found.heal(fault), json)


def _timed(fault: Fault, at: str, lasts: str | None) -> Fault:
    """The fault with the times of the options, where they are given."""
    from linerate.quantity import parse_time_s

    times: dict[str, float] = {}
    for option, name, text in (("--at", "at_s", at), ("--for", "for_s", lasts)):
        try:
            if text is not None and text != "0s":
                times[name] = parse_time_s(text)
        except ValueError as error:
            raise UserError(f"{option}: {error}", "see `linerate lab cable pull --help`") from error
    return type(fault).model_validate(fault.model_dump() | times)


def _tell(fault: Fault, what: str, at_ns: int, json: bool) -> None:
    if json:
        told = {"schema": "linerate.lab-fault/1", "fault": fault.label, "what": what, "monotonic_ns": at_ns}
        typer.echo(dumps(told))
    else:
        typer.echo(f"{fault.label}  {'healed' if what == 'healed' else 'in force'}")
