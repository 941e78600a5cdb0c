"""Workloads on fewer or smaller volumes than their file expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import RunPlan, load_workload
from linerate.workload.fewer import on_first_volumes, volume_names, within
from linerate.workload.overrides import LunMap, Overrides

TWO_STREAMS = (
    "sd=sd1,lun=x,size=1g\nsd=sd2,lun=z,size=2g\n"
    "wd=wd1,sd=(sd1,sd2)\nwd=wd2,sd={}\nrd=rd1,wd=wd*,elapsed=10,interval=1\n"
)


def _read(text: str, folder: Path) -> RunPlan:
    file = folder / "two.vdb"
    file.write_text(text, "ascii")
    return load_workload(file, overrides=Overrides(luns=LunMap({"*": "null:200g"})))


def _dell() -> RunPlan:
    return load_workload("dell-nic", overrides=Overrides(luns=LunMap({"*": "null:200g"})))


def test_the_first_volumes_are_kept_in_every_run_with_their_streams() -> None:
    plan, notices = on_first_volumes(_dell(), 2)
    assert volume_names(plan) == ["sd1", "sd2"]
    for run in plan.steps():
        assert [volume.outstanding for volume in run.spec.volumes] == [5, 5]
        assert {stream.volumes for stream in run.spec.streams} == {("sd1", "sd2")}
    assert [str(notice) for notice in notices] == [
        "dell-nic: uses 2 of 8 volumes (sd1, sd2); 10 I/Os in flight, not 40"
    ]


def test_all_volumes_are_no_change() -> None:
    assert on_first_volumes(_dell(), 8)[1] == ()


def test_more_volumes_than_there_are_and_streams_without_any_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--volumes 9: dell-nic has 8 volumes"):
        on_first_volumes(_dell(), 9)
    plan = _read(TWO_STREAMS.format("sd2"), tmp_path)
    with pytest.raises(UserError, match="wd2 is on sd2 only"):
        on_first_volumes(plan, 1)
    kept, _ = on_first_volumes(_read(TWO_STREAMS.format("sd1"), tmp_path), 1)
    assert volume_names(kept) == ["sd1"]


def test_no_volume_is_used_beyond_its_end_and_smaller_parts_stay() -> None:
    sizes = {f"sd{number}": 10 << 30 for number in range(1, 9)}
    plan, notices = within(_dell(), sizes)
    used = [{volume.size_bytes for volume in run.spec.volumes} for run in plan.steps()]
    assert used == [{10 << 30}, {30 << 20}, {30 << 20}]
    assert len(notices) == 1
    assert "8k-random: uses 10g of each volume, not 100g" in str(notices[0])


def test_a_volume_of_unknown_size_stays_as_it_is() -> None:
    plan, notices = within(_dell(), {})
    assert notices == ()
    assert next(plan.steps()).spec == next(_dell().steps()).spec
