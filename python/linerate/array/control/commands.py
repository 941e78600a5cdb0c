"""What may be asked of an array while it serves: one model per verb.

The table of verbs, the HTTP API, its OpenAPI document and the client all follow from these models; the data
plane takes their JSON as it is (`_core.Array.manage`). How two arrays talk to each other is not here: the
data plane alone knows it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field, PositiveInt, ValidationError, model_validator

from linerate.array.base import NAME_FORM, NAME_PATTERN, Frozen, Name, Sector, misplaced
from linerate.array.config import AluaState, GroupTag
from linerate.array.storage import DiskConfig
from linerate.errors import UserError, fault_text


class ArrayReply(Frozen):
    """What a command brought; empty where there is nothing to say. More than this is not passed on."""

    model_config = ConfigDict(extra="ignore")


class MadeVolume(ArrayReply):
    """A volume that is new, and where initiators find it."""

    volume: str
    target: str
    """iSCSI name of its target."""
    lun: int
    size_bytes: int


class NewSize(ArrayReply):
    """The capacity that a volume has now."""

    size_bytes: int


class TakenSnapshot(ArrayReply):
    """When a snapshot was taken."""

    at_s: float
    """Seconds since 1970."""


class ArrayCommand(Frozen):
    """A command; its docstring is what the verb does, `reply` what it brings."""

    reply: ClassVar[type[ArrayReply]] = ArrayReply
    verb: str


class _Exported(ArrayCommand):
    """A volume that initiators will see."""

    reply = MadeVolume
    name: Name
    """Name of the new volume."""
    target: str | None = None
    """iSCSI name of the target that shows it; null: the first one."""
    lun: Annotated[int, Field(ge=0, le=16383)] | None = None
    """Logical unit number; null: the lowest that is free."""


class CreateVolume(_Exported):
    """Makes a thin volume in a pool and shows it to initiators."""

    verb: Literal["create_volume"] = "create_volume"
    pool: Name | None = None
    """Null: the only pool."""
    size_bytes: PositiveInt
    sector_bytes: Sector = 512
    physical_sector_bytes: Sector | None = None
    """Null: as sector_bytes."""
    read_only: bool = False
    write_cache: bool = False
    """Report a volatile write cache; refused unless power is protected."""
    power_protected: bool = False


class Resize(ArrayCommand):
    """Changes a volume's capacity; initiators are told."""

    reply = NewSize
    verb: Literal["resize"] = "resize"
    volume: Name
    size_bytes: PositiveInt


class Delete(ArrayCommand):
    """Ends a volume; what it held is lost."""

    verb: Literal["delete"] = "delete"
    volume: Name
    with_snapshots: bool = False
    """Its snapshots too; without this a volume that has some is not deleted."""


class Snapshot(ArrayCommand):
    """Takes a snapshot of volumes of one pool, of all of them at one instant."""

    reply = TakenSnapshot
    verb: Literal["snapshot"] = "snapshot"
    volumes: tuple[Name, ...] = Field(min_length=1)
    name: Name
    """Name of the snapshot of each of them."""


class DeleteSnapshot(ArrayCommand):
    """Ends a snapshot of a volume."""

    verb: Literal["delete_snapshot"] = "delete_snapshot"
    volume: Name
    snapshot: Name


class Restore(ArrayCommand):
    """Makes a volume what it was when a snapshot of it was taken; what was written since is lost."""

    verb: Literal["restore"] = "restore"
    volume: Name
    snapshot: Name


class Clone(_Exported):
    """Makes a new volume that begins as a snapshot of another, with sectors of the same size."""

    verb: Literal["clone"] = "clone"
    volume: Name
    snapshot: Name


class FailDisk(ArrayCommand):
    """Treats a disk as failed from now on; a hot spare takes its place."""

    verb: Literal["fail_disk"] = "fail_disk"
    disk: Name


