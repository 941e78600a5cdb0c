"""An array in a process of its own: what it tells, and what is changed while it serves."""

from __future__ import annotations

import time

import pytest
from linerate.array import (
    AluaChange,
    ArrayChange,
    ArrayConfig,
    EmbeddedArray,
    Portal,
    TargetConfig,
    VolumeConfig,
)
from linerate.errors import UserError

IQN = "iqn.2026-11.lab.linerate:groups"


def _config() -> ArrayConfig:
    portals = ("127.0.0.1:0", Portal(address="127.0.0.1:0", group=2))
    target = TargetConfig(name=IQN, volumes=(VolumeConfig(lun=0, name="vol1", size_bytes=1 << 20),))
    return ArrayConfig(portals=portals, targets=(target,))


def _standby(group: int, volume: str | None = None) -> ArrayChange:
    return ArrayChange(alua=(AluaChange(group=group, state="standby", volume=volume),))


def test_it_tells_where_it_listens_and_takes_changes() -> None:
    with EmbeddedArray(_config()) as array:
        portals = [(row["address"], row["group"]) for row in array.stats()["by_portal"]]
        assert portals == [
            (f"{host}:{port}", group) for (host, port), group in zip(array.portals, (1, 2), strict=True)
        ]
        array.change(_standby(2))
        with pytest.raises(UserError, match="no portal group 9"):
            array.change(_standby(9))
        with pytest.raises(UserError, match='no volume "vol9"'):
            array.change(_standby(2, "vol9"))
        assert array.stats()["by_session"] == []
    with pytest.raises(UserError, match="does not run"):
        array.stats()


@pytest.mark.long
def test_memory_that_is_used_for_the_first_time_counts_as_page_faults() -> None:
    size_bytes = 256 << 20  # 128 huge pages, or many small ones
    target = TargetConfig(name=IQN, volumes=(VolumeConfig(lun=0, name="vol1", size_bytes=size_bytes),))
    pages = []
    for touch in (False, True):
        config = ArrayConfig(portals=("127.0.0.1:0",), targets=(target,), touch_memory=touch)
        with EmbeddedArray(config) as array:
            before = array.page_faults()
            until_s = time.monotonic() + (10.0 if touch else 0.5)
            while (grown := array.page_faults() - before) < 64 and time.monotonic() < until_s:
                time.sleep(0.05)
            pages.append(grown)
    assert pages[0] < 64 <= pages[1]
