"""Storage in array files: what goes to the data plane, and where each mistake is said to be."""

from __future__ import annotations

import json
import re
import tomllib
from typing import get_args

import pytest
from linerate import _core
from linerate.array import ArrayConfig, example_text, parse_array_text
from linerate.array.partners import Control, Partner, Replication
from linerate.array.storage import DiskConfig, Level, Pool, RaidSet, Storage, level_fault
from linerate.errors import UserError

TARGET = '[[targets]]\nname = "iqn.2026-11.lab.linerate:t"\n'
DISKS = '[[storage.disks]]\nname = "d"\nsize = "64m"\ncount = 5\n'
SET = '[[storage.raid_sets]]\nname = "r0"\nlevel = "raid6"\ndisks = ["d0", "d1", "d2", "d3"]\n'
POOL = '[[storage.pools]]\nname = "p0"\nraid_sets = ["r0"]\n'
VOLUME = '[[targets.volumes]]\nlun = 0\nname = "v"\nkind = "pool"\npool = "p0"\nsize = "1g"\n'
ALL = f"{DISKS}{SET}{POOL}{TARGET}{VOLUME}"
IDENTITY = '[control]\nidentity = "lab.identity"\n'
PARTNER = '[[partners]]\nname = "pair"\ncertificate = "pair.pem"\n'
SOURCE = f'{IDENTITY}{PARTNER}control = "https://127.0.0.1:1"\nportal = "127.0.0.1:2"\n'
_SHORT = {
    "size_bytes": "size",
    "chunk_bytes": "chunk",
    "page_bytes": "page",
    "rebuild_bytes_per_s": "rebuild_rate",
    "io_timeout_s": "io_timeout",
    "rate_bytes_per_s": "rate",
    "interval_s": "interval",
}
REPLICATION = '[[replications]]\nname = "mail"\npartner = "pair"\nvolumes = ["v"]\npool = "p0"\n'


def test_the_data_plane_gets_every_disk_by_itself() -> None:
    text = ALL.replace('["d0", "d1", "d2", "d3"]', '["d"]').replace(
        'size = "64m"', 'size = "64m"\npath = "x/d.img"'
    )
    seam = json.loads(parse_array_text(text.replace("count", 'kind = "file"\ncount')).seam_json())["storage"]
    assert [disk["name"] for disk in seam["disks"]] == ["d0", "d1", "d2", "d3", "d4"]
    assert [disk["path"].rsplit("/", 2)[-2:] for disk in seam["disks"]][1] == ["x", "d1.img"]
    assert {disk["count"] for disk in seam["disks"]} == {None}
    assert seam["raid_sets"][0]["disks"] == ["d0", "d1", "d2", "d3", "d4"]
    assert seam["disks"][0]["size_bytes"] == 64 << 20


def test_text_amounts() -> None:
    extra = 'chunk = "128k"\nrebuild_rate = "50m"\n'
    config = parse_array_text(
        f"{DISKS}{SET}{extra}{POOL}page = '2m'\n{TARGET}{VOLUME}{SOURCE}{REPLICATION}"
        'interval = "10m"\nrate = "20m"\n'
    )
    raid = config.storage.raid_sets[0]
    assert (raid.chunk_bytes, raid.rebuild_bytes_per_s) == (128 << 10, 50 << 20)
    assert config.storage.pools[0].page_bytes == 2 << 20
    assert (config.replications[0].interval_s, config.replications[0].rate_bytes_per_s) == (600.0, 20 << 20)


