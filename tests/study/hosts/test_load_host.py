"""Cases that differ in the host that makes the load: what each runs on, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from linerate.analysis.verdict import shipped_claims
from linerate.cli import main
from linerate.errors import UserError
from linerate.results import RunDirectory
from linerate.study import Study, StudyDirectory, load_study, parse_study
from linerate.study.conduct import conduct
from linerate.study.judge import judged
from linerate.study.laboratory import SetUp
from linerate.study.laboratory.hosts import HostLaboratory
from linerate.study.model import RealHost
from linerate.volumes import Consent

TEXT = """\
title = "Host and guest"

[[san]]
name = "blade"

[[san.host]]
name = "native"
devices = ["lo"]
volumes = ["null:1048576"]

[[san.host]]
name = "guest"
ssh = "root@guest"
devices = ["lo"]
volumes = ["null:2097152"]

[[workload]]
name = "read"
file = "load.toml"
metric = "iops"
elapsed = "0.4s"
warm_up = "0s"

[baseline]
settings = { load.host = "native" }

[[case]]
name = "guest"
settings = { load.host = "guest" }
claims = ["scale.virtualized"]

[repeat]
blocks_min = 2
blocks_max = 2
settle = "0s"
"""
LOAD = """\
[[volume]]
name = "v1"
target = "null:1m"

[[stream]]
name = "read"
size = "64k"
"""


class _Applier:
    def hold(self, settings: Any) -> SetUp:
        return SetUp(dict(settings), {})

    def restore(self) -> None:
        pass


def study_of(folder: Path, text: str = TEXT) -> Study:
    (folder / "load.toml").write_text(LOAD)
    return parse_study(text, folder=folder)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return study_of(tmp_path)


@pytest.fixture
def laboratory(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLaboratory:
    """Both hosts are this machine, which no study file may say."""
    monkeypatch.setattr(HostLaboratory, "_applier", lambda self, host, stack: _Applier())
    monkeypatch.setattr(RealHost, "is_here", True)
    return HostLaboratory(tmp_path, Consent.nothing())


@pytest.mark.long
def test_each_case_loads_the_volumes_of_its_host_and_is_compared(
    study: Study, tmp_path: Path, laboratory: HostLaboratory
) -> None:
    place = StudyDirectory.create(tmp_path / "study", study, source=TEXT).path
    done = conduct(place, laboratory, lambda event: None)
    assert done.state == "complete"
    loaded = {}
    for step in done.steps:
        (recorded,) = RunDirectory.open(done.path / step.directory).manifest.steps
        loaded.setdefault(step.case, set()).add(recorded.spec["volumes"][0]["url"])
    assert loaded == {"baseline": {"null:1048576"}, "guest": {"null:2097152"}}
    (verdict,) = judged(done).claims
    assert verdict.claim == "scale.virtualized"
    assert verdict.verdict != "needs hardware", "on hosts that exist it is judged"


def test_what_is_written_to_is_looked_at_on_every_host_that_loads(
    study: Study, laboratory: HostLaboratory
) -> None:
    spec = study.workloads[0].spec
    assert spec is not None
    streams = tuple(stream.model_copy(update={"read_percent": 0.0}) for stream in spec.streams)
    workload = study.workloads[0].model_copy(update={"spec": spec.model_copy(update={"streams": streams})})
    writes = study.model_copy(update={"workloads": (workload,)})
    assert {look.url for look in laboratory.survey(writes)} == {"null:1048576", "null:2097152"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'load.host = "guest"',
            'load.host = "ghost"',
            r"load\.host: blade has no host ghost",
        ),
        ('load.host = "guest"', "load.host = 3", r"load\.host: 3 cannot be used"),
        ('file = "load.toml"', 'file = "two.toml"', r"read needs 2 volumes and native has 1"),
    ],
)
def test_a_host_that_cannot_make_the_load_is_an_error(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "two.toml").write_text(LOAD.replace('"v1"', '"v{n}"\ncount = 2'))
    with pytest.raises(UserError, match=words):
        study_of(tmp_path, TEXT.replace(old, new))


def test_on_a_computed_san_there_is_no_host() -> None:
    text = """\
title = "Computed"
[[san]]
topology = "two-members"
clock = "virtual"
[[workload]]
name = "random"
file = "raid/members.toml"
run = "random"
metric = "iops"
[baseline]
[[case]]
name = "one"
settings = { load.host = "h1" }
"""
    with pytest.raises(UserError, match=r"load\.host: two-members is computed and has no hosts"):
        parse_study(text)


@pytest.mark.long
def test_the_shipped_study_plans_and_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    study = load_study("virtualized")
    assert [case.settings for case in study.cases] == [{"load.host": "hypervisor"}, {"load.host": "guest"}]
    assert {len(host.volumes) for host in study.sans[0].hosts} == {4}
    assert main(["run", "virtualized", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "load random-10: v1 to v4, for native" in said
    assert "load random-10: v1 to v4, for guest" in said
    assert f"needs hardware for scale.virtualized: {shipped_claims()['scale.virtualized'].because}" in said
    assert main(["studies"]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("virtualized")]
    assert "your hosts" in line
