"""The models of Python fit the types of the data plane that read their JSON."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import pytest
from linerate import _core
from linerate.array.config import ArrayChange, ArrayConfig
from linerate.array.control.commands import AnyCommand
from linerate.array.storage import Drive, Level
from linerate.backup import BackupJobSpec
from linerate.lab.fabric.change import ChangeSpec
from linerate.lab.fabric.spec import FabricSpec
from linerate.workload.files import FilesRunSpec
from linerate.workload.spec import RunSpec, SessionSpec, SmbSpec
from pydantic import BaseModel, TypeAdapter

from tests.tidy.seam import Exceptions, Form, differences, form_of

TEXTS: dict[str, tuple[Any, Exceptions]] = {
    # The lab plane chooses a seed; session options that are not set are left out.
    "run": (
        RunSpec,
        Exceptions(defaults=frozenset({"seed"}), left_out=frozenset({"volumes.iscsi", "volumes.smb"})),
    ),
    "backup_job": (
        BackupJobSpec,
        Exceptions(
            left_out=frozenset(
                f"{volume}.{client}"
                for volume in ("image", "source", "target")
                for client in ("iscsi", "smb")
            )
        ),
    ),
    "files_run": (FilesRunSpec, Exceptions(left_out=frozenset({"structures.smb"}))),
    "session_options": (SessionSpec, Exceptions(left_out=frozenset({""}))),
    "smb_options": (SmbSpec, Exceptions(left_out=frozenset({""}))),
    "array": (
        ArrayConfig,
        Exceptions(
            # The lab plane serves these tables itself, and adds what the record of the last start holds.
            only_python=frozenset({"control", "partners", "replications"}),
            only_rust=frozenset({"storage.create", "storage.served"}),
            # Drives and hashes are looked up by name; the drives are compared below.
            words=frozenset({"storage.disks.model", "targets.chap.algorithms"}),
            left_out=frozenset({"storage.disks.io_timeout_s", "storage.raid_sets.journal"}),
            defaults=frozenset({"storage.disks.io_timeout_s", "storage.raid_sets.journal"}),
        ),
    ),
    "array_change": (ArrayChange, Exceptions()),
    "array_command": (
        AnyCommand,
        Exceptions(
            # Other parts answer for replication and access states; the control API asks for `status` itself.
            variants=frozenset(
                {"demote", "forget", "promote", "rejoin", "replicate", "set_access", "status"}
            ),
            # A clone has the blocks of its parent.
            only_rust=frozenset(
                f"clone.{key}"
                for key in (
                    "physical_sector_bytes",
                    "power_protected",
                    "read_only",
                    "sector_bytes",
                    "write_cache",
                )
            ),
            words=frozenset({"replace_disk.new.model"}),
            left_out=frozenset({"replace_disk.new.io_timeout_s"}),
            defaults=frozenset({"replace_disk.new.io_timeout_s", "create_volume.sector_bytes"}),
        ),
    ),
    "fabric": (FabricSpec, Exceptions()),
    "fabric_change": (ChangeSpec, Exceptions()),
}
"""Each text with the model that writes it, and the places where the two differ on purpose."""


@cache
def _form(model: Any) -> Form:
    return form_of(TypeAdapter(model).json_schema(mode="validation"))


def _faults(model: Any, schema: dict[str, Any], allowed: Exceptions) -> list[str]:
    return list(differences(_form(model), form_of(schema), allowed))


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_models_write_what_the_data_plane_reads(name: str) -> None:
    model, allowed = TEXTS[name]
    faults = _faults(model, _core.schemas()[name], allowed)
    assert not faults, "\n".join(faults)


def test_every_text_has_a_model() -> None:
    assert _core.schemas().keys() == TEXTS.keys()


def test_levels_and_drives_are_those_of_the_data_plane() -> None:
    limits = _core.limits()
    assert list(get_args(Level)) == limits["raid_levels"]
    assert list(get_args(Drive)) == limits["drives"]


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_no_exception_is_out_of_date(name: str) -> None:
    """Each exception is needed: without it the comparison finds a difference."""
    model, allowed = TEXTS[name]
    schema = _core.schemas()[name]
    for kind, paths in vars(allowed).items():
        for path in paths:
            fewer = Exceptions(**{**vars(allowed), kind: paths - {path}})
            assert _faults(model, schema, fewer), f"{kind}: {path}"


class _Inner(BaseModel):
    size: int = 4
    word: str = "a"


class _Outer(BaseModel):
    inner: _Inner = _Inner()
    count: int | None = None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"properties": {"inner": {}, "count": {}, "more": {}}}, "more: the data plane reads it"),
        ({"properties": {"inner": {}}}, "count: Python writes it"),
        ({"properties": {"inner": {}, "count": {"type": "integer"}}}, "count: Python writes null"),
        ({"properties": {"inner": {"type": "string"}, "count": {}}}, "inner: Python writes object"),
        (
            {
                "properties": {
                    "inner": {"properties": {"size": {"default": 5}, "word": {"type": "string"}}},
                    "count": {},
                }
            },
            "inner.size: the default is 4 in Python and 5",
        ),
        (
            {
                "properties": {
                    "inner": {"properties": {"size": {}, "word": {"enum": ["a", "b"]}}},
                    "count": {},
                }
            },
            "inner.word: the words are any text",
        ),
    ],
)
def test_a_difference_is_found(change: dict[str, Any], fault: str) -> None:
    assert any(line.startswith(fault) for line in _faults(_Outer, change, Exceptions())), fault