def test_an_array_without_storage_says_nothing_of_it() -> None:
    config = parse_array_text(f'{TARGET}[[targets.volumes]]\nlun = 0\nname = "v"\nsize = "1m"\n')
    seam = json.loads(config.seam_json())
    assert not {"storage", "control", "partners", "replications"} & seam.keys()
    assert not {"pool", "raid_set", "power_protected"} & seam["targets"][0]["volumes"][0].keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ALL.replace('"d3"]', '"d9"]'), 'lab.toml:8: storage.raid_sets[0].disks: there is no disk "d9"'),
        (ALL.replace(', "d3"]', "]"), "lab.toml:8: storage.raid_sets[0].disks: RAID 6 needs at least 4"),
        (ALL.replace('"d3"]', '"d0"]'), 'the disk "d0" is already part of RAID set "r0"'),
        (ALL.replace("raid6", "raid50"), "4 disks do not divide into 2 groups of at least 3"),
        (
            ALL.replace("raid6", "raid0").replace('"d3"]', '"d3"]\nspares = ["d4"]'),
            "lab.toml:9: storage.raid_sets[0].spares",
        ),
        (
            ALL.replace("raid6", "raid10").replace('"d3"]', '"d3"]\njournal = "always"'),
            "lab.toml:9: storage.raid_sets[0].journal: RAID 10 has no parity",
        ),
        (
            ALL.replace('size = "64m"\n', 'size = "64m"\nio_timeout = "10s"\n', 1),
            'a disk of kind "memory" always answers',
        ),
        (ALL.replace("raid6", "raid7"), "lab.toml:7: storage.raid_sets[0].level"),
        (
            ALL.replace('"d3"]', '"d3"]\nchunk = "48k"'),
            "lab.toml:9: storage.raid_sets[0].chunk_bytes: a chunk is a power",
        ),
        (
            ALL.replace('"d3"]', '"d3"]\nchunk = 48'),
            "lab.toml:9: storage.raid_sets[0].chunk: 48 is not a size",
        ),
        (
            ALL.replace('["r0"]', '["r1"]'),
            'lab.toml:11: storage.pools[0].raid_sets: there is no RAID set "r1"; RAID sets: r0',
        ),
        (
            ALL.replace('pool = "p0"', 'pool = "p1"'),
            'lab.toml:18: targets[0].volumes[0].pool: there is no pool "p1"; pools: p0',
        ),
        (
            ALL.replace('size = "64m"\n', ""),
            'lab.toml:2: storage.disks[0].name: a disk of kind "memory" needs a size',
        ),
        (ALL.replace('name = "d"', 'name = "d/1"'), "lab.toml:2: storage.disks[0].name"),
        (
            ALL.replace(DISKS, DISKS + DISKS.replace('"d"', '"e"')).replace(
                'size = "64m"', 'kind = "file"\npath = "d.img"'
            ),
            'lab.toml:9: storage.disks[1].path: the disk "d0" is in ',
        ),
        (
            f"{ALL}[[targets]]\nname = 'iqn.2026-11.lab.linerate:u'\n{VOLUME}",
            'lab.toml:24: targets[1].volumes[0].name: another target has a volume "v" of a pool',
        ),
        (
            f"{ALL}write_cache = true\n",
            "lab.toml:20: targets[0].volumes[0].write_cache: a power cut would lose",
        ),
        (ALL.replace('pool = "p0"', 'raid_set = "r0"'), 'did you mean kind = "raid"?'),
        (
            ALL.replace('kind = "pool"\npool = "p0"\nsize = "1g"', 'kind = "raid"\nraid_set = "r0"'),
            'lab.toml:18: targets[0].volumes[0].raid_set: the RAID set "r0" belongs to pool p0',
        ),
        (
            f"{ALL}{IDENTITY}{PARTNER}{REPLICATION}",
            'replications[0].partner: the table of partner "pair" has no control URL',
        ),
        (f"{ALL}{PARTNER}", "lab.toml:1: control.identity: an array with partners needs a file"),
        (f'{ALL}{IDENTITY}{PARTNER}secret = "s"\n', "lab.toml:25: partners[0].secret: no such key"),
        (
            f"{ALL}{SOURCE.replace('https', 'http')}",
            "lab.toml:25: partners[0].control: partners speak TLS: https://HOST:PORT",
        ),
        (
            f"{ALL}[control]\npartner_listen = '[::1]:1'\n",
            "control.partner_listen: partners know this array by",
        ),
        (f"{ALL}[control]\nlisten = 'here'\n", "lab.toml:21: control.listen"),
        (f"{ALL}[control]\nlisten = '[::1]:70000'\n", "control.listen: a port is at most 65535"),
        (f"{ALL}[control]\ncertificate = 'c.pem'\n", "lab.toml:21: control.certificate: HTTPS needs both"),
    ],
)
def test_mistakes_name_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_array_text(text, name="lab.toml")
    assert message in caught.value.message
    assert caught.value.hint


def test_the_example_shows_every_key_and_works_uncommented() -> None:
    """Its commented tables are real ones: without the marks they are read."""
    text = example_text()
    for table in (DiskConfig, RaidSet, Pool, Storage, Control, Partner, Replication):
        for key in table.model_fields:
            forms = "|".join({key, _SHORT.get(key, key), f"{key}_file"})
            shown = rf"^# (?:(?:{forms}) = |\[\[?(?:storage\.)?{key}\]\]?)"
            assert re.search(shown, text, re.MULTILINE), key
    storage = text[text.index("# [storage]") : text.index("# [control]")]
    raw = tomllib.loads(re.sub(r"^# ", "", storage, flags=re.MULTILINE))["storage"]
    assert {table: len(entries) for table, entries in raw.items()} == {"disks": 1, "raid_sets": 1, "pools": 1}
    config = parse_array_text(re.sub(r"^# ", "", storage, flags=re.MULTILINE) + TARGET)
    assert isinstance(config, ArrayConfig)
    assert config.storage.raid_sets[0].rebuild_bytes_per_s == 50 << 20


@pytest.mark.long
@pytest.mark.parametrize("level", get_args(Level))
def test_both_planes_refuse_the_same_sets(level: Level) -> None:
    for disks in (*range(1, 10), 12, 32, 33, 64, 66):
        for groups in (2, 3) if level in ("raid50", "raid60") else (2,):
            fault = level_fault(level, disks, groups, spares=0)
            assert _is_served(level, disks, groups) == (fault is None), (
                f"{disks} disks, {groups} groups: {fault}"
            )


def _is_served(level: Level, disks: int, groups: int) -> bool:
    names = [f"d{number}" for number in range(disks)]
    raid_set = {"name": "r", "level": level, "disks": names, "groups": groups}
    volume = {"lun": 0, "name": "v", "kind": "raid", "raid_set": "r"}
    config = {
        "portals": ["127.0.0.1:0"],
        "targets": [{"name": "iqn.2026-11.lab.linerate:t", "volumes": [volume]}],
        "storage": {
            "disks": [{"name": name, "kind": "memory", "size_bytes": 64 << 20} for name in names],
            "raid_sets": [raid_set],
        },
    }
    try:
        _core.Array.start(json.dumps(config)).stop()
    except UserError:
        return False
    return True
