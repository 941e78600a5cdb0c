"""The array that serves, as its owner and its partners may use it: one place that decides who may do what."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from linerate.array.config import AluaChange, ArrayChange, ArrayConfig
from linerate.array.control.commands import (
    ArrayCommand,
    Clone,
    CreateVolume,
    Demote,
    Forget,
    Promote,
    Rejoin,
    ReplaceDisk,
    Replicate,
    SetAccess,
    Snapshot,
    parse_command,
)
from linerate.array.storage import DiskConfig
from linerate.errors import UserError

HELLO_VERB = "hello"
"""A partner asks for nothing but an answer."""
YIELD_VERB = "replica_yield"
"""A partner wants to take over: like `hello`, a verb that the data plane does not know."""
PARTNER_VERBS = (HELLO_VERB, "replica_begin", "replica_commit", "replica_pass", YIELD_VERB)
"""What a partner may ask for."""

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
    """Who asks: the owner, or a partner by the name that this array gives it and the identity that it has
    proven."""

    partner: str | None = None
    identity: str = ""
    own: str = ""
    """The identity of this array."""

    @property
    def pair(self) -> dict[str, str]:
        """Both arrays, as the data plane wants them."""
        return {"here": self.own, "partner": self.identity}


OWNER = Caller()


class Replicating(Protocol):
    """What replicates volumes to partners."""

    def replicate(self, replication: str) -> dict[str, Any]:
        """Begins a copy; returns when it has begun."""

    def promote(self, replication: str, force: bool) -> dict[str, Any]:
        """Makes this array's copy the one that hosts write to."""

    def demote(self, replication: str) -> dict[str, Any]:
        """Makes this array's volumes the copy."""

    def forget(self, replication: str, force: bool) -> dict[str, Any]:
        """Ends a replication on this array."""

    def rejoin(self, replication: str) -> dict[str, Any]:
        """Goes on with the partner that the array file names now."""

    def yield_to(self, caller: Caller, asked: dict[str, Any]) -> dict[str, Any]:
        """A partner wants to take a replication over."""

    def status(self) -> list[dict[str, Any]]:
        """Each replication, as `ReplicationReport` has it."""


