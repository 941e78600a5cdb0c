"""The shipped studies of scale: plans, hosts that are shares of the load, and the quick forms from end to end."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.results import RunDirectory
from linerate.scale import Curve, ScaleTask, Threshold
from linerate.studies import STUDIES
from linerate.study import StudyDirectory, StudyPlan, load_study, parse_study
from linerate.study.conduct import conduct
from linerate.study.judge import judged
from linerate.study.laboratory.virtual import VirtualLaboratory
from linerate.study.scaling import Searching, searches

NAMES = {"scale-threads": ("scale.threads", 10), "scale-servers": ("scale.servers", 8)}


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_study_of_scale_plans_the_published_loads(name: str) -> None:
    claim, most = NAMES[name]
    study = load_study(name)
    assert study.scale is not None
    assert study.scale.until == Threshold("mean", 20.0)
    assert study.scale.parts.curve == Curve(tuple(range(1, most + 1)), 4)
    assert [(test.claim, test.case) for test in study.claims] == [(claim, "raid10")]
    assert all(san.clock == "virtual" for san in study.sans)
    quick = StudyPlan(load_study(name, quick=True)).duration()
    assert quick.most_s <= 420


def test_the_published_in_flight_ios_are_those_of_the_paper() -> None:
    found = {}
    for name in NAMES:
        study = load_study(name)
        for step in StudyPlan(study).block(1):
            searching = Searching(study, step, ())
            spec = searching.at(study.workload(step.workload), ScaleTask("up", 3)).spec
            assert spec is not None
            found[name, step.workload] = [volume.outstanding for volume in spec.volumes]
    assert found == {
        ("scale-threads", "per-volume"): [3] * 16,
        ("scale-threads", "per-server"): [3] * 4,
        ("scale-servers", "per-volume"): [10] * 6,
        ("scale-servers", "per-server"): [5] * 6,
    }


def test_volumes_of_hosts_are_dealt_over_the_volumes_of_a_computed_array(tmp_path: Path) -> None:
    study = load_study("scale-servers", quick=True)
    step = StudyPlan(study).block(1)[0]
    workload = Searching(study, step, ()).at(study.workload("per-server"), ScaleTask("up", 2))
    laboratory = VirtualLaboratory(tmp_path)
    laboratory.bring_up(study.sans[0], [])
    laboratory.apply({"array.raid_level": "raid10"})
    found = laboratory.measure(workload, tmp_path / "run", {})
    (recorded,) = RunDirectory.open(tmp_path / "run").manifest.steps
    urls = [volume["url"] for volume in recorded.spec["volumes"]]
    assert len(urls) == 4
    assert urls[:2] == urls[2:]
    assert len(set(urls)) == 2
    assert found.values["iops"] * found.values["response_ms"] == pytest.approx(20_000, rel=0.05), (
        "20 in flight"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("volumes_per_host = 2\n", "", r"scale\.volumes_per_host: missing: a computed SAN has no hosts"),
        ("volumes_per_host = 2", "volumes_per_host = 3", r"scale\.curve: loads from 1 to 8"),
        (
            "volumes_per_host = 2",
            "volumes_per_host = 2\nmost = 9",
            r"scale\.most: up to 9 hosts with 2 volumes",
        ),
        (
            'settings = { array.raid_level = "raid50" }',
            'settings = { array.raid_level = "raid50", load.volumes = 2 }',
            "load.volumes is what a search changes",
        ),
    ],
)
def test_hosts_that_cannot_be_counted_are_an_error(old: str, new: str, words: str) -> None:
    text = (STUDIES / "scale-servers.toml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(UserError, match=words):
        parse_study(text.replace(old, new, 1))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_quick_form_of_a_study_of_scale_ends_with_its_verdict(tmp_path: Path) -> None:
    name = "scale-servers"  # the other one differs in its axis, and takes longer
    claim, most = NAMES[name]
    place = StudyDirectory.create(tmp_path / "study", load_study(name, quick=True)).path
    done = conduct(place, VirtualLaboratory(place), lambda event: None)
    assert done.state == "complete"
    (verdict,) = judged(done).claims
    assert (verdict.claim, verdict.cases) == (claim, ("raid10",))
    assert verdict.verdict in ("differs", "agrees in part"), (
        "24 drives do not carry ten times the rate of one thread"
    )
    assert f"for {most} times the load" in verdict.measured
    assert "The disks are busy" in verdict.reason
    rates = {}
    for run in next(one for one in searches(done) if one.case.name == "raid10").procedure.runs:
        rates.setdefault(run.load, run.iops)
    assert rates[1] < rates[2] < rates[most] < most * rates[1]
