"""What an array served last, kept beside its file: what is missing is not created again unless the owner says so.

The record is no part of the storage: what disks hold counts, and a record that is lost costs nothing but this
protection. It is written as a whole, under another name first, when something changes that it tells of.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from linerate.array.config import ArrayConfig
from linerate.array.watch import Report
from linerate.errors import HostError, LinerateError, UserError
from linerate.model import Model

SCHEMA: Literal["linerate.array-served/1"] = "linerate.array-served/1"
LOOK_EVERY_S = 2.0
"""How often it is looked whether something has changed."""
SAVE_EVERY_S = 60.0
"""How often numbers that grow all the time are written."""


class _Part(Model):
    model_config = ConfigDict(extra="ignore")


class ServedSet(_Part):
    """A RAID set as it was served."""

    id: str
    """Tells sets of one name apart."""
    generations: tuple[int, ...] = ()
    """The newest superblock of each group then."""


class ServedDisk(_Part):
    """A disk as it was served."""

    path: str
    raid_set: str | None = None


class ArrayRecord(_Part):
    """What was served."""

    format: Literal["linerate.array-served/1"] = SCHEMA
    """Which version of this format it is."""
    raid_sets: dict[str, ServedSet] = Field(default_factory=dict)
    """RAID sets whose disks are files, by name."""
    pools: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Pools on such sets, and on which."""
    disks: dict[str, ServedDisk] = Field(default_factory=dict)
    """Disks that are files, by name."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """Volumes that are files, by name: their paths."""

    def for_start(self) -> dict[str, Any]:
        """What the data plane is told."""
        return {
            "raid_sets": {name: one.model_dump() for name, one in self.raid_sets.items()},
            "pools": list(self.pools),
            "disks": list(self.disks),
        }


def places(file: Path) -> tuple[Path, Path]:
    """Where the record of an array file is: beside it, or, where nothing can be written there, in the state folder."""
    whole = file.absolute()
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    digest = hashlib.sha256(str(whole).encode()).hexdigest()[:16]
    return whole.with_name(
        f"{whole.name}.served"
    ), state / "linerate" / "served" / f"{whole.stem}-{digest}.json"


def load(file: Path) -> ArrayRecord:
    """The record of an array file; an empty one if there is none. Raises UserError for one that cannot be read."""
    for place in sorted(places(file), key=_written_at, reverse=True):
        try:
            return ArrayRecord.model_validate_json(place.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise HostError(
                f"{place}: {error.strerror}", "it says what this array has served: make it readable"
            ) from error
        except ValidationError as error:
            raise UserError(
                f"{place}: not a record of what this array has served, or of a later version",
                "see that all disks are there (linerate array check), then remove it",
            ) from error
    return ArrayRecord()


def _written_at(place: Path) -> int:
    """The newer of two records counts: under a service manager the folder of the file may be read-only."""
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0


def save(file: Path, record: ArrayRecord) -> Path:
    """Writes the record, whole or not at all, and returns where. Raises OSError if it can be written nowhere."""
    beside, elsewhere = places(file)
    try:
        return _replace(beside, record)
    except OSError:
        elsewhere.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _replace(elsewhere, record)


def _replace(place: Path, record: ArrayRecord) -> Path:
    draft = place.with_name(f"{place.name}.new")
    with draft.open("w", encoding="ascii") as out:
        out.write(record.model_dump_json(indent=2) + "\n")
        out.flush()
        os.fsync(out.fileno())
    draft.replace(place)
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return place


def taken(config: ArrayConfig, storage: Mapping[str, Any]) -> ArrayRecord:
    """The record of an array that serves, from its configuration and from what its storage says."""
    disks = {
        disk["name"]: ServedDisk(path=disk["path"], raid_set=disk["raid_set"])
        for disk in storage.get("disks", ())
        if disk.get("path")
    }
    on_files = {disk.raid_set for disk in disks.values()}
    sets = {one["name"]: one for one in storage.get("raid_sets", ()) if one["name"] in on_files}
    return ArrayRecord(
        raid_sets={
            name: ServedSet(id=one["id"], generations=tuple(one["generations"])) for name, one in sets.items()
        },
        pools={
            pool.name: pool.raid_sets for pool in config.storage.pools if set(pool.raid_sets) & sets.keys()
        },
        disks=disks,
        volumes=_file_volumes(config),
    )


def check_volumes(config: ArrayConfig, record: ArrayRecord, create: tuple[str, ...] = ()) -> None:
    """Refuses volumes whose files were there and are not. Raises UserError."""
    for name, path in _file_volumes(config).items():
        if name not in create and path in record.volumes.values() and not Path(path).exists():
            raise UserError(
                f"volume {name} was served before, and {absence(Path(path))}; nothing was made",
                f"bring it back (is its file system mounted?); only if it is lost for good: --create {name}",
            )


def check_names(config: ArrayConfig, create: tuple[str, ...]) -> None:
    """Refuses to create again what the array file does not have, or not by itself. Raises UserError."""
    storage = config.storage.resolved()
    known = [one.name for one in storage.raid_sets] + [one.name for one in storage.pools]
    known += _file_volumes(config)
    accepted = {*known, *(disk.name for disk in storage.disks)}
    for name in create:
        if name in accepted:
            continue
        if pool := _pools_of_volumes(config).get(name):
            raise UserError(
                f"--create {name}: this volume is in pool {pool}, which can be created again as a whole",
                f"`linerate array delete {name}` deletes the volume alone; the whole pool: --create {pool}",
            )
        raise UserError(
            f"--create {name}: the array file has no RAID set, pool or volume in a file of this name",
            f"it has: {', '.join(known)}" if known else "it has none of them: leave --create out",
        )


def absence(path: Path) -> str:
    """Why there may be no file of that name."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if not any(path.parent.iterdir()):
        return f"{path.parent} is empty"
    return f"there is no file {path}"


