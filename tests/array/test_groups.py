"""An array in a process of its own: what it tells, and what is changed while it serves."""

from __future__ import annotations

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
