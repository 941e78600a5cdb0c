"""Paths and faults of a case: read with its other settings, held against the topology, carried into the run."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.san import load_topology
from linerate.settings import applied_by, catalogue
from linerate.study import Study, parse_study
from linerate.study.laboratory.faults import check_faults, faults_of
from linerate.study.laboratory.multipath import path_specs, paths_of
from linerate.study.laboratory.settings import check_setting, loaded
from linerate.workload import VolumeSpec

from tests.study.conftest import TEXT

FOUR = load_topology("mpio-1gbe")
CASE = """
[[case]]
name = "pulled"
settings = { multipath.paths = ["h1.p0 -> a1.p0", "h1.p1 -> a1.p1 standby"], multipath.policy = "least_blocks" }
faults = [{ cable = "h1.p0", at = "1s", for = "500ms" }, { switch = "sw2", at = "1.5s" }]
workloads = ["seqread"]
"""


def pulled(text: str = TEXT) -> str:
    return text.replace("\n[repeat]", CASE + "\n[repeat]")


def test_lists_of_paths_and_tables_of_faults_are_settings_like_others() -> None:
    case = parse_study(pulled()).case("pulled")
    assert case.changed == ("multipath.paths", "multipath.policy", "faults")
    assert case.settings["multipath.paths"] == "h1.p0 -> a1.p0, h1.p1 -> a1.p1 standby"
    assert case.settings["faults"] == "cable h1.p0 at 1s for 0.5s; switch sw2 at 1.5s"
    assert [(one.kind, one.at_s, one.for_s) for one in faults_of(case.settings)] == [
        ("cable", 1.0, 0.5),
        ("switch", 1.5, None),
    ]


def test_faults_of_the_baseline_are_those_of_every_case_that_names_none() -> None:
    text = TEXT.replace("[baseline]", '[baseline]\nfaults = [{ cable = "h1.p0", at = "1s" }]')
    text = text.replace('name = "default"', 'name = "default"\nfaults = []')
    study = parse_study(text)
    assert study.case("nagle on").settings["faults"] == "cable h1.p0 at 1s"
    assert study.case("default").changed == ("mtu", "faults")
    assert faults_of(study.case("default").settings) == ()


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("h1.p0 -> a1.p0", "h1.p7 -> a1.p0", "case[3]: under seqread: "),
        ("h1.p0 -> a1.p0", "h1.p0 to a1.p0", "multipath.paths"),
        ("h1.p1 -> a1.p1", "h1.p0 -> a1.p0", "given twice"),
        ("least_blocks", "fastest", "multipath.policy: 'fastest' is not one of failover_only"),
        ('"sw2"', '"sw9"', "has no switch sw9"),
        ('at = "1.5s"', 'at = "9s"', "the measured time ends after 2 s"),
        ("cable =", "cables =", "cables"),
    ],
)
def test_what_the_san_does_not_have_is_told_with_the_case(wrong: str, right: str, message: str) -> None:
    assert CASE.count(wrong) == 1
    with pytest.raises(UserError) as caught:
        parse_study(pulled().replace(wrong, right))
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", "rr"),
        ("sessions", 0),
        ("sessions", True),
        ("connections", 0),
        ("ios_per_path", "many"),
        ("bytes_per_path", "big"),
        ("path_timeout", "soon"),
        ("failback", "later"),
        ("no_path_queue", True),
        ("paths", "star"),
        ("colour", "red"),
    ],
)
def test_values_that_a_multipath_setting_cannot_take_are_refused(name: str, value: str | int) -> None:
    with pytest.raises(UserError, match=f"multipath.{name}"):
        check_setting(f"multipath.{name}", value)


def test_settings_of_paths_and_faults_have_their_own_appliers() -> None:
    assert {applied_by(name) for name in catalogue() if name.startswith("multipath.")} == {"multipath"}
    assert applied_by("faults") == "faults"


def test_a_layout_gives_every_volume_its_paths() -> None:
    found = paths_of(FOUR, "h1", {"multipath.paths": "partial"})
    assert len(found) == 8
    specs = path_specs(found["a1.v1"], {"multipath.paths": "partial"})
    assert [spec.name for spec in specs] == ["h1.p0-a1.p0", "h1.p1-a1.p1", "h1.p2-a1.p0", "h1.p3-a1.p1"]
    ports = {one.name: one.address for one in (*FOUR.hosts[0].interfaces, *FOUR.arrays[0].interfaces)}
    assert len(ports) == 4  # both call their ports p0, p1
    assert specs[2].interface == "p2"
    assert specs[2].source_address == FOUR.hosts[0].interfaces[2].address
    assert specs[2].portal == f"{FOUR.arrays[0].interfaces[0].address}:3260"


def test_marks_of_a_path_reach_it() -> None:
    settings = {"multipath.paths": "h1.p0 -> a1.p0 weight 5, h1.p1 -> a1.p1 standby"}
    specs = path_specs(paths_of(FOUR, "h1", settings)["a1.v1"], settings)
    assert [(spec.weight, spec.standby) for spec in specs] == [(5, False), (0, True)]


def test_one_path_of_which_nothing_is_asked_needs_no_multipath() -> None:
    alone = paths_of(FOUR, "h1", {})["a1.v1"]
    assert path_specs(alone, {"mtu": 9000}) == ()
    assert len(path_specs(alone, {"multipath.sessions": 4})) == 1


def test_options_reach_the_volume_and_its_paths(study: Study) -> None:
    settings = {
        "multipath.paths": "one-to-one",
        "multipath.policy": "round_robin",
        "multipath.bytes_per_path": "1m",
        "multipath.sessions": 2,
        "multipath.connections": 3,
        "multipath.failback": "5s",
        "multipath.path_timeout": "500ms",
        "multipath.no_path_queue": "forever",
    }
    paths = path_specs(paths_of(FOUR, "h1", settings)["a1.v1"], settings)
    spec = study.workload("seqread").spec
    assert spec is not None
    one = VolumeSpec(name="v1", url="null:1m", paths=paths)
    (volume,) = loaded(spec.model_copy(update={"volumes": (one,)}), settings).volumes
    assert [(path.sessions, path.connections) for path in volume.paths] == [(2, 3), (2, 3)]
    options = volume.multipath
    assert (options.policy, options.bytes_per_path, options.failback) == ("round_robin", 1 << 20, 5.0)
    assert (options.path_timeout_s, options.no_path_queue_s) == (0.5, None)
    assert VolumeSpec.model_validate(volume.model_dump()) == volume


def test_a_fault_has_to_begin_while_the_run_is_measured() -> None:
    check_faults(FOUR, {"faults": "cable h1.p0 at 3s for 60s"}, 4.0)
    with pytest.raises(UserError, match="ends after 3 s"):
        check_faults(FOUR, {"faults": "cable h1.p0 at 3s"}, 3.0)
