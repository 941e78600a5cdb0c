"""The laboratory: a SAN's topology made real on one Linux machine, and taken away again without a trace.

Open this file first. `Lab.up` turns a `linerate.san.Topology` into network namespaces: one per host, switch and array,
joined by links of the rates that the topology gives them, with real arrays serving inside. What a study needs of it:

    enter()                                   # once, first of all: a user namespace when not root
    with Lab.up(topology) as lab:
        lab.volume_urls("h1")                 # what the host's load may open, and over which array port
        lab.namespace("h1").path              # where its threads belong
        lab.change_link("h1.p0", mtu=9000)    # settings of links, adapters and switches, read back
        lab.counters()                        # CPU per side, TCP, drops: cumulative, flat, with units

One process per lab holds everything: the supervisor (`linerate.lab.supervisor`). Its namespaces have no names and no
files; only its descriptors keep them. It is the first process of a process namespace that holds all programs of the
lab. When the supervisor ends, for any reason, the kernel ends all of them and removes every namespace and link:
there is no state to clean up, and nothing that a lab did not make itself can be reached from it. An attached lab ends
with the command that made it; a detached one (`linerate lab up`) stays until `linerate lab down`. Labs are found by an
abstract Unix socket, `@linerate-lab/<uid>/<name>`.

Two fabrics carry frames. `linerate.lab.kernel` uses bridges and HTB at the switches' egress: quick to build, but it has
rate, MTU and buffers only. `linerate.lab.fabric` is a process that is all adapters, links and switches at once: exact
latency, loss, flow control, ETS, rings, moderation. `Lab.up` takes the kernel's unless something asks for more, and the
facts of every run name the one that was used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linerate.lab.enter import enter, may_build

if TYPE_CHECKING:
    from linerate.lab.lab import FabricChoice, Lab, Namespace, Running, VolumeUrl, running, utilisation
    from linerate.lab.machine import Probed, probe

__all__ = [
    "FabricChoice",
    "Lab",
    "Namespace",
    "Probed",
    "Running",
    "VolumeUrl",
    "enter",
    "may_build",
    "probe",
    "running",
    "utilisation",
]

_OF_THE_MACHINE = ("Probed", "probe")


def __getattr__(name: str) -> Any:
    """Loads the larger modules when they are first asked for: `enter` comes before them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = "linerate.lab.machine" if name in _OF_THE_MACHINE else "linerate.lab.lab"
    return getattr(import_module(home), name)