class ControlService:
    """Carries commands out one after the other; queries do not wait."""

    def __init__(
        self,
        array: ServingArray,
        config: ArrayConfig,
        replicating: Replicating | None = None,
        identity: str | None = None,
    ) -> None:
        """`identity`: that of the array, if it has one."""
        self._array = array
        self._config = config
        self._replicating = replicating
        self._identity = identity
        self._one_at_a_time = threading.Lock()

    def status(self) -> dict[str, Any]:
        """Name, portals, targets as the file names them, counters, sessions and storage. Holds no secret."""
        targets = [
            {"name": target.name, "alias": target.alias, "chap": target.chap is not None}
            | {"volumes": [volume.model_dump(mode="json") for volume in target.volumes]}
            for target in self._config.targets
        ]
        return {
            "schema": STATUS_SCHEMA,
            "name": self._config.name,
            "identity": self._identity,
            "portals": [
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._array.portals
            ],
            "targets": targets,
            "replications": self._replicating.status() if self._replicating else [],
            **self._array.stats(),
        }

    def do(self, verb: str, fields: object, caller: Caller = OWNER) -> dict[str, Any]:
        """Carries an owner's command out and gives its reply. Raises LinerateError by whose fault it is."""
        if caller != OWNER:
            raise UserError(f"the partner {caller.partner} may not use {verb}", _MAY_USE)
        command = parse_command(verb, fields)
        with self._one_at_a_time:
            match command:
                case Replicate():
                    return self._replicates().replicate(command.replication)
                case Promote():
                    return self._replicates().promote(command.replication, command.force)
                case Demote():
                    return self._replicates().demote(command.replication)
                case Forget():
                    return self._replicates().forget(command.replication, command.force)
                case Rejoin():
                    return self._replicates().rejoin(command.replication)
                case SetAccess():
                    change = ArrayChange(alua=(AluaChange(**command.model_dump(exclude={"verb"})),))
                    self._array.change(change.model_dump_json())
                    return {}
                case CreateVolume() | Clone():
                    self._check_is_new(command.name)
                    return self._manage(command)
                case ReplaceDisk():
                    self._check_is_free(command.new, command.disk)
                    return self._manage(command)
                case Snapshot():
                    self._check_one_pool(command.volumes)
                    return self._manage(command)
                case _:
                    return self._manage(command)

    def _replicates(self) -> Replicating:
        if self._replicating is None:
            raise UserError(
                "this array replicates nothing", "its file needs [[partners]] and [[replications]] tables"
            )
        return self._replicating

    def _check_is_new(self, name: str) -> None:
        # The data plane knows the volumes of pools; of two of one name the verbs would take that of the pool.
        for target in self._config.targets:
            for volume in target.volumes:
                if volume.name == name and volume.kind != "pool":
                    message = f'there is a volume "{name}" already, LUN {volume.lun} of {target.name}'
                    raise UserError(message, "choose another name")

    def _check_is_free(self, disk: DiskConfig, replaced: str) -> None:
        # The engine that replaces it does not know the disks of others, and a locked file does not say whose it is.
        users = {
            volume.path: f"the volume {volume.name}"
            for target in self._config.targets
            for volume in target.volumes
        }
        own = None
        for other in (self._array.stats().get("storage") or {}).get("disks", ()):
            if other["name"] == replaced:
                own = other.get("path")
                if other["state"] == "missing":
                    continue  # it may be back
            of_set = f"of {other['raid_set']}" if other.get("raid_set") else "in no RAID set"
            users[other.get("path")] = f"the disk {other['name']} {of_set}"
        for path, user in users.items():
            if disk.path and path and _are_same(Path(disk.path), Path(path)):
                hint = "name another file or device"
                if path == own:
                    hint += "; once that one has taken its place, this one is free"
                raise UserError(f"{disk.path} is {user}, in this array", hint)

    def _check_one_pool(self, names: tuple[str, ...]) -> None:
        # The data plane looks for all of them in the pool of the first one.
        volumes = (self._array.stats().get("storage") or {}).get("volumes", ())
        pools = {one["name"]: one["pool"] for one in volumes if one["name"] in names}
        if len(set(pools.values())) > 1:
            where = ", ".join(f"{name} in {pool}" for name, pool in pools.items())
            raise UserError(
                f"these volumes are in several pools: {where}", "take a snapshot of the volumes of each pool"
            )

    def _manage(self, command: ArrayCommand) -> dict[str, Any]:
        reply = json.loads(self._array.manage(command.model_dump_json()))
        return command.reply.model_validate(reply).model_dump(mode="json")

    def do_for_partner(self, verb: str, fields: object, caller: Caller) -> dict[str, Any]:
        """Carries out what a partner asks for. Raises LinerateError."""
        if caller.partner is None or verb not in PARTNER_VERBS:
            raise UserError(f"the partner {caller.partner} may not use {verb}", _MAY_USE)
        if not isinstance(fields, dict):
            raise UserError(f"{verb}: the fields are no JSON object", 'send an object: {"group": "mail"}')
        if verb == HELLO_VERB:
            return {}
        if verb == YIELD_VERB:
            return self._replicates().yield_to(caller, fields)
        # Who asks is what was proven; the fields do not count for that.
        asked = {**fields, "verb": verb, "partner": caller.partner, "pair": caller.pair}
        reply: dict[str, Any] = json.loads(self._array.manage(json.dumps(asked)))
        return reply


def _are_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file or device, as far as there is one."""
    try:
        return one.samefile(other)
    except OSError:
        return one == other


_MAY_USE = f"partners may use: {', '.join(PARTNER_VERBS)}"
