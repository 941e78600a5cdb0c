"""The verbs of `linerate lab`: a virtual SAN brought up, looked at, changed and taken down."""

from __future__ import annotations

import os
import threading
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from linerate.cli.job.flags import WaitForLab
from linerate.cli.lab import address, faults
from linerate.errors import LinerateError, UserError

if TYPE_CHECKING:
    from linerate.lab import Lab
    from linerate.lab.lan import LanTraffic

app = typer.Typer(help="Build and use a virtual SAN on this machine.", no_args_is_help=True)
app.add_typer(faults.cable, name="cable")
app.command("fault")(faults.fault)
app.command("heal")(faults.heal)
app.add_typer(address.app, name="address")

_Name = Annotated[str | None, typer.Option("--lab", metavar="NAME", help="Which lab, where several are up.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
_Node = Annotated[str, typer.Argument(metavar="NODE", help="A host, an array, a switch, or `control`.")]
_COMMAND = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_FABRICS = ("auto", "kernel", "user")
_TOOLS = ("auto", "iperf3", "own")


@app.callback()
def _lab() -> None:
    """Build and use a virtual SAN on this machine: hosts, switches and arrays in network namespaces.

    Neither root nor hardware is needed. Nothing outside a lab is touched, and nothing of it stays when it is down.
    """


@app.command()
def up(
    topology: Annotated[
        str, typer.Argument(metavar="TOPOLOGY", help="A topology file, or a shipped one by name: base-san.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Of the lab; the topology's if not given.")
    ] = None,
    fabric: Annotated[
        str, typer.Option("--fabric", metavar="|".join(_FABRICS), help="What carries the frames.")
    ] = "auto",
    wait: WaitForLab = False,
    json: _Json = False,
) -> None:
    """Bring up a virtual SAN; it stays until `linerate lab down`."""
    from linerate.cli.study.laboratory import tell_waiting
    from linerate.lab import FabricChoice, Lab, protocol
    from linerate.lab.machine_lock import machine_lock
    from linerate.san import load_topology

    if fabric not in _FABRICS:
        raise UserError(f"--fabric {fabric}: there is no such fabric", f"choose one of {', '.join(_FABRICS)}")
    wanted = load_topology(topology)
    called = name or protocol.name_after(wanted.name)
    with (
        machine_lock(f"lab up {called}", Path.cwd(), alone=False, wait=wait, tell=tell_waiting),
        Lab.up(wanted, fabric=cast("FabricChoice", fabric), name=called, detached=True) as lab,
    ):
        if json:
            typer.echo(dumps(_about(lab)))
            return
        _describe(lab, {})
        for line in _next_lines(lab):
            typer.echo(line)


def _next_lines(lab: Lab) -> list[str]:
    """How the lab is loaded, looked at and taken down."""
    host = lab.topology.hosts[0].name
    urls = [found.url for found in lab.volume_urls(host)]
    lines = [f"next: linerate lab shell {host}, linerate lab show, linerate lab down {lab.name}"]
    if urls:
        load = f"linerate run --preset anvil --target {urls[0]} --size 16m --elapsed 5"
        lines.append(f"load: linerate lab exec --lab {lab.name} {host} -- {load}")
    return lines


@app.command()
def show(
    lab: _Name = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, metavar="S", help="How long utilisation is measured.")
    ] = 1.0,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw it, too.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of --picture if it exists.")
    ] = False,
    json: _Json = False,
) -> None:
    """Show the labs that are up; of one lab the topology as it is now, and how busy its links are."""
    from linerate.lab import Lab, running, utilisation

    if picture is not None:
        from linerate.cli.numbers.outfile import consent_to_replace

        consent_to_replace([picture], overwrite)
    labs = running() if lab is None else []
    left_up = [one for one in labs if not one.attached]
    if lab is None and len(labs) != 1 and len(left_up) != 1:
        if json:
            typer.echo(dumps({"schema": "linerate.labs/1", "labs": [other.name for other in labs]}))
        for other in labs if not json else ():
            kept = "ends with its command" if other.attached else "detached"
            typer.echo(f"{other.name}  {other.topology}, {other.fabric} fabric, {kept}")
        if not labs and not json:
            typer.echo("no lab is up; `linerate lab up base-san` makes one")
        return
    with Lab.find(lab) as found:
        before = found.counters()
        threading.Event().wait(seconds)
        used = utilisation(found.now().line_rates, before, found.counters())
        topology = found.now()
        if json:
            typer.echo(dumps(_about(found) | {"utilisation": used}))
        else:
            _describe(found, used)
    if picture is not None:
        from linerate.cli.numbers.outfile import write_file
        from linerate.san import picture as draw

        write_file(picture, draw(topology, used).encode())


