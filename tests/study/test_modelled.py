"""A SAN in modelled time: what it has, what it refuses, and what it computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.results import RunDirectory
from linerate.study import Study, parse_study
from linerate.study.laboratory.virtual import VirtualLaboratory

STUDY = """\
title = "Mirrors and stripes"

[[san]]
topology = "eleven-drives"
clock = "virtual"

[[workload]]
name = "random"
file = "raid/transfers-1m.toml"
run = "read"
metric = "mib_s"
elapsed = "3s"
warm_up = "1s"

[baseline]
settings = { array.raid_level = "raid5", mtu = 9000 }

[[case]]
name = "raid0"
settings = { array.raid_level = "raid0" }
"""


@pytest.fixture
def study() -> Study:
    return parse_study(STUDY)


@pytest.fixture
def laboratory(study: Study, tmp_path: Path) -> VirtualLaboratory:
    laboratory = VirtualLaboratory(tmp_path)
    facts = laboratory.bring_up(study.sans[0], [])
    assert (facts["clock"], facts["network"]) == ("virtual", "none")
    return laboratory


def test_settings_of_networks_and_hosts_are_refused(laboratory: VirtualLaboratory) -> None:
    asked = {
        "array.raid_level": "raid0",
        "mtu": 9000,
        "nagle": "on",
        "outstanding": 3,
        "multipath.sessions": 2,
    }
    set_up = laboratory.apply(asked)
    assert set(set_up.refused) == {"mtu", "nagle", "multipath.sessions"}
    assert "neither a network nor a host" in set_up.refused["mtu"]
    assert set_up.readback == {"array.raid_level": "raid0", "outstanding": 3}


@pytest.mark.long
def test_a_run_is_computed_with_its_disks_interval_by_interval(
    study: Study, laboratory: VirtualLaboratory, tmp_path: Path
) -> None:
    figures = {}
    for case in study.cases:
        laboratory.apply({name: value for name, value in case.settings.items() if name != "mtu"})
        measured = laboratory.measure(study.workloads[0], tmp_path / case.name, {"case": case.name})
        figures[case.name] = measured.values
        run = RunDirectory.open(tmp_path / case.name)
        assert run.manifest.steps[0].san["facts"]["clock"] == "virtual"
        disks = run.arrays.filter((run.arrays["part"] == "disk") & ~run.arrays["warmup"])
        assert disks["name"].n_unique() == 11
        assert disks.filter(disks["name"] == "d0")["seconds"].sum() == pytest.approx(3.0, rel=0.05)
        assert (disks["busy_ns"] <= 1.001e9 * disks["seconds"]).all()
        assert disks["read_bytes"].sum() > 0
    parity, stripes = figures["baseline"], figures["raid0"]
    assert min(parity["mib_s"], stripes["mib_s"]) > 50
    assert stripes["capacity_gib"] / parity["capacity_gib"] == pytest.approx(1.1, rel=0.02)
    laboratory.close()


def test_runs_differ_by_their_seed_alone_and_writes_pass_the_drives_caches_by(
    laboratory: VirtualLaboratory, tmp_path: Path
) -> None:
    text = STUDY.replace("raid/transfers-1m.toml", "anvil.toml").replace('run = "read"', 'run = "write-4k"')
    workload = parse_study(text.replace('"mib_s"', '"iops"')).workloads[0]
    laboratory.apply({"array.raid_level": "raid0"})
    iops = []
    for number, seed in enumerate((1, 2, 1)):
        measured = laboratory.measure(workload.seeded(seed), tmp_path / str(number), {})
        iops.append(measured.values["iops"])
    assert iops[0] == iops[2] != iops[1]
    # One write at a time on a drive of 7,200 rpm: a seek and half a turn, not the microseconds of its buffer.
    assert 50 < min(iops) < max(iops) < 400
    (volume,) = RunDirectory.open(tmp_path / "0").manifest.steps[0].spec["volumes"]
    assert volume["durable_writes"] is True


def test_it_needs_disks_and_one_array(study: Study) -> None:
    for topology in ("base-san", "two-pools"):
        with pytest.raises(UserError, match=r"virtual needs a topology with one array, and disks in it"):
            parse_study(STUDY.replace("eleven-drives", topology))
    assert json.loads(study.model_dump_json())["sans"][0]["clock"] == "virtual"
