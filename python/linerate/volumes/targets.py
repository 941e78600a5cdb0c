"""What a portal offers: its targets and LUNs, asked for without writing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from linerate import _core
from linerate.errors import BY_BLAME, LinerateError

GIVE_SECRET = (
    "give user and secret: iscsi://user%secret@host, or LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD"
)
LOGIN_TIMEOUT_S = 15.0


def discovered(url: str, login_timeout_s: float = LOGIN_TIMEOUT_S) -> Sequence[Mapping[str, Any]]:
    """The targets behind `iscsi://[user%secret@]host[:port][/target]`, each as `linerate discover --json` has it.

    Raises LinerateError, by whose fault it is, when the portal cannot be asked. No message shows the secret.
    """
    try:
        return _core.discover(url, dumps({"login_timeout_s": login_timeout_s}))
    except LinerateError as error:
        raise type(error)(_with_place_once(error.message), error.hint) from error


def fail_if_shut_out(targets: Sequence[Mapping[str, Any]]) -> None:
    """Raises LinerateError, by whose fault it is, when every target has refused the login."""
    if not targets or any(target["failure"] is None for target in targets):
        return
    worst = next((target for target in targets if target["wrong_credentials"]), targets[0])
    hint = "see the array's log, and the network on the way to it"
    if worst["wrong_credentials"]:
        hint = GIVE_SECRET
    elif worst["blame"] == "user":
        hint = "see which initiators the array lets in, and which name this one has"
    raise BY_BLAME[worst["blame"]](worst["failure"], hint)


def _with_place_once(message: str) -> str:
    """A message without the place that it begins with, if it names that again."""
    place, _, rest = message.partition(": ")
    return rest if place in rest else message
