"""The array that serves, as its owner and its partners may use it: one place that decides who may do what."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any, Protocol

from linerate.array.config import AluaChange, ArrayChange, ArrayConfig
from linerate.array.control.commands import (
    PARTNER_VERBS,
    Command,
    Demote,
    Promote,
    Replicate,
    SetAccess,
    parse_command,
)
from linerate.errors import UserError

YIELD_VERB = "replica_yield"
"""A partner wants to take over: the one verb of partners that the data plane does not know."""

STATUS_SCHEMA = "linerate.array-status/1"


class ServingArray(Protocol):
    """What the service needs of `_core.Array`."""

    @property
    def portals(self) -> list[tuple[str, int]]:
        """Where it listens."""

    def stats(self) -> dict[str, Any]:
        """Counters, sessions and storage."""

    def manage(self, command_json: str, /) -> str:
        """Carries a command out."""

    def change(self, change_json: str, /) -> None:
        """Changes access states."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the owner, or a partner by name."""

    partner: str | None = None


OWNER = Caller()


class Replicating(Protocol):
    """What replicates volumes to partners."""

    def replicate(self, replication: str) -> dict[str, Any]:
        """Begins a copy; returns when it has begun."""

    def promote(self, replication: str, force: bool) -> dict[str, Any]:
        """Makes this array's copy the one that hosts write to."""

    def demote(self, replication: str) -> dict[str, Any]:
        """Makes this array's volumes the copy."""

    def yield_to(self, partner: str, replication: str) -> dict[str, Any]:
        """A partner wants to take a replication over."""

    def status(self) -> list[dict[str, Any]]:
        """Each replication, as `ReplicationReport` has it."""


class Service:
    """Carries commands out one after the other; whoever only looks does not wait."""

    def __init__(
        self, array: ServingArray, config: ArrayConfig, replicating: Replicating | None = None
    ) -> None:
        self._array = array
        self._config = config
        self._replicating = replicating
        self._one_at_a_time = threading.Lock()

    def status(self, caller: Caller = OWNER) -> dict[str, Any]:
        """Name, portals, targets as the file names them, counters, sessions and storage. Holds no secret."""
        _refuse_partner(caller, "the status")
        targets = [
            {"name": target.name, "alias": target.alias, "chap": target.chap is not None}
            | {"volumes": [volume.model_dump(mode="json") for volume in target.volumes]}
            for target in self._config.targets
        ]
        return {
            "schema": STATUS_SCHEMA,
            "name": self._config.name,
            "portals": [
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._array.portals
            ],
            "targets": targets,
            "replications": self._replicating.status() if self._replicating else [],
            **self._array.stats(),
        }

    def do(self, verb: str, fields: object, caller: Caller = OWNER) -> dict[str, Any]:
        """Carries a command out and gives its reply. Raises LinerateError by whose fault it is."""
        if verb.startswith(PARTNER_VERBS):
            return self._for_partner(verb, fields, caller)
        _refuse_partner(caller, verb)
        command = parse_command(verb, fields)
        with self._one_at_a_time:
            match command:
                case Replicate():
                    return self._replicates().replicate(command.replication)
                case Promote():
                    return self._replicates().promote(command.replication, command.force)
                case Demote():
                    return self._replicates().demote(command.replication)
                case SetAccess():
                    change = ArrayChange(alua=(AluaChange(**command.model_dump(exclude={"verb"})),))
                    self._array.change(change.model_dump_json())
                    return {}
                case _:
                    return self._manage(command)

    def _replicates(self) -> Replicating:
        if self._replicating is None:
            raise UserError(
                "this array replicates nothing", "its file needs [[partners]] and [[replications]] tables"
            )
        return self._replicating

    def _manage(self, command: Command) -> dict[str, Any]:
        reply = json.loads(self._array.manage(command.model_dump_json()))
        return command.reply.model_validate(reply).model_dump(mode="json")

    def _for_partner(self, verb: str, fields: object, caller: Caller) -> dict[str, Any]:
        if not isinstance(fields, dict):
            raise UserError(f"{verb}: the fields are no JSON object", 'send an object: {"group": "mail"}')
        if verb == YIELD_VERB and caller.partner is not None:
            return self._replicates().yield_to(caller.partner, str(fields.get("group")))
        asked = {**fields, "verb": verb} | ({"partner": caller.partner} if caller.partner else {})
        reply: dict[str, Any] = json.loads(self._array.manage(json.dumps(asked)))
        return reply


def _refuse_partner(caller: Caller, what: str) -> None:
    if caller.partner is not None:
        raise UserError(
            f"the partner {caller.partner} may not use {what}",
            f"partners may use the verbs that begin with {PARTNER_VERBS}",
        )
