"""Host settings: what they are, what they stand at, and how to change them and put everything back.

Open this file first. `catalogue` is the list: MTU, offloads, rings, TCP, the iSCSI session, each with unit,
range, the names that Linux, Windows and the published studies use, and what it does to whom. `apply` changes
a `HostTarget` (this host, or a network namespace) under a `HostJournal`; `restore` undoes what a journal holds,
also after a crash. `HostSettings` holds settings from one set of values to the next, `serve` does so for a program
elsewhere. `linux` turns the knobs; `windows` writes PowerShell. What an iSCSI session asks for at login is no
knob of a host: `session` puts it into a run. Nothing else here knows of runs, whose models take long to import.
"""

from linerate.host.agent import serve
from linerate.host.catalogue import catalogue, named, parse_settings, unproven
from linerate.host.change import Applied, Shown, apply, read
from linerate.host.device_setting import Refusal
from linerate.host.host_settings import HostSettings, SetUp
from linerate.host.journal import HostChange, HostJournal, read_journal
from linerate.host.journal_index import default_journal, known_journals, state_folder
from linerate.host.namespace import find_namespace, namespace_cookie
from linerate.host.plan import HostPlan, PlannedSetting, iscsi_record, plan
from linerate.host.setting import Catalogue, HostSetting, Names, Scope, Where
from linerate.host.target import HostTarget, inside
from linerate.host.undo import Restored, restore
from linerate.host.windows.script import apply_script, script_with_undo, undo_script, windows_refusals

__all__ = [
    "Applied",
    "Catalogue",
    "HostChange",
    "HostJournal",
    "HostPlan",
    "HostSetting",
    "HostSettings",
    "HostTarget",
    "Names",
    "PlannedSetting",
    "Refusal",
    "Restored",
    "Scope",
    "SetUp",
    "Shown",
    "Where",
    "apply",
    "apply_script",
    "catalogue",
    "default_journal",
    "find_namespace",
    "inside",
    "iscsi_record",
    "known_journals",
    "named",
    "namespace_cookie",
    "parse_settings",
    "plan",
    "read",
    "read_journal",
    "restore",
    "script_with_undo",
    "serve",
    "state_folder",
    "undo_script",
    "unproven",
    "windows_refusals",
]