def seam_json(config: ArrayConfig, record: ArrayRecord, create: tuple[str, ...] = ()) -> str:
    """The JSON for the data plane with what was served before and what is to be created again; secrets included."""
    seam = json.loads(config.seam_json())
    if "storage" in seam:
        volumes = _file_volumes(config)
        seam["storage"]["served"] = record.for_start()
        seam["storage"]["create"] = [name for name in create if name not in volumes]
    return json.dumps(seam)


def _file_volumes(config: ArrayConfig) -> dict[str, str]:
    return {
        volume.name: volume.path
        for target in config.targets
        for volume in target.volumes
        if volume.kind == "file" and volume.path is not None
    }


def _pools_of_volumes(config: ArrayConfig) -> dict[str, str]:
    volumes = (volume for target in config.targets for volume in target.volumes if volume.kind == "pool")
    return {volume.name: volume.pool or config.storage.pools[0].name for volume in volumes}


class RecordWriter:
    """Keeps the record of an array up to date while it serves."""

    def __init__(
        self,
        file: Path,
        config: ArrayConfig,
        storage: Callable[[], Mapping[str, Any]],
        report: Report,
    ) -> None:
        self._file = file
        self._config = config
        self._storage = storage
        self._report = report
        self._saved: ArrayRecord | None = None
        self._saved_at = 0.0
        self._is_reported = False
        self._ended = threading.Event()

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Writes the record now, when something changes, and at the end."""
        self.look(at_once=True)
        thread = threading.Thread(target=self._run, name="array-record", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self._look_again(at_once=True)

    def look(self, *, at_once: bool = False) -> None:
        """Writes the record if it is time to."""
        record, now = taken(self._config, self._storage()), time.monotonic()
        if not (record.disks or record.volumes) or record == self._saved:
            return
        if not at_once and self._is_same_but_numbers(record) and now < self._saved_at + SAVE_EVERY_S:
            return
        try:
            save(self._file, record)
        except OSError as error:
            if not self._is_reported:
                message = f"the record of what this array serves cannot be written: {error}"
                self._report("warning", "record_not_kept", message, file=str(self._file))
            self._is_reported = True
        else:
            self._saved, self._saved_at, self._is_reported = record, now, False

    def _is_same_but_numbers(self, record: ArrayRecord) -> bool:
        if self._saved is None:
            return False
        plain = [
            one.model_copy(
                update={
                    "raid_sets": {name: part.id for name, part in one.raid_sets.items()},
                }
            )
            for one in (record, self._saved)
        ]
        return plain[0] == plain[1]

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self._look_again()

    def _look_again(self, *, at_once: bool = False) -> None:
        # `Watch` reports a storage engine that does not answer.
        with contextlib.suppress(LinerateError):
            self.look(at_once=at_once)
