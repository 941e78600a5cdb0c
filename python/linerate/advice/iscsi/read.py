"""Asks an array what it tells an initiator. Nothing is written."""

from __future__ import annotations

import os

from linerate.advice.facts import SanFactSheet
from linerate.advice.iscsi.sheet import KnownNetworks, array_sheet
from linerate.advice.linux.network import addresses
from linerate.advice.linux.source import LinuxSource
from linerate.errors import HostError, UserError
from linerate.volumes.targets import discovered, fail_if_shut_out
from linerate.workload.url import parse_iscsi_portal


def read_array(text: str) -> SanFactSheet:
    """The facts of the array behind `iscsi://[user%secret@]host[:port][/target]`.

    Raises UserError for a URL that cannot be used, and the error of who is to blame where the array cannot be asked,
    shows no target, or lets this host in to none. No message shows the secret.
    """
    portal = parse_iscsi_portal(text, os.environ)
    targets = discovered(portal.url)
    if not targets:
        what = "this target" if portal.target else "a target"
        raise UserError(
            f"{portal.shown}: the array does not show {what} to this host",
            "`linerate discover` lists what it shows; see which initiators the array lets in",
        )
    fail_if_shut_out(targets)
    return array_sheet(portal.place, targets, _networks_of_this_host())


def _networks_of_this_host() -> KnownNetworks:
    try:
        return KnownNetworks(tuple(one.network for one in addresses(LinuxSource())))
    except HostError as error:
        return KnownNetworks((), error.message)