class ReplaceDisk(ArrayCommand):
    """Puts a new disk in the place of another and fills it from the rest of the RAID set."""

    verb: Literal["replace_disk"] = "replace_disk"
    disk: Name
    """The disk that goes."""
    new: DiskConfig
    """The disk that comes: a table as in the array file, without `count`."""
    overwrite: bool = False
    """Although it holds something."""

    @model_validator(mode="after")
    def _is_one_disk(self) -> ReplaceDisk:
        if self.new.count is not None:
            raise misplaced(("new", "count"), "one disk takes the place of one; leave count out")
        return self


class Scrub(ArrayCommand):
    """Reads a RAID set through in the background and mends what does not agree."""

    verb: Literal["scrub"] = "scrub"
    raid_set: Name


class SetAccess(ArrayCommand):
    """Changes the access state of a portal group until the array stops (ALUA); initiators are told."""

    verb: Literal["set_access"] = "set_access"
    group: GroupTag
    state: AluaState
    target: str | None = None
    """For the volumes of this target only: its iSCSI name."""
    volume: str | None = None
    """For the volumes of this name only."""


class Replicate(ArrayCommand):
    """Copies the volumes of a replication to its partner in the background, as they are now."""

    verb: Literal["replicate"] = "replicate"
    replication: Name


class Promote(ArrayCommand):
    """Makes this array's copy of a replication the one that hosts use."""

    verb: Literal["promote"] = "promote"
    replication: Name
    force: bool = False
    """Although the partner cannot be asked: what it holds that has not arrived here is lost."""


class Demote(ArrayCommand):
    """Makes this array's volumes the copy, after the partner was promoted by force."""

    verb: Literal["demote"] = "demote"
    replication: Name


class Forget(ArrayCommand):
    """Ends a replication on this array, which hosts use; the volumes stay, its points go."""

    verb: Literal["forget"] = "forget"
    replication: Name
    force: bool = False
    """Also the copy: its volumes stay as the last transfer left them, which may be half way."""


class Partners(ArrayReply):
    """Between which arrays a replication is from now on."""

    here: str
    """Identity of this array."""
    partner: str
    """Identity of the other one."""


class Rejoin(ArrayCommand):
    """Goes on with a replication after its partner, or this array, got another identity."""

    reply = Partners
    verb: Literal["rejoin"] = "rejoin"
    replication: Name


AnyCommand = (
    CreateVolume
    | Resize
    | Delete
    | Snapshot
    | DeleteSnapshot
    | Restore
    | Clone
    | FailDisk
    | ReplaceDisk
    | Scrub
    | SetAccess
    | Replicate
    | Promote
    | Demote
    | Forget
    | Rejoin
)

COMMANDS: dict[str, type[ArrayCommand]] = {
    kind.model_fields["verb"].default: kind for kind in get_args(AnyCommand)
}
"""Every verb with its model."""


def parse_command(verb: str, fields: object) -> ArrayCommand:
    """A command from its verb and its other fields. Raises UserError, which names the field that is wrong."""
    if verb not in COMMANDS:
        raise UserError(f"there is no verb {verb!r}", f"verbs: {', '.join(COMMANDS)}")
    if not isinstance(fields, dict):
        raise UserError(f"{verb}: the fields are no JSON object", 'send an object: {"volume": "v"}')
    try:
        return COMMANDS[verb].model_validate({**fields, "verb": verb})
    except ValidationError as error:
        raise UserError(*_fault(verb, error)) from error


def _fault(verb: str, error: ValidationError) -> tuple[str, str]:
    fault = error.errors(include_input=False, include_url=False)[0]
    context = fault.get("ctx", {})
    where = ".".join(map(str, (*fault["loc"], *context.get("at", ()))))
    hint = "`linerate schema control` describes the fields of every verb"
    if context.get("pattern") == NAME_PATTERN:
        hint = f"a name has {NAME_FORM}"
    text = fault_text(fault["msg"])
    return f"{verb}: {where}: {text}", hint
