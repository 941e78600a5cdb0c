"""A laboratory of hosts that exist: this machine, with devices and volumes that the study file names.

Settings of the host are written through `linerate.host` under a journal that lies in the study directory, so that
`linerate host restore` puts them back if this process is killed. What stands around the host (links, switches) is
nobody's to change from here: such settings are refused. A host that is reached by SSH is refused too: a study of it is
run on that host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from linerate.errors import InternalError, UserError
from linerate.host import HostTarget, Journal, catalogue
from linerate.study.laboratory.base import Measured, SetUp
from linerate.study.laboratory.host_settings import HostSettings
from linerate.study.laboratory.measure import Placed, Run, measure
from linerate.study.laboratory.settings import hand_of
from linerate.study.model import RealHost, San, Settings, Workload

JOURNAL = "settings.jsonl"


class HostLaboratory:
    """This machine as a study's host. `folder` is the study directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._host: RealHost | None = None
        self._held: HostSettings | None = None
        self._stack = ExitStack()
        self._settings: Settings = {}

    def bring_up(self, san: San, cases: Iterable[Settings]) -> Mapping[str, Any]:
        """See `Laboratory`. What an earlier process left changed is put back first."""
        self.close()
        if len(san.hosts) != 1 or san.hosts[0].ssh is not None:
            raise UserError(
                f"{san.name} has hosts other than this machine",
                "run the study on that host, as its only [[san.host]] and without ssh",
            )
        self._host = san.hosts[0]
        journal = self._stack.enter_context(Journal(self._folder / JOURNAL))
        self._held = HostSettings(HostTarget(self._host.name, self._host.devices), journal)
        self.restore()
        return {"fabric": "", "host": self._host.name, "devices": ", ".join(self._host.devices)}

    def apply(self, settings: Settings) -> SetUp:
        """See `Laboratory`."""
        _, held = self._opened()
        refused = {name: "it is not this host's to change" for name in settings if _is_around(name)}
        done = held.hold({name: value for name, value in settings.items() if _is_of_host(name)})
        refused |= done.refused
        self._settings = {name: value for name, value in settings.items() if name not in refused}
        return SetUp({**self._settings, **done.readback}, refused)

    def measure(self, workload: Workload, directory: Path, record: Mapping[str, Any]) -> Measured:
        """See `Laboratory`."""
        host, _ = self._opened()
        if workload.lan:
            raise UserError(f"{workload.name}: LAN streams need a topology", "leave lan out on real hosts")
        volumes = [Placed(url) for url in host.volumes]
        return measure(Run(workload, self._settings, volumes, directory, record))

    def restore(self) -> None:
        """See `Laboratory`. Raises HostError when a setting cannot be put back."""
        if self._held is not None:
            self._held.restore()

    def close(self) -> None:
        """See `Laboratory`."""
        try:
            self.restore()
        finally:
            self._stack.close()
            self._host = self._held = None

    def _opened(self) -> tuple[RealHost, HostSettings]:
        if self._host is None or self._held is None:
            raise InternalError("no SAN is up")
        return self._host, self._held


def _is_around(name: str) -> bool:
    """The setting is a link's or a switch's."""
    return hand_of(name) == "network" and name not in catalogue()


def _is_of_host(name: str) -> bool:
    """On a host that exists the catalogue's adapter settings are the adapter's own."""
    return name in catalogue() and hand_of(name) != "load"
