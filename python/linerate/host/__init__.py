"""Host settings: what they are, what they stand at, and how to change them and put everything back.

Open this file first. `catalogue` is the list: MTU, offloads, rings, TCP, the iSCSI session, each with unit,
range, the names that Linux, Windows and the published studies use, and what it does to whom. `apply` changes
a `HostTarget` (this host, or a network namespace) under a `Journal`; `restore` undoes what a journal holds,
also after a crash. `linux` turns the knobs; `windows` writes PowerShell. Settings that live elsewhere (a
session, a lab's fabric) go through a `Writer` that their owner gives.
"""

from linerate.host.catalogue import catalogue, named, parse_settings
from linerate.host.change import Applied, Refusal, Writer, Writers
from linerate.host.setting import (
    MAX,
    Catalogue,
    Choice,
    Names,
    Number,
    Scope,
    Setting,
    Switch,
    Value,
    Where,
)
from linerate.host.target import HostTarget, inside

__all__ = [
    "MAX",
    "Applied",
    "Catalogue",
    "Choice",
    "HostTarget",
    "Names",
    "Number",
    "Refusal",
    "Scope",
    "Setting",
    "Switch",
    "Value",
    "Where",
    "Writer",
    "Writers",
    "catalogue",
    "inside",
    "named",
    "parse_settings",
]
