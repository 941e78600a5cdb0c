"""A program: studies of two hosts that are namespaces of a lab, reached by a command in place of ssh. Prints JSON.

The command of the study runs in the lab's `control` namespace, as a machine beside the SAN does, and takes part as a
third host with a volume that is nowhere. What is passed to
`linerate run` is on this program's command line; `kill` kills it when the settings of the first case hold.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from linerate.errors import LinerateError
from linerate.host import HostTarget, read
from linerate.lab import Lab, enter

TOPOLOGY = """\
name = "pair"
fabric = "kernel"

[link]
rate = "1gbit"

[[switch]]
name = "sw1"

[[host]]
name = "h"
count = 2
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v", size = "16m", count = 2 }]
"""

STUDY = """\
title = "Two hosts"

[[san]]
name = "pair"
control_address = "CONTROL"

HOSTS

[[workload]]
name = "read"
file = "load.toml"
metric = "iops"
elapsed = "0.6s"
warm_up = "0s"

[baseline]
settings = { mtu = 1450, delayed_ack = "on" }

[[case]]
name = "acknowledge at once"
settings = { delayed_ack = "off" }

[[case]]
name = "small"
settings = { mtu = 1400 }

[[case]]
name = "engine"
settings = { toe = "on" }

[repeat]
blocks_min = 1
blocks_max = 1
baselines = 1
settle = "0s"
"""
LOAD = """\
volume = [{ name = "v1" }, { name = "v2" }, { name = "v3" }]
stream = [{ name = "reads", size = "4k", rate = 900 }]
"""


def port(lab: Lab, host: str) -> str:
    """Of the SAN, or the control network's own for the machine beside it."""
    if host != "control":
        return "p0"
    shown = json.loads(lab.execute(host, ["ip", "-json", "link"]).stdout)
    return next(str(link["ifname"]) for link in shown if link["ifname"] != "lo")


def values_now(targets: list[HostTarget]) -> dict[str, Any]:
    """MTU and delayed ACK of each host."""
    return {one.name: [shown.value for shown in read(one, ["mtu", "delayed_ack"])] for one in targets}


def study(lab: Lab, folder: Path) -> list[str]:
    """The command that runs the study, from the control network."""
    hosts = ""
    for number, host in enumerate(("h1", "h2")):
        url = lab.volume_urls(host)[number].url
        hosts += f"[[san.host]]\nname = {json.dumps(host)}\ndevices = ['p0']\nvolumes = [{json.dumps(url)}]\n"
        hosts += (
            f"reach = {json.dumps(list(lab.inside(host, ())))}\npython = {json.dumps(sys.executable)}\n\n"
        )
    hosts += f"[[san.host]]\nname = 'me'\ndevices = ['{port(lab, 'control')}']\nvolumes = ['null:16m']\n"
    text = STUDY.replace("HOSTS", hosts).replace("CONTROL", str(lab.topology.control_address))
    (folder / "two.toml").write_text(text, "ascii")
    (folder / "load.toml").write_text(LOAD, "ascii")
    run = [sys.executable, "-m", "linerate.cli", "run", "two.toml", "--output", "out"]
    return ["nsenter", f"--net={lab.namespace('control').path}", *run]


def main(folder: Path, words: list[str]) -> None:
    """Builds, runs, looks."""
    from linerate.san import parse_topology

    os.chdir(folder)
    with Lab.up(parse_topology(TOPOLOGY), name=f"study-{os.getpid()}") as lab:
        hosts = [
            HostTarget(name, (port(lab, name),), lab.namespace(name).path) for name in ("h1", "h2", "control")
        ]
        command = study(lab, folder)
        before = values_now(hosts)
        during = before
        if words == ["kill"]:
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                while process.poll() is None and any(during[name] == before[name] for name in before):
                    signal.sigtimedwait([], 0.05)
                    during = values_now(hosts)
                process.kill()
            code, out, err = process.returncode, "", ""
            for _ in range(600):
                if values_now(hosts[:2]).items() <= before.items():  # they notice by themselves
                    break
                signal.sigtimedwait([], 0.05)
            restore = [*command[:2], sys.executable, "-m", "linerate.cli", "host", "restore"]
            subprocess.run([*restore, "out/settings.jsonl"], check=True, stdout=subprocess.DEVNULL)
        else:
            done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
            code, out, err = done.returncode, done.stdout, done.stderr
        found = {"code": code, "out": out, "err": err}
        print(json.dumps({**found, "before": before, "during": during, "after": values_now(hosts)}))


if __name__ == "__main__":
    try:
        enter()
    except LinerateError as error:
        sys.exit(f"no right to build a lab: {error}")
    main(Path(sys.argv[1]), sys.argv[2:])
