"""All replications of an array that serves, as its control API uses them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from linerate.array.config import ArrayConfig
from linerate.array.control.client import ControlClient
from linerate.array.partners import Partner
from linerate.array.replication.job import Job
from linerate.array.replication.transfer import Ask
from linerate.errors import UserError


class Managed(Protocol):
    """What replication needs of `_core.Array`."""

    def manage(self, command_json: str, /) -> str:
        """Carries a command out."""


class Replicating:
    """Replicates while a `with` block lasts; a copy that is cut off goes on the next time."""

    def __init__(
        self, array: Managed, config: ArrayConfig, partners: Mapping[str, Ask] | None = None
    ) -> None:
        """`partners` says how to ask a partner, by name, where that is not over its control API."""
        self._array = array
        self._ended = threading.Event()
        known = {partner.name: partner for partner in config.partners}
        own = {volume.name for target in config.targets for volume in target.volumes}
        asks = dict(partners or {})
        self._jobs = {
            one.name: Job(
                one,
                known[one.partner],
                self._here,
                asks.get(one.partner) or _over_http(known[one.partner]),
                self._ended,
                is_origin=own.issuperset(one.volumes),
            )
            for one in config.replications
        }

    def __enter__(self) -> Self:
        """Starts the schedules."""
        for job in self._jobs.values():
            job.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops copying, and waits until nothing is under way here."""
        self._ended.set()
        for job in self._jobs.values():
            job.join()

    def replicate(self, replication: str) -> dict[str, Any]:
        """Begins a copy of the volumes as they are now, or goes on with one that stopped. Raises UserError."""
        job = self._job(replication)
        if job.role() == "replica":
            raise UserError(
                f"{replication} is a copy on this array", "replicate at the partner, or promote it here first"
            )
        job.ask()
        return {"replication": replication}

    def promote(self, replication: str, force: bool) -> dict[str, Any]:
        """Makes this array's copy the one that hosts use.

        The partner first sends what is missing and keeps hosts out, in the background; with `force` it is not asked.
        Raises UserError if it is so already, or if there is no whole copy here.
        """
        job = self._job(replication)
        if job.role() == "primary":
            raise UserError(f"hosts use {replication} here already", "promote it at the other array")
        if force:
            job.take_over_alone()
        else:
            job.ask(take_over=True)
        return {"replication": replication}

    def demote(self, replication: str) -> dict[str, Any]:
        """Makes this array's volumes the copy: hosts lose them, and the next copy takes back what only they have."""
        self._job(replication)
        self._here("replica_demote", {"group": replication})
        return {"replication": replication}

    def yield_to(self, partner: str, replication: str) -> dict[str, Any]:
        """A partner wants to take over; it asks again until the answer is "yielded". Raises UserError."""
        job = self._job(replication)
        if job.replication.partner != partner:
            raise UserError(f"{replication} is not replicated with {partner}", "compare both array files")
        return job.yield_()

    def status(self) -> list[dict[str, Any]]:
        """Each replication of the array file, as `ReplicationReport` has it."""
        return [job.status() for job in self._jobs.values()]

    def _job(self, name: str) -> Job:
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            raise UserError(f"there is no replication {name}", f"replications of the array file: {known}")
        return self._jobs[name]

    def _here(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self._array.manage(json.dumps({"verb": verb, **fields})))
        return reply


def _over_http(partner: Partner) -> Ask:
    assert partner.control is not None, "checked with the array file"
    authority = Path(partner.authority) if partner.authority else None
    return ControlClient(partner.control, partner=partner, certificate=authority).do
