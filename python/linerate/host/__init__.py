"""Host settings: what they are, what they stand at, and how to change them and put everything back.

Open this file first. `catalogue` is the list: MTU, offloads, rings, TCP, the iSCSI session, each with unit,
range, the names that Linux, Windows and the published studies use, and what it does to whom. `apply` changes
a `HostTarget` (this host, or a network namespace) under a `Journal`; `restore` undoes what a journal holds,
also after a crash. `linux` turns the knobs; `windows` writes PowerShell. Settings that live elsewhere (a
session, a lab's fabric) go through a `Writer` that their owner gives.
"""

from linerate.host.catalogue import catalogue, named, parse_settings
from linerate.host.change import Applied, Shown, apply, read
from linerate.host.hand import Refusal, Writer, Writers
from linerate.host.journal import Change, Journal, read_journal
from linerate.host.plan import HostPlan, Step, plan
from linerate.host.session import SessionSettings, session_options, with_session_settings
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
from linerate.host.undo import Restored, restore
from linerate.host.windows.script import apply_script, undo_script, windows_refusals

__all__ = [
    "MAX",
    "Applied",
    "Catalogue",
    "Change",
    "Choice",
    "HostPlan",
    "HostTarget",
    "Journal",
    "Names",
    "Number",
    "Refusal",
    "Restored",
    "Scope",
    "SessionSettings",
    "Setting",
    "Shown",
    "Step",
    "Switch",
    "Value",
    "Where",
    "Writer",
    "Writers",
    "apply",
    "apply_script",
    "catalogue",
    "inside",
    "named",
    "parse_settings",
    "plan",
    "read",
    "read_journal",
    "restore",
    "session_options",
    "undo_script",
    "windows_refusals",
    "with_session_settings",
]
