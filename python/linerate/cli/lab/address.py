"""`linerate lab address`: gives an interface of a node another address while everything runs, or takes one away."""

from __future__ import annotations

from json import dumps
from typing import Annotated

import typer

app = typer.Typer(help="Give a port another address, or take one away.", no_args_is_help=True)

_Node = Annotated[str, typer.Argument(metavar="NODE", help="A host or an array.")]
_Interface = Annotated[str, typer.Argument(metavar="INTERFACE", help="As `ip link` shows it there: p0.")]
_Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="IPv4, in the interface's network.")]
_Lab = Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Which lab, where several are up.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


@app.command()
def add(node: _Node, interface: _Interface, address: _Address, lab: _Lab = None, json: _Json = False) -> None:
    """Add an address. An array serves it at once."""
    from linerate.lab import Lab

    with Lab.find(lab) as found:
        _tell(node, interface, found.add_address(node, interface, address), json)


@app.command()
def remove(
    node: _Node, interface: _Interface, address: _Address, lab: _Lab = None, json: _Json = False
) -> None:
    """Remove an address, also one that the topology gave."""
    from linerate.lab import Lab

    with Lab.find(lab) as found:
        _tell(node, interface, found.remove_address(node, interface, address), json)


def _tell(node: str, interface: str, addresses: tuple[str, ...], json: bool) -> None:
    if json:
        typer.echo(
            dumps(
                {
                    "schema": "linerate.lab-address/1",
                    "node": node,
                    "interface": interface,
                    "addresses": addresses,
                }
            )
        )
    else:
        typer.echo(f"{node}.{interface}  {', '.join(addresses) or 'no address'}")
