"""A fake array: it keeps names and sizes, answers the verbs, and serves no initiator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linerate.array import ArrayConfig, parse_array_text
from linerate.array.control import ControlService
from linerate.array.control.identity import own_identity
from linerate.array.control.partnership import Partnership
from linerate.array.control.server import ControlServer
from linerate.array.partners import Partner
from linerate.errors import UserError

IQN = "iqn.2026-11.lab.linerate:t"
FILE = f"""\
name = "lab"
[[storage.disks]]
name = "d"
size = "4g"
count = 9
[[storage.raid_sets]]
name = "r0"
level = "raid6"
disks = ["d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"]
spares = ["d8"]
[[storage.pools]]
name = "p0"
raid_sets = ["r0"]
[[targets]]
name = "{IQN}"
[[targets.volumes]]
lun = 0
name = "v1"
kind = "pool"
pool = "p0"
size = "10g"
"""


class PretendArray:
    """Answers as `_core.Array` does, out of a few dictionaries."""

    def __init__(self, config: ArrayConfig) -> None:
        self.config = config
        self.commands: list[dict[str, Any]] = []
        self.portals = [("127.0.0.1", 3260)]
        self.states = {disk.name: "online" for table in config.storage.disks for disk in table.each()}
        self.states["d8"] = "spare"
        self.paths: dict[str, str] = {}
        """Files of disks; of the others there is none."""
        self.gone: set[str] = set()
        """Disks whose files are not there."""
        self.unused: set[str] = set()
        """Disks of no RAID set."""
        self.task: dict[str, Any] | None = None
        self.volumes: dict[str, dict[str, Any]] = {}
        for volume in config.targets[0].volumes:
            if volume.kind == "pool":
                self._add(volume.name, volume.size_bytes or 0, volume.lun)

    def _add(self, name: str, size_bytes: int, lun: int) -> dict[str, Any]:
        if name in self.volumes:
            raise UserError(f'there is a volume "{name}" already; choose another name', "")
        self.volumes[name] = {"name": name, "pool": "p0", "size_bytes": size_bytes, "used_bytes": 3 << 30}
        self.volumes[name] |= {"target": IQN, "lun": lun, "snapshots": [], "replica": None}
        return {"volume": name, "target": IQN, "lun": lun, "size_bytes": size_bytes}

    def stats(self) -> dict[str, Any]:
        """Counters, and storage."""
        disks: list[dict[str, Any]] = [
            {
                "name": name,
                "model": None,
                "state": state,
                "raid_set": None if name in self.unused else "r0",
                "size_bytes": 0 if name in self.gone else 4 << 30,
                "path": self.paths.get(name),
            }
            for name, state in self.states.items()
        ]
        healthy = set(self.states.values()) <= {"online", "spare"}
        bears = list(self.states.values()).count("failed") <= 2
        sets = [
            {
                "name": "r0",
                "level": "raid6",
                "state": "optimal" if healthy else "degraded" if bears else "failed",
            }
            | {"size_bytes": 24 << 30, "raw_bytes": 32 << 30, "task": self.task}
        ]
        used = sum(volume["used_bytes"] for volume in self.volumes.values())
        provisioned = sum(volume["size_bytes"] for volume in self.volumes.values())
        pool = {"name": "p0", "size_bytes": 24 << 30, "used_bytes": used, "provisioned_bytes": provisioned}
        pool |= {"warning": used > 0.8 * (24 << 30)}
        storage = {"disks": disks, "raid_sets": sets, "pools": [pool]}
        return {"by_session": [], "storage": storage | {"volumes": list(self.volumes.values())}}

    def change(self, change_json: str, /) -> None:
        """Changes access states."""
        self.commands.append(json.loads(change_json))

    def manage(self, command_json: str, /) -> str:
        """Carries a verb out."""
        asked: dict[str, Any] = json.loads(command_json)
        self.commands.append(asked)
        verb = asked["verb"]
        if verb.startswith("replica_"):
            return json.dumps({"heard": asked})
        reply: dict[str, Any] | None = getattr(self, f"_{verb}")(asked)
        return json.dumps(reply or {})

    def _volume(self, name: str) -> dict[str, Any]:
        if name not in self.volumes:
            raise UserError(f'there is no volume "{name}"; there are: {", ".join(self.volumes)}', "")
        return self.volumes[name]

    def _create_volume(self, asked: dict[str, Any]) -> dict[str, Any]:
        lun = len(self.volumes) if asked["lun"] is None else asked["lun"]
        return self._add(asked["name"], asked["size_bytes"], lun)

    def _clone(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._add(asked["name"], self._volume(asked["volume"])["size_bytes"], len(self.volumes))

    def _resize(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._volume(asked["volume"])["size_bytes"] = asked["size_bytes"]
        return {"size_bytes": asked["size_bytes"]}

    def _delete(self, asked: dict[str, Any]) -> None:
        if self._volume(asked["volume"])["snapshots"] and not asked["with_snapshots"]:
            raise UserError(f'"{asked["volume"]}" has snapshots; delete them first', "")
        del self.volumes[asked["volume"]]

    def _snapshot(self, asked: dict[str, Any]) -> dict[str, Any]:
        for name in asked["volumes"]:
            self._volume(name)["snapshots"].append({"name": asked["name"], "at_s": 1.8e9})
        return {"at_s": 1.8e9}

    def _delete_snapshot(self, asked: dict[str, Any]) -> None:
        volume = self._volume(asked["volume"])
        volume["snapshots"] = [one for one in volume["snapshots"] if one["name"] != asked["snapshot"]]

    def _restore(self, asked: dict[str, Any]) -> None:
        self._volume(asked["volume"])

    def _fail_disk(self, asked: dict[str, Any]) -> None:
        self.states[asked["disk"]] = "failed"
        if self.states["d8"] == "spare":
            self.states["d8"] = "rebuilding"
            self.task = {"kind": "rebuild", "done": 0.25}

    def _replace_disk(self, asked: dict[str, Any]) -> None:
        names = [asked["new"]["name"] if name == asked["disk"] else name for name in self.states]
        self.states = dict(zip(names, self.states.values(), strict=True))
        self.states[asked["new"]["name"]] = "rebuilding"
        self.task = {"kind": "rebuild", "done": 0.0}

    def _scrub(self, asked: dict[str, Any]) -> None:
        self.task = {"kind": "scrub", "done": 0.5}


def pretend(text: str = FILE) -> tuple[PretendArray, ArrayConfig, ControlService]:
    """An array that pretends, what it was made of, and its service."""
    config = parse_array_text(text)
    array = PretendArray(config)
    return array, config, ControlService(array, config)


class Array:
    """An array that pretends, its identity, and its control API, which is real."""

    def __init__(self, folder: Path, name: str) -> None:
        """Makes its identity."""
        self.name = name
        self.identity = folder / f"{name}.identity"
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_text(own_identity(self.identity, name).pem, "ascii")

    def partner(self, control: str = "https://127.0.0.1:1") -> Partner:
        """This array as another one's file names it."""
        fields = {"name": self.name, "certificate": str(self.certificate)}
        return Partner.model_validate(fields | {"control": control, "portal": "127.0.0.1:1"})

    def knowing(self, *partners: Array) -> Partnership:
        """A process of it that has these partners."""
        return Partnership(self.identity, self.name, tuple(one.partner() for one in partners))

    @contextmanager
    def serving(self, *partners: Array) -> Iterator[tuple[PretendArray, ControlServer]]:
        """Serves these partners."""
        control = f'[control]\nidentity = "{self.identity}"\npartner_listen = "127.0.0.1:0"\n'
        config = parse_array_text(f"{FILE}{control}")
        array = PretendArray(config)
        partnership = self.knowing(*partners)
        service = ControlService(array, config, identity=partnership.own.identity)
        with ControlServer(service, config, partnership) as server:
            yield array, server
