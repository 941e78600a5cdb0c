"""Cases that differ in the array that is loaded: what each runs on, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import HostError, UserError
from linerate.lab.supervisor import smbd
from linerate.results import RunDirectory
from linerate.san import load_topology
from linerate.study import StudyDirectory, load_study, parse_study
from linerate.study.conduct import conduct
from linerate.study.journal import CaseSkipped
from linerate.study.laboratory.shares import without_shares

from tests.study.conftest import run_study
from tests.support import need
from tests.support.simulated import SimulatedLaboratory

TEXT = """\
title = "A LUN and a file"

[[san]]
topology = "san-and-nas"

[[workload]]
name = "read"
file = "chelsio.toml"
run = "read size=8k"
metric = "iops"
elapsed = "0.5s"
warm_up = "0s"

[baseline]
settings = { load.array = "a1" }

[[case]]
name = "share"
settings = { load.array = "n1", smb.signing = "on" }

[[case]]
name = "lun-signed"
settings = { smb.signing = "on" }

[repeat]
blocks_min = 1
blocks_max = 1
baselines = 1
settle = "0s"
"""
LUN, FILE = {"load.array": "a1"}, {"load.array": "n1"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('load.array = "n1"', 'load.array = "n7"', r"load\.array: san-and-nas has no array n7"),
        ('load.array = "n1"', "load.array = 3", r"load\.array: 3 cannot be used"),
        (
            'file = "chelsio.toml"\nrun = "read size=8k"',
            'file = "two.toml"',
            r"load\.array: read needs 2 volumes and a1 has 1",
        ),
        (
            'topology = "san-and-nas"',
            'topology = "two-members"\nclock = "virtual"',
            r"load\.array: two-members is computed and has one array",
        ),
    ],
)
def test_an_array_that_cannot_be_loaded_is_an_error(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "two.toml").write_text(
        '[[volume]]\nname = "v{n}"\ncount = 2\ntarget = "null:1m"\n[[stream]]\nname = "read"\nsize = "8k"\n'
    )
    with pytest.raises(UserError, match=words):
        parse_study(TEXT.replace(old, new), folder=tmp_path)


@pytest.fixture
def no_samba(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(array: str) -> dict[str, str]:
        raise HostError(f"{array} is a NAS, and this machine has no smbd", "install it")

    monkeypatch.setattr(smbd, "programs", missing)


@pytest.mark.usefixtures("no_samba")
def test_without_samba_the_cases_of_the_lun_can_run() -> None:
    topology, absent = without_shares(load_topology("san-and-nas"), [LUN, FILE])
    assert [array.name for array in topology.arrays] == ["a1"]
    assert absent == {"n1": "n1 is a NAS, and this machine has no smbd (install it)"}


@pytest.mark.usefixtures("no_samba")
@pytest.mark.parametrize("cases", [[FILE], [{}], [LUN, FILE, {}]])
def test_a_case_that_needs_the_share_keeps_it_in_the_san(cases: list[dict[str, str]]) -> None:
    """Bringing it up then fails, and names the package."""
    topology, absent = without_shares(load_topology("san-and-nas"), cases)
    assert len(topology.arrays) == 2
    assert not absent


def test_a_baseline_whose_array_is_not_there_ends_the_study(tmp_path: Path) -> None:
    """It would load another array than the file says."""
    place = StudyDirectory.create(tmp_path / "study", parse_study(TEXT), source=TEXT).path
    with pytest.raises(HostError, match=r"cannot have the baseline's load\.array: no smbd"):
        conduct(place, SimulatedLaboratory(lacking={"load.array": "no smbd"}), lambda _event: None)


def test_the_shipped_study_compares_equal_volumes_on_equal_lines() -> None:
    study = load_study("protocols", quick=True)
    assert [case.settings["load.array"] for case in study.cases] == ["a1", "n1", "n1"]
    topology = study.sans[0].topology
    assert topology is not None
    lun, share = topology.arrays
    assert (lun.kind, share.kind) == ("iscsi", "nas")
    assert [one.size_bytes for one in lun.volumes] == [one.size_bytes for one in share.volumes]
    assert {port.link for node in topology.nodes for port in node.ports} == {lun.ports[0].link}
    assert {one.name for one in study.workloads} >= {"read-8k", "write-8k", "read-256k", "write-256k"}


@pytest.mark.paced
@pytest.mark.long
def test_each_case_loads_the_volume_of_its_array(tmp_path: Path) -> None:
    need.tool("smbd")
    done = StudyDirectory.open(run_study(tmp_path, TEXT))
    urls = {}
    for step in done.steps:
        (recorded,) = RunDirectory.open(done.path / step.directory).manifest.steps
        urls[step.case] = recorded.spec["volumes"][0]["url"].partition(":")[0]
        usage = RunDirectory.open(done.path / step.directory).usage
        load_s = float(usage["load_cpu_user_s"].sum()) + float(usage["load_cpu_system_s"].sum())
        assert load_s > 0
        assert recorded.counters["host.h1.cpu_s"] > 0.9 * load_s
    assert urls == {"baseline": "iscsi", "share": "smb"}
    skipped = {one.case: one.reason for one in done.entries if isinstance(one, CaseSkipped)}
    assert list(skipped) == ["lun-signed"]
    assert "no volume of this load is a file on an SMB share" in skipped["lun-signed"]
