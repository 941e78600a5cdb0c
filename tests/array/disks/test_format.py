"""docs/disk-format.md is true: what hosts wrote is read from the disks' files by a reader made from that page."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest

from tests.array.disks.arrays import array_text
from tests.array.disks.reader import UNIT, contents, groups_of, pool
from tests.array.disks.wire import BLOCK, logged_in
from tests.support.serving import serving

IQN = "iqn.2026-11.lab.linerate:format"
LENGTH = 256 << 10
DISKS = {"raid0": 3, "raid1": 2, "raid5": 4, "raid6": 5, "raid10": 4, "raid50": 6, "raid60": 8}
PLACES = (0, 1 << 20, (3 << 20) + 4096)


def _array(level: str, volume: str, pools: str = "") -> str:
    disks = f'path = "d.img"\nsize = "8m"\nsparse = true\ncount = {DISKS[level]}'
    return array_text("format", IQN, disks, level, volume, pools)


def _pattern(number: int) -> bytes:
    return bytes((number * 31 + at * 7 + (at >> 8)) % 251 for at in range(LENGTH))


def _serve_and_write(folder: Path, text: str, places: tuple[int, ...]) -> None:
    with serving(folder, text) as portal, logged_in(portal, IQN) as session:
        for number, place in enumerate(places):
            assert session.write(0, place // BLOCK, _pattern(number)).status == 0


def _files(folder: Path, level: str) -> list[Path]:
    return [folder / f"d{number}.img" for number in range(DISKS[level])]


@pytest.mark.long
@pytest.mark.parametrize("level", DISKS)
def test_a_volume_is_read_from_its_disks(tmp_path: Path, level: str) -> None:
    _serve_and_write(tmp_path, _array(level, 'kind = "raid"\nraid_set = "r0"'), PLACES)
    groups = groups_of(_files(tmp_path, level))
    held = contents(groups)
    for number, place in enumerate(PLACES):
        assert held[place : place + LENGTH] == _pattern(number), f"at {place}"
    for group in groups:
        checked = list(group.checked())
        assert all(checked)
        assert len(checked) >= (0 if level == "raid0" else LENGTH // UNIT)
        for stripe in range(group.stripes if group.parity else 0):
            chunks = [group.piece(group.slot(stripe, position), stripe) for position in range(group.data + 1)]
            total = reduce(
                lambda one, other: one ^ other, (int.from_bytes(chunk, "little") for chunk in chunks)
            )
            assert total == 0, f"P of stripe {stripe}"


@pytest.mark.long
def test_a_pool_is_found_on_its_set(tmp_path: Path) -> None:
    pools = '[[storage.pools]]\nname = "p0"\nraid_sets = ["r0"]\npage_bytes = 65536\n'
    volume = 'kind = "pool"\npool = "p0"\nsize = "2m"'
    _serve_and_write(tmp_path, _array("raid5", volume, pools), (0,))
    held = contents(groups_of(_files(tmp_path, "raid5")))
    found = pool(held)
    first, second = found["copies"]
    assert first == second
    assert first.startswith(b"redb"), first[:16]
    pages = range(found["first_page"], len(held), found["page_bytes"])
    wanted = [_pattern(0)[at : at + 65536] for at in range(0, LENGTH, 65536)]
    assert all(any(held[at : at + 65536] == page for at in pages) for page in wanted)