@app.command("exec", context_settings=_COMMAND)
def execute(context: typer.Context, node: _Node, lab: _Name = None) -> None:
    """Run a command inside a node: linerate lab exec h1 -- ip addr."""
    command = [word for number, word in enumerate(context.args) if not (number == 0 and word == "--")]
    if not command:
        raise UserError("no command was given", "write it after the node: linerate lab exec h1 -- ip addr")
    _become(node, command, lab)


@app.command()
def shell(node: _Node, lab: _Name = None) -> None:
    """Open a shell inside a node."""
    os.environ["PS1"] = f"[{node}] \\w\\$ "
    _become(node, [os.environ.get("SHELL", "/bin/sh")], lab)


def _become(node: str, command: list[str], name: str | None) -> None:
    from linerate.lab import Lab
    from linerate.lab.exec import run_inside

    with Lab.find(name) as lab:
        if login := lab.smb_login():
            # For the URLs of its NAS, which hold none.
            os.environ.setdefault("LINERATE_SMB_USER", login["user"])
            os.environ.setdefault("LINERATE_SMB_PASSWORD", login["secret"].get_secret_value())
        code = run_inside(lab.supervisor_pid, lab.namespace(node).path, command)
    raise typer.Exit(code)


@app.command()
def link(
    name: Annotated[str, typer.Argument(metavar="LINK", help="`host.port`, `array.port`, or a trunk.")],
    rate: Annotated[str | None, typer.Option("--rate", help="Line rate: 1gbit.")] = None,
    delay: Annotated[str | None, typer.Option("--delay", help="One way: 200us.")] = None,
    jitter: Annotated[
        str | None, typer.Option("--jitter", help="Added to the delay, at random: 20us.")
    ] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="Frames lost at random: 0.1%.")] = None,
    mtu: Annotated[int | None, typer.Option("--mtu", help="Largest IP packet in bytes.")] = None,
    plugged: Annotated[
        bool | None, typer.Option("--up/--down", help="Plug the cable in, or pull it.")
    ] = None,
    lab: _Name = None,
    json: _Json = False,
) -> None:
    """Show a link, or change it while it carries frames."""
    from linerate.lab import Lab
    from linerate.san import parse_delay_us, parse_rate, parse_share

    asked = {
        "rate_bits_per_s": _parsed("--rate", parse_rate, rate),
        "delay_us": _parsed("--delay", parse_delay_us, delay),
        "jitter_us": _parsed("--jitter", parse_delay_us, jitter),
        "loss": _parsed("--loss", parse_share, loss),
        "mtu": mtu,
        "up": plugged,
    }
    with Lab.find(lab) as found:
        now = found.change_link(name, **{key: value for key, value in asked.items() if value is not None})
    typer.echo(dumps(now.model_dump()) if json else f"{name}  {_link_text(now)}")


@app.command()
def lan(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A host, or one of its interfaces: h1.p0.")],
    sink: Annotated[str, typer.Argument(metavar="TO", help="A host, or one of its interfaces.")],
    rate: Annotated[str | None, typer.Option("--rate", help="At most: 100mbit. As much as goes.")] = None,
    connections: Annotated[int, typer.Option("--connections", min=1, max=128, metavar="N")] = 4,
    tool: Annotated[str, typer.Option("--tool", metavar="|".join(_TOOLS), help="What carries it.")] = "auto",
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.1, metavar="S", help="How long; until Ctrl-C.")
    ] = None,
    wait: WaitForLab = False,
    lab: _Name = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per second.")] = False,
) -> None:
    """Send TCP traffic between two hosts and print the received rate every second."""
    from linerate.cli.study.laboratory import tell_waiting
    from linerate.lab import Lab
    from linerate.lab.lan import LanTraffic, Tool, between
    from linerate.lab.machine_lock import machine_lock
    from linerate.san import parse_rate

    if tool not in _TOOLS:
        raise UserError(f"--tool {tool}: there is no such tool", f"choose one of {', '.join(_TOOLS)}")
    bits = _parsed("--rate", parse_rate, rate)
    with (
        machine_lock(f"lab lan {source} {sink}", Path.cwd(), alone=False, wait=wait, tell=tell_waiting),
        Lab.find(lab) as found,
    ):
        stream = between(found.topology, source, sink, connections=connections, rate_bits_per_s=bits)
        with LanTraffic(found, [stream], tool=cast(Tool, tool)) as traffic:
            if not json:
                typer.echo(f"{stream.source} -> {stream.sink}, {connections} connections, {traffic.tool}")
            _watch(traffic, seconds, json)


