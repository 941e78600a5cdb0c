"""Disks behind an array's volumes: what they hold, and which sets they can form."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from linerate.array import EmbeddedArray
from linerate.errors import UserError
from linerate.lab.supervisor.arrays import Arrays, array_config, storage_config
from linerate.san import Storage, parse_topology, tree
from pydantic import ValidationError

GIB = 1 << 30
SAN = """\
[[switch]]
name = "sw1"

[[host]]
name = "h1"
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v{n}", count = 2, size = "8g" }]
storage = { disks = 28, model = "sas_10k_2_5", sets = 2, raid_level = "raid50", spares = 2, chunk = "64k" }
"""


def test_the_file_says_what_the_disks_are() -> None:
    topology = parse_topology(SAN)
    storage = topology.arrays[0].storage
    assert storage is not None
    assert (storage.disks, storage.model, storage.chunk_bytes, storage.disk_bytes) == (
        28,
        "sas_10k_2_5",
        65536,
        4 * GIB,
    )
    assert (storage.members, storage.data_disks) == (12, 10)
    assert "28 disks sas_10k_2_5, 2 x raid50 of 12 + 2 spares" in tree(topology)
    assert type(topology).model_validate_json(topology.model_dump_json()) == topology


def test_raid_10_of_28_disks_with_hot_spares_holds_40_percent_less_than_raid_50() -> None:
    """Two arrays of 14 disks, two hot spares in each, RAID 50 in two groups: 12 disks' worth against 20."""
    of_50 = Storage(disks=28, sets=2, spares=2, groups=2, raid_level="raid50", disk_bytes=600 * 10**9)
    of_10 = of_50.model_copy(update={"raid_level": "raid10"})
    assert (of_10.usable_bytes, of_50.usable_bytes) == (12 * 600 * 10**9, 20 * 600 * 10**9)
    assert of_10.usable_bytes * 10 == of_50.usable_bytes * 6


@pytest.mark.parametrize(
    ("level", "data"),
    [("raid0", 8), ("raid1", 1), ("raid5", 7), ("raid6", 6), ("raid10", 4), ("raid50", 6), ("raid60", 4)],
)
def test_what_eight_disks_hold(level: Any, data: int) -> None:
    assert Storage(disks=8, raid_level=level).usable_bytes == data * 4 * GIB


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"disks": 7, "sets": 2}, "cannot be divided into 2 sets"),
        ({"disks": 3, "raid_level": "raid5", "spares": 1}, "RAID 5 needs at least 3 disks; these are 2"),
        ({"disks": 2, "raid_level": "raid10"}, "RAID 10 needs at least 4 disks"),
        ({"disks": 7, "raid_level": "raid10"}, "and an even number; these are 7"),
        ({"disks": 40, "raid_level": "raid6"}, "RAID 6 has at most 32 disks; these are 40"),
        ({"disks": 4, "raid_level": "raid0", "spares": 1}, "RAID 0 has no redundancy"),
        ({"disks": 7, "raid_level": "raid50"}, "into 2 groups"),
        ({"disks": 9, "raid_level": "raid60", "groups": 3}, "into 3 groups of at least 4"),
        ({"disks": 4, "chunk_bytes": 12288}, "power of two"),
    ],
)
def test_disks_that_form_no_such_sets(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Storage(**fields)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("disks = 28", "disks = 27", "27 disks cannot be divided"),
        ("count = 2, ", "count = 3, ", "3 volumes on 2 RAID sets"),
        ('size = "8g"', 'size = "41g"', "do not fit on 40g"),
        ('chunk = "64k"', 'chunk = "2m"', "must be at most 1048576"),
    ],
)
def test_mistakes_are_told_with_their_line(old: str, new: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_topology(SAN.replace(old, new), "mine.toml")
    assert message in caught.value.message
    assert "mine.toml:12" in caught.value.message


class _Process:
    """In place of an array's process."""

    is_ended = False

    def __exit__(self, *_: object) -> None:
        self.is_ended = True


def test_an_array_serves_on_if_it_cannot_have_the_disks_that_are_asked_for() -> None:
    (array,) = parse_topology(SAN).arrays
    arrays, process = Arrays([array], {}), _Process()
    arrays._running = {array.name: cast(EmbeddedArray, process)}
    assert array.storage is not None
    with pytest.raises(UserError, match="RAID 10 needs at least 4 disks"):
        arrays.restart(array.name, array.storage.model_copy(update={"disks": 6, "raid_level": "raid10"}))
    assert not process.is_ended
    assert arrays.storages == {array.name: array.storage}


def test_the_sets_of_the_data_plane_share_no_disk_and_keep_their_spares_last() -> None:
    topology = parse_topology(SAN)
    assert topology.arrays[0].storage is not None
    config = storage_config(topology.arrays[0].storage)
    first, second = config["raid_sets"]
    assert first["disks"] == [f"d{number}" for number in range(12)]
    assert first["spares"] == ["d12", "d13"]
    assert second["spares"] == ["d26", "d27"]
    assert not set(first["disks"] + first["spares"]) & set(second["disks"] + second["spares"])
    assert config["disks"][0]["count"] == 28
    assert config["pools"] == []


@pytest.mark.parametrize("backing", ["raid", "pool"])
def test_an_array_with_disks_is_one_that_its_data_plane_can_serve(backing: str) -> None:
    (array,) = parse_topology(
        SAN.replace("sets = 2", f'sets = 2, sector = 4096, backing = "{backing}"')
    ).arrays
    served = json.loads(array_config(array).seam_json())
    volumes = served["targets"][0]["volumes"]
    assert [volume["kind"] for volume in volumes] == [backing] * 2
    assert {volume["sector_bytes"] for volume in volumes} == {4096}
    where = [volume["raid_set"] if backing == "raid" else volume["pool"] for volume in volumes]
    assert where == (["r0", "r1"] if backing == "raid" else ["p0", "p0"])
    assert len(served["storage"]["raid_sets"]) == 2
