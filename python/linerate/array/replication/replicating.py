"""All replications of an array that serves, as its control API uses them."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from linerate.array.config import ArrayConfig
from linerate.array.control.client import PartnerClient
from linerate.array.control.partnership import Partnership
from linerate.array.control.service import HELLO_VERB, Caller
from linerate.array.replication.job import Job
from linerate.array.replication.transfer import Ask
from linerate.errors import LinerateError, UserError


class Managed(Protocol):
    """What replication needs of `_core.Array`."""

    def manage(self, command_json: str, /) -> str:
        """Carries a command out."""


class Replicating:
    """Replicates while a `with` block lasts; a copy that is cut off goes on the next time."""

    def __init__(
        self,
        array: Managed,
        config: ArrayConfig,
        partnership: Partnership | None,
        partners: Mapping[str, Ask] | None = None,
    ) -> None:
        """`partnership`: needed by an array that has partners. `partners` says how to ask one, by name, where
        that is not by mutual TLS."""
        self._array = array
        self._ended = threading.Event()
        known = {partner.name: partner for partner in config.partners}
        own = {volume.name for target in config.targets for volume in target.volumes}
        self._asks: dict[str, Ask] = dict(partners or {})
        self._jobs: dict[str, Job] = {}
        if partnership is None:
            return
        for partner in config.partners:
            if partner.control is not None and partner.name not in self._asks:
                self._asks[partner.name] = PartnerClient(partner, partnership).do
        partnership.newcomer = self._greet
        for one in config.replications:
            pair = {"here": partnership.own.identity, "partner": partnership.identity_of(one.partner)}
            is_origin = own.issuperset(one.volumes)
            portal = known[one.partner].portal
            assert portal is not None, "checked with the array file"
            ways = (self._here, self._asks[one.partner])
            self._jobs[one.name] = Job(one, portal, pair, *ways, self._ended, is_origin=is_origin)

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
        if job.role() in ("replica", "promoting"):
            raise UserError(
                f"{replication} is a copy on this array", "replicate at the partner, or promote it here first"
            )
        job.ask()
        return {"replication": replication}

    def promote(self, replication: str, force: bool) -> dict[str, Any]:
        """Makes this array's copy the one that hosts use.

        The partner first sends what is missing, keeps hosts out and gives its consent, in the background;
        with `force` it is not asked. Raises UserError if it is so already, or if there is no copy here.
        """
        job = self._job(replication)
        role = job.role()
        if role == "primary":
            raise UserError(f"hosts use {replication} here already", "promote it at the other array")
        if role == "none":
            raise UserError(f"{replication} has no copy here yet", "replicate it at the other array first")
        if force:
            job.take_over_alone()
        else:
            job.ask(take_over=True)
        return {"replication": replication}

    def demote(self, replication: str) -> dict[str, Any]:
        """Makes this array's volumes the copy: hosts lose them, and the next copy takes back what only they have."""
        job = self._job(replication)
        self._here("replica_demote", {"group": replication})
        job.settle()
        return {"replication": replication}

    def forget(self, replication: str, force: bool) -> dict[str, Any]:
        """Ends a replication here; the volumes stay. With `force` also a copy, which may be half a one."""
        job = self._job(replication)
        if not force and job.role() in ("replica", "promoting"):
            raise UserError(
                f"{replication} is a copy on this array, and its volumes may be copied half",
                "forget it at the primary first; here say `force`",
            )
        self._here("replica_forget", {"group": replication, "force": force})
        job.settle()
        return {"replication": replication}

    def rejoin(self, replication: str) -> dict[str, Any]:
        """Goes on with the arrays as they are now: one of the two has a new identity, or is a new array."""
        job = self._job(replication)
        self._here("replica_rejoin", {"group": replication, "pair": job.pair})
        job.settle()
        return {"replication": replication, **job.pair}

    def yield_to(self, caller: Caller, asked: dict[str, Any]) -> dict[str, Any]:
        """A partner wants to take over; it asks again until the answer is "yielded". Raises UserError."""
        replication = str(asked.get("group"))
        job = self._job(replication)
        if job.replication.partner != caller.partner:
            raise UserError(
                f"{replication} is not replicated with {caller.partner}", "compare both array files"
            )
        if caller.pair != job.pair:
            raise UserError(f"{replication} is replicated between other arrays", "compare both array files")
        self._here("replica_asked", {"group": replication, "id": str(asked.get("id")), "pair": job.pair})
        return job.yield_(str(asked.get("id")), str(asked.get("claim")), asked.get("holds") is True)

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

    def _greet(self, partner: str) -> None:
        """A partner was started anew, or another array speaks in its name: what answers at its address shows
        which."""
        ask = self._asks.get(partner)
        if ask is None or self._ended.is_set():
            return

        def greet() -> None:
            with contextlib.suppress(LinerateError):  # what it shows is remembered by who listens
                ask(HELLO_VERB, {})

        threading.Thread(target=greet, name=f"greet-{partner}", daemon=True).start()