def _watch(traffic: LanTraffic, seconds: float | None, json: bool) -> None:
    from linerate.lab.lan import lan_mib_s

    before, left = traffic.counters(), seconds
    while left is None or left > 0:
        threading.Event().wait(min(1.0, left) if left is not None else 1.0)
        left = None if left is None else left - 1.0
        now = traffic.counters()
        passed = {name: now[name] - before[name] for name in now}
        again = sum(value for name, value in passed.items() if name.endswith("_retransmitted"))
        before = now
        told = {"schema": "linerate.lan/1", "mib_s": lan_mib_s(passed), "segments_retransmitted": again}
        text = f"{told['mib_s']:8.1f} MB/s  {again:.0f} TCP retransmits"
        typer.echo(dumps(told) if json else text)


@app.command()
def down(
    lab: Annotated[
        str | None, typer.Argument(metavar="[LAB]", help="Which lab, where several are up.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All labs of this user.")] = False,
) -> None:
    """Take a lab down; nothing of it stays."""
    from linerate.lab import Lab, protocol

    failed: LinerateError | None = None
    for name in protocol.names() if every else [lab]:
        try:
            with Lab.look(name) as found:
                found.down()
                typer.echo(f"{found.name} is down")
        except LinerateError as error:  # the others shall go down all the same
            if every and name not in protocol.names():
                continue  # it has gone meanwhile
            failed = failed or error
    if failed is not None:
        raise failed


@app.command()
def probe(json: _Json = False) -> None:
    """Check what this machine supports for a lab."""
    from linerate.lab import probe as try_out

    found = try_out()
    if json:
        typer.echo(dumps({"schema": "linerate.lab-probe/1", "probed": [part.as_object() for part in found]}))
    else:
        width = max(len(part.name) for part in found)
        for part in found:
            typer.echo(f"{'yes' if part.there else 'no ':3}  {part.name:{width}}  {part.remark}")
    if any(part.needed and not part.there for part in found):
        raise typer.Exit(1)


def _parsed(option: str, parse: Any, text: str | None) -> Any:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise UserError(f"{option}: {error}", "see `linerate lab link --help`") from error


def _link_text(link: Any) -> str:
    from linerate.san import delay_text, rate_text, share_text

    words = [rate_text(link.rate_bits_per_s), f"MTU {link.mtu}"]
    words += [f"delay {delay_text(link.delay_us)}"] if link.delay_us else []
    words += [f"jitter {delay_text(link.jitter_us)}"] if link.jitter_us else []
    words += [f"loss {share_text(link.loss)}"] if link.loss else []
    return ", ".join([*words, "up" if link.up else "pulled"])


def _describe(lab: Lab, used: dict[str, float]) -> None:
    from linerate.san import tree

    typer.echo(tree(lab.now(), used))
    if failed := lab.faults:
        typer.echo(f"in force: {', '.join(fault.label for fault in failed)}")
    why = f" ({'; '.join(lab.fabric_reasons)})" if lab.fabric_reasons else ""
    typer.echo(f"{lab.name} is up; the {lab.fabric} fabric carries its frames{why}")


def _about(lab: Lab) -> dict[str, Any]:
    return {
        "schema": "linerate.lab/1",
        "name": lab.name,
        "fabric": lab.fabric,
        "fabric_reasons": lab.fabric_reasons,
        "topology": lab.now().model_dump(mode="json"),
        "faults": [fault.label for fault in lab.faults],
        "namespaces": {node: lab.namespace(node).path for node in lab.nodes},
        "volumes": {
            host.name: {found.volume: found.url for found in lab.volume_urls(host.name)}
            for host in lab.topology.hosts
        },
    }
