"""libiscsi's suite on volumes of every kind and block layout: no failure, and a reason for every skip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from linerate.array import ArrayConfig, Chap, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.array.storage import DiskConfig, Pool, RaidSet, Storage

from tests.conformance.suite import PROGRAM, known_failures, known_skip, listed_names, listed_tests, run_test
from tests.support import need

pytestmark = pytest.mark.long

IQN = "iqn.2026-11.lab.linerate:conformance"
SECRET = "a-secret-of-the-suite"
CHAP_USERS = {"hex": "0xcafe", "base64": "0bY2FmZQ=="}
"""Names that look like numbers, which must be taken as names, by target."""
SIZE_BYTES = 256 << 20
WRITABLE, READ_ONLY = 0, 1


LAYOUTS = {"512e": (512, 4096), "512n": (512, 512), "4kn": (4096, 4096)}
"""Logical and physical block size in bytes."""


DISKS = tuple(DiskConfig(name=f"d{number}", size_bytes=128 << 20) for number in range(6))
STORAGES = {
    "raid6-thin": Storage(
        disks=DISKS,
        raid_sets=(RaidSet(name="set", level="raid6", disks=tuple(disk.name for disk in DISKS)),),
        pools=(Pool(name="pool", raid_sets=("set",)),),
    ),
    "raid5-degraded": Storage(
        disks=DISKS[:4],
        raid_sets=(RaidSet(name="set", level="raid5", disks=tuple(disk.name for disk in DISKS[:4])),),
        pools=(Pool(name="pool", raid_sets=("set",)),),
    ),
}
"""The storage of the volumes that are neither plain memory nor a file."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An array under test and the layout of its volumes."""

    array: EmbeddedArray
    layout: str


@pytest.fixture(
    scope="module",
    params=[
        ("memory", "512e"),
        ("file", "512e"),
        ("memory", "512n"),
        ("memory", "4kn"),
        ("raid6-thin", "512e"),
        ("raid5-degraded", "512e"),
    ],
    ids="-".join,
)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """An array with a volume of the kind, behind two portals, so that the suite has a second path to it."""
    need.tool(PROGRAM)
    kind, layout = request.param
    sector_bytes, physical_sector_bytes = LAYOUTS[layout]
    folder: Path = tmp_path_factory.mktemp("conformance")
    blocks = {"sector_bytes": sector_bytes, "physical_sector_bytes": physical_sector_bytes}
    writable = VolumeConfig(lun=WRITABLE, name="vol1", **_backing(kind, folder), **blocks)
    read_only = VolumeConfig(lun=READ_ONLY, name="vol2", size_bytes=SIZE_BYTES, read_only=True, **blocks)
    target = TargetConfig(name=IQN, volumes=(writable, read_only))
    portals = ("127.0.0.1:0", "127.0.0.1:0")
    guarded = [
        TargetConfig(
            name=f"{IQN}-{name}",
            chap=Chap(user=user, secret=SECRET),
            volumes=(VolumeConfig(lun=WRITABLE, name=name, size_bytes=SIZE_BYTES),),
        )
        for name, user in CHAP_USERS.items()
    ]
    config = ArrayConfig(portals=portals, targets=(target, *guarded), storage=STORAGES.get(kind, Storage()))
    with EmbeddedArray(config) as array:
        if kind == "raid5-degraded":
            array.manage("fail_disk", disk="d1")
        yield Bench(array, layout)


def _backing(kind: str, folder: Path) -> dict[str, Any]:
    match kind:
        case "file":
            return {"kind": "file", "path": str(folder / "volume.img"), "size_bytes": SIZE_BYTES}
        case "raid6-thin" | "raid5-degraded":
            return {"kind": "pool", "pool": "pool", "size_bytes": SIZE_BYTES}
        case _:
            return {"size_bytes": SIZE_BYTES}


def _target_of(test: str) -> int:
    if not test.startswith("iSCSICHAP."):
        return 0
    return 2 if "Base64" in test else 1


@pytest.mark.parametrize("test", listed_tests() or ["suite"])
def test_libiscsi(bench: Bench, test: str) -> None:
    lun = READ_ONLY if test.startswith("ReadOnly.") else WRITABLE
    array, layout = bench.array, bench.layout
    urls = [array.url(lun, portal=portal, target=_target_of(test)) for portal in (0, 1)]
    if test.startswith("iSCSICHAP."):
        user = list(CHAP_USERS.values())[_target_of(test) - 1]
        urls = [url.replace("iscsi://", f"iscsi://{user}%{SECRET}@") for url in urls]
    verdict = run_test(test, *urls)
    if (why := known_failures(layout).get(test)) is not None:
        assert not verdict.passed, f"{test} passes now: remove it from libiscsi.toml"
        pytest.xfail(why)
    assert verdict.passed, verdict.output
    if known_skip(test, layout) is None:
        assert not verdict.skipped, f"{test} was skipped and is in no list: {verdict.skipped}"
    else:
        assert verdict.skipped, f"{test} is in libiscsi.toml but was not skipped: remove it there"


def test_listed_names_exist() -> None:
    """A renamed or removed test must not linger in the list."""
    need.tool(PROGRAM)
    names = set(listed_tests()) | {test.partition(".")[0] + "." for test in listed_tests()}
    assert not listed_names() - names
