"""Which settings volumes on SMB shares have, and which only LUNs have.

A case with a setting that no volume of its SAN has is not applicable: it would compare the baseline with itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from linerate.host import catalogue as host_catalogue
from linerate.settings import applied_by, model_field
from linerate.study.laboratory.multipath import is_of_paths
from linerate.study.model import Settings

NO_SHARE = "no volume of this SAN is a file on an SMB share"
NO_LUN = "every volume of this SAN is a file on an SMB share: it has neither iSCSI sessions nor several paths"
_OF_EVERY_SESSION = ("outstanding", "sessions_per_volume")
_OF_LUNS = ("load.session",)


def unfit_for(are_shares: Iterable[bool], settings: Settings) -> dict[str, str]:
    """Setting -> why these volumes cannot have it, of all settings that they cannot have."""
    of_shares = list(are_shares)
    refused: dict[str, str] = {}
    for name in settings:
        if is_of_shares(name) and not any(of_shares):
            refused[name] = NO_SHARE
        elif _is_of_luns(name) and of_shares and all(of_shares):
            refused[name] = NO_LUN
    return refused


def is_of_shares(name: str) -> bool:
    """Whether a setting is one of the SMB sessions in which files on shares are opened."""
    field = model_field(name)
    return field is not None and field.part == "smb"


def _is_of_luns(name: str) -> bool:
    of_session = name in host_catalogue() and applied_by(name) == "load" and name not in _OF_EVERY_SESSION
    return of_session or is_of_paths(name) or name in _OF_LUNS
