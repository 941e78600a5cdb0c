"""A study file is read whole or refused with file, line and key."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.san.reader import TOPOLOGIES
from linerate.studies import STUDIES
from linerate.study import Study, load_study, parse_study
from linerate.study.file import reader
from linerate.study.file.factors import combinations
from linerate.workload.spec import SizeMix

from tests.study.conftest import TEXT

FACTORS = TEXT[: TEXT.index("[baseline]")]


def test_a_case_has_the_settings_of_the_baseline_but_for_its_changes(study: Study) -> None:
    default = study.case("default")
    assert (study.baseline.name, study.baseline.settings) == ("baseline", {"mtu": 9000, "nagle": False})
    assert (default.settings, default.changed) == ({"mtu": 1500, "nagle": False}, ("mtu",))
    assert study.case("nagle on").workloads == ("seqread", "random")


def test_a_workload_is_placed_and_timed_as_the_study_says(study: Study) -> None:
    workload = study.workload("seqread")
    assert workload.spec is not None
    assert (workload.san, workload.warmup_s, workload.elapsed_s) == ("base-san", 1.0, 2.0)
    assert {volume.size_bytes for volume in workload.spec.volumes} == {30 << 20}
    random = study.workload("random").spec
    assert random is not None
    assert {volume.size_bytes for volume in random.volumes} == {64 << 20}  # no more than the array has


def test_quick_shortens_times_and_blocks(study: Study) -> None:
    quick = parse_study(TEXT + "[quick]\nelapsed = 1\nblocks = 2\n", quick=True)
    assert quick.quick
    assert quick.repeat.blocks_max == 2
    assert quick.workload("random").elapsed_s == 1.0


def test_quick_may_leave_workloads_out_with_what_only_they_need() -> None:
    text = TEXT + '[quick]\nworkloads = ["rand*"]\n'
    quick, full = parse_study(text, quick=True), parse_study(text)
    assert [workload.name for workload in quick.workloads] == ["random"]
    assert [san.name for san in quick.sans] == ["base-san"]
    assert quick.case("default").workloads == ("random",)
    assert len(full.workloads) == 3
    with pytest.raises(UserError, match=r"quick.workloads: 'slow': there is no such workload"):
        parse_study(text.replace("rand*", "slow"), quick=True)


def test_a_workload_may_be_for_some_cases_only() -> None:
    text = TEXT.replace('san = "congested-san"', 'san = "congested-san"\ncases = ["def*"]')
    study = parse_study(text)
    runs = {case.name for case in study.cases if "congested" in case.workloads}
    assert runs == {"baseline", "default"}
    with pytest.raises(UserError, match=r"workload\[2\].cases: 'fast': there is no such case"):
        parse_study(text.replace("def*", "fast"))


def test_the_number_of_blocks_can_be_asked_for() -> None:
    for quick in (False, True):
        repeat = parse_study(TEXT, quick=quick, blocks=7).repeat
        assert (repeat.blocks_min, repeat.blocks_max) == (7, 7)
    assert parse_study(TEXT, blocks=7).repeat.settle_s == parse_study(TEXT).repeat.settle_s


def test_a_san_of_its_own_settings_is_checked_and_kept() -> None:
    text = TEXT.replace('topology = "congested-san"', 'topology = "congested-san"\nsettings = { mtu = 4000 }')
    assert parse_study(text).settings("congested-san", "nagle on") == {"mtu": 4000, "nagle": True}
    with pytest.raises(UserError, match=r"san\[1\].settings: mtu"):
        parse_study(text.replace("4000", "40"))


def test_factors_give_every_combination_with_the_first_values_as_baseline() -> None:
    study = parse_study(FACTORS + "[factors]\nmtu = [1500, 9000]\nnagle = [false, true]\n")
    assert [case.name for case in study.cases] == ["baseline", "nagle=on", "mtu=9000", "mtu=9000 nagle=on"]
    assert study.cases[3].changed == ("mtu", "nagle")


def test_a_half_fraction_is_balanced_and_holds_the_baseline() -> None:
    factors = "".join(f"{name} = [false, true]\n" for name in ("lso", "nagle", "rsc", "ecn"))
    study = parse_study(FACTORS + f"[factors]\n{factors}[factorial]\nfraction = 2\n")
    assert len(study.cases) == 8
    assert not any(study.baseline.settings.values())
    for name in ("lso", "nagle", "rsc", "ecn"):
        assert sum(bool(case.settings[name]) for case in study.cases) == 4
    assert all(len(case.changed) % 2 == 0 for case in study.cases)


@pytest.mark.parametrize(("number", "fraction"), [(6, 4), (7, 4), (7, 8), (8, 4), (8, 16)])
def test_a_fraction_mixes_no_factor_with_two_others(number: int, fraction: int) -> None:
    factors = {f"f{index}": (-1, 1) for index in range(number)}
    runs = list(combinations(factors, fraction))
    assert len(runs) == 2**number // fraction
    for one, two, three in itertools.combinations(factors, 3):
        assert sum(int(run[one]) * int(run[two]) * int(run[three]) for run in runs) == 0
        assert sum(int(run[one]) * int(run[two]) for run in runs) == 0


def test_lan_traffic_alone_is_not_warmed_up_by_a_rule_about_ios() -> None:
    text = (STUDIES / "converged.toml").read_text()
    lan = text.index('name = "lan-alone"')
    text = text[:lan] + text[lan:].replace('warm_up = "4s"', 'warm_up = "steady"', 1)
    with pytest.raises(UserError, match=r"workload\[1\].warm_up: LAN traffic alone"):
        parse_study(text)


@pytest.mark.parametrize("name", ["nagle-on", "baseline 2"])
def test_names_that_come_to_one_run_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="come to one run name"):
        parse_study(TEXT.replace('name = "default"', f'name = "{name}"'))


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('metric = "iops"', 'metric = "speed"', "study file:20: workload[1].metric: there is no metric"),
        ("8k-random", "9k-random", "study file:19: workload[1].file: there is no workload file"),
        ("8k-random", "9k-random", "and no shipped one of this name"),
        ('san = "congested-san"', 'san = "elsewhere"', "study file:26: workload[2].san: there is no SAN"),
        ('workloads = ["seqread"', 'workloads = ["sqread"', "no such workload"),
        ("mtu = 1500", "mtu = 9000", "nothing differs from the baseline"),
        ("blocks_max = 5", "blocks_max = 2", "repeat.blocks_max: less than blocks_min"),
        ("blocks_max = 5", "block_max = 5", "repeat.block_max: no such key (did you mean blocks_max?"),
        ('topology = "congested-san"', 'topology = "nowhere"', "san[1].topology: nowhere"),
        ("mtu = 1500", "mtu = 150", "mtu"),
        ("mtu = 1500", "mtuu = 1500", "mtuu"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_key(wrong: str, right: str, message: str) -> None:
    assert TEXT.count(wrong) == 1
    with pytest.raises(UserError) as caught:
        parse_study(TEXT.replace(wrong, right))
    assert message in f"{caught.value.message} ({caught.value.hint}"


def test_all_mistakes_are_told_at_once() -> None:
    text = TEXT.replace('"iops"', '"speed"').replace("mtu = 1500", "mtu = 9000")
    with pytest.raises(UserError, match=r"(?s)speed.*nothing differs"):
        parse_study(text)


def test_an_unknown_study_is_answered_with_the_shipped_ones() -> None:
    with pytest.raises(UserError, match="no such study"):
        load_study("nic-tunning")


def test_a_shipped_study_is_named_without_a_folder(tmp_path: Path) -> None:
    assert load_study("demo.toml").name == "demo"
    for word in (tmp_path / "demo.toml", tmp_path / "demo", "./demo.toml", "demo.json"):
        with pytest.raises(UserError, match=f"^{re.escape(str(word))}: no such study"):
            load_study(word)


def test_a_volume_is_no_study_and_its_secret_is_not_shown() -> None:
    with pytest.raises(UserError, match=re.escape("iscsi://***@array/iqn/0: a volume, not a study")):
        load_study("iscsi://user%secret@array/iqn/0")


def test_a_study_directory_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "study.json").touch()
    with pytest.raises(UserError, match="a directory with results") as raised:
        load_study(tmp_path)
    assert f"linerate study resume {tmp_path}" in raised.value.hint


def test_a_shipped_study_is_read_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(reader, "is_study", lambda path: asked.append(path.stem) is None)
    assert load_study("demo").name == "demo"
    assert asked == ["demo"]


def test_a_study_beside_its_own_topology(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text((TOPOLOGIES / "base-san.toml").read_text().replace('"h1"', '"h7"'))
    (tmp_path / "study.toml").write_text(
        TEXT.replace('topology = "base-san"', 'name = "base-san"\ntopology = "mine.toml"')
    )
    topology = load_study(tmp_path / "study.toml").sans[0].topology
    assert topology is not None
    assert [host.name for host in topology.hosts] == ["h7"]


def test_a_case_without_settings_is_the_baseline_once_more() -> None:
    """A/A: it shows what a comparison finds when nothing was changed."""
    study = parse_study(TEXT.replace("[repeat]", '[[case]]\nname = "again"\n\n[repeat]'))
    again = study.case("again")
    assert again.changed == ()
    assert again.settings == study.baseline.settings


def test_a_run_of_a_sweep_is_named_by_its_label() -> None:
    study = load_study("smb-sizes")
    sizes = {one.name: one.spec.streams[0].sizes for one in study.workloads if one.spec is not None}
    assert len(sizes) == 33
    assert sizes["write-8k"] == SizeMix.one(8192)
    assert sizes["mixed-1m"] == SizeMix.one(1 << 20)


HOSTS = """
title = "A share"
[[san]]
host = [{ name = "here", devices = ["lo"], volumes = ["URL"] }]
[[workload]]
name = "read"
file = "chelsio.toml"
run = "read size=8k"
metric = "iops"
[[case]]
name = "signed"
settings = { smb.signing = "on" }
"""


def test_the_password_of_a_share_is_wanted_where_the_study_runs_and_not_in_its_file() -> None:
    (san,) = parse_study(HOSTS.replace("URL", "smb://backup@nas/disks/test.img")).sans
    assert san.hosts[0].volumes == ("smb://backup@nas/disks/test.img",)
    with pytest.raises(UserError) as caught:
        parse_study(HOSTS.replace("URL", "smb://backup%hidden@nas/disks/test.img"))
    assert "LINERATE_SMB_PASSWORD" in f"{caught.value.message} {caught.value.hint}"
    assert "hidden" not in f"{caught.value.message} {caught.value.hint}"
