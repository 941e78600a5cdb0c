"""The catalogue of settings: everything that a study can change, with title, explanation, range and default.

Open this file first. `catalogue()` has all settings by name. Entries of hosts and iSCSI sessions are in
`linerate.host.catalogue`, with the knobs that turn them. The others are here, by who applies them: `fabric`, `array`,
`load`, `smb`, `backup`, `multipath`, `faults`. To add one, add an entry to the `SETTINGS` of its module; its
`ModelField` says which field of the topology or of the run it writes. `make docs` writes the tables of the
documentation from the catalogue.
"""

from linerate.settings.array import CPU, REPLICATION
from linerate.settings.catalogue import (
    AnySetting,
    applied_by,
    by_applier,
    catalogue,
    find,
    is_of_topology,
    model_field,
)
from linerate.settings.fabric import OF_ADAPTERS, RING_FRAMES_MAX, USER_FABRIC, USER_FABRIC_ALWAYS
from linerate.settings.faults import FAULTS, faults_text
from linerate.settings.load import ARRAY, HOST, LAN, OTHER_SESSION
from linerate.settings.multipath import PATHS
from linerate.settings.san_setting import ModelField, RunPart, SanSetting
from linerate.settings.smb import SMB_TRANSPORT

__all__ = [
    "ARRAY",
    "CPU",
    "FAULTS",
    "HOST",
    "LAN",
    "OF_ADAPTERS",
    "OTHER_SESSION",
    "PATHS",
    "REPLICATION",
    "RING_FRAMES_MAX",
    "SMB_TRANSPORT",
    "USER_FABRIC",
    "USER_FABRIC_ALWAYS",
    "AnySetting",
    "ModelField",
    "RunPart",
    "SanSetting",
    "applied_by",
    "by_applier",
    "catalogue",
    "faults_text",
    "find",
    "is_of_topology",
    "model_field",
]
