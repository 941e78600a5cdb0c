"""A study directory becomes a page: what was set, what helped, what was left out. All figures are made up."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from linerate.analysis.verdict import Judgement, Observation, judge
from linerate.cli import main
from linerate.report.study import StudyPage, study_page, write_run_reports, write_study_report
from linerate.report.study.build import render_study
from linerate.report.study.model import Recommendation
from linerate.report.study.recommend import recommend
from linerate.report.study.runs import run_links
from linerate.report.study.verdicts import verdict_lines
from linerate.results import RunDirectory
from linerate.study import Case, StudyDirectory
from linerate.study.journal import StepDone

from tests.report.test_page import Page, assert_self_contained
from tests.support.samples.study_directory import BASE, REFUSED, make_study_directory, sample_study

BLOCKS = 5


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> StudyDirectory:
    return make_study_directory(tmp_path_factory.mktemp("study") / "sample", blocks=BLOCKS)


@pytest.fixture(scope="module")
def page(directory: StudyDirectory) -> StudyPage:
    return study_page(directory)


def test_the_page_has_what_the_directory_has(page: StudyPage) -> None:
    assert (page.title, page.state, page.blocks) == ("NIC tuning (sample)", "complete", BLOCKS)
    assert [part.name for part in page.workloads] == ["8k-random", "256k-seq-read"]
    assert ("fabric", "user") in page.laboratory
    assert ("largest lag", "0.21 ms") in page.laboratory
    ((caption, svg),) = page.topologies
    assert caption == "base-san, carried by the user fabric"
    assert "96% used" in svg
    assert "MTU 9000" in svg, "as the baseline has it"
    assert "MTU 1500" not in svg
    assert page.text.startswith('title = "NIC tuning (sample)"')
    jumbo = page.cases[2]
    assert jumbo.name == "jumbo"
    assert {setting.name for setting in jumbo.settings} == {
        "Receive buffers (rx_ring_frames)",
        "Transmit buffers (tx_ring_frames)",
    }
    assert all(setting.read_back == setting.asked for setting in jumbo.settings)


def test_a_case_that_cannot_be_had_is_named_with_the_reason(page: StudyPage) -> None:
    assert page.cases[-1].not_applicable == f"isoe: {REFUSED}"
    assert page.skipped == (("iSCSI offload engine on", f"isoe: {REFUSED}"),)


@pytest.mark.long
def test_the_html_is_written_again_when_asked_for(directory: StudyDirectory) -> None:
    path = write_study_report(directory)
    assert path == directory.path / "report.html"
    text = path.read_text()
    assert_self_contained(text)
    assert Page(text).count("svg") > 10
    path.write_text("old")
    write_study_report(directory)
    assert path.read_text() == text


def test_every_doubt_about_a_run_is_told_once(page: StudyPage, directory: StudyDirectory) -> None:
    text = Page(write_study_report(directory).read_text()).text
    assert text.count("20 s were measured") == 1
    assert "20 s were measured every run" in text
    assert page.validity.stamp == "valid"


def test_a_study_that_was_left_says_so(tmp_path: Path) -> None:
    left = study_page(make_study_directory(tmp_path / "left", blocks=2, state="interrupted"))
    assert (left.state, left.reason, left.validity.stamp) == ("interrupted", "stopped by the user", "caution")
    empty = study_page(make_study_directory(tmp_path / "empty", blocks=0, state="interrupted"))
    assert empty.validity.stamp == "void"
    assert empty.observations == ()


def test_runs_that_are_gone_do_not_hide_the_verdicts(directory: StudyDirectory, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory.path, copy)
    shutil.rmtree(copy / "runs")
    bare = study_page(StudyDirectory.open(copy))
    assert len(bare.judgement.effects) == len(directory.verdicts.judgement.effects)  # type: ignore[union-attr]
    assert all(setting.read_back == "" for case in bare.cases for setting in case.settings)


# ---- run reports ----


@pytest.mark.long
def test_the_page_links_the_first_run_of_each_case(tmp_path: Path) -> None:
    directory = make_study_directory(tmp_path / "a study", blocks=2)
    write_run_reports(directory)
    links = run_links(directory, directory.path / "report.html")
    assert set(links) == {(step.case, step.workload) for step in directory.measured.values()}
    text = write_study_report(directory).read_text()
    for link in links.values():
        assert link.startswith("runs/")
        assert "-b01-" in link
        assert (directory.path / unquote(link)).is_file()
        assert f'href="{link}"' in text
    elsewhere = write_study_report(directory, tmp_path / "pages" / "study.html")
    assert 'href="../a%20study/runs/' in elsewhere.read_text()


def test_run_reports_take_no_more_than_their_time(tmp_path: Path) -> None:
    directory = make_study_directory(tmp_path / "study", blocks=1)
    write_run_reports(directory, 0.0)
    assert run_links(directory, directory.path / "report.html") == {}
    assert 'id="runs"' not in write_study_report(directory).read_text()


def test_runs_that_are_gone_have_no_report(tmp_path: Path) -> None:
    directory = make_study_directory(tmp_path / "study", blocks=1)
    shutil.rmtree(directory.path / "runs")
    write_run_reports(directory)
    assert run_links(directory, directory.path / "report.html") == {}


# ---- recommended settings ----


def recommended(cases: Sequence[Case], page: StudyPage, judgement: Judgement) -> dict[str, Recommendation]:
    found = recommend(cases, page.observations, judgement, page.workloads)
    return {item.setting: item for item in found}


def test_only_settings_that_earned_their_place_are_recommended(page: StudyPage) -> None:
    found = {item.setting: item for item in page.recommendations}
    assert set(found) == {"Jumbo frames (mtu)", "Delayed ACK (delayed_ack)"}
    mtu = found["Jumbo frames (mtu)"]
    assert (mtu.instead_of, mtu.recommended, mtu.mixed) == ("1500 bytes", "9000 bytes", False)
    assert any(line.startswith("256K sequential read: +") for line in mtu.evidence)
    assert not any(line.startswith("8K random, 67 % read: +") for line in mtu.evidence)


def test_settings_that_no_pair_of_cases_separates_are_recommended_together(page: StudyPage) -> None:
    cases = [case for case in sample_study().cases if case.name in ("baseline", "default")]
    observations = [seen for seen in page.observations if seen.case in ("baseline", "default")]
    both = judge(observations, "baseline", {name: metric for name, (metric, _) in BASE.items()})
    (name,) = recommended(cases, replace(page, observations=tuple(observations)), both)
    assert name.count(" and ") == 2


def test_without_a_case_of_defaults_the_baseline_has_to_be_beaten(page: StudyPage) -> None:
    off, on = (
        case.model_copy(update={"settings": {"delayed_ack": value}})
        for case, value in zip(sample_study().cases[0:5:4], ("off", "on"), strict=True)
    )
    (found,) = recommend([off, on], page.observations, page.judgement, page.workloads)
    assert (found.recommended, found.instead_of) == ("on", "off")


def test_a_setting_that_also_hurts_depends_on_the_load(page: StudyPage) -> None:
    def bent(seen: Observation) -> Observation:
        if (seen.case, seen.workload) != ("no-delayed-ack", "256k-seq-read"):
            return seen
        return replace(seen, values={**seen.values, "mib_s": 0.7 * seen.values["mib_s"]})

    observations = tuple(bent(seen) for seen in page.observations)
    judgement = judge(observations, "baseline", {name: metric for name, (metric, _) in BASE.items()})
    found = recommended(sample_study().cases, replace(page, observations=observations), judgement)
    item = found["Delayed ACK (delayed_ack)"]
    assert item.mixed
    assert any("256K sequential read: -3" in line for line in item.cost)


def test_what_the_lan_pays_is_a_cost(page: StudyPage) -> None:
    def bent(seen: Observation) -> Observation:
        lan = (20.0 if seen.case == "no-delayed-ack" else 30.0) + 0.01 * seen.block
        return replace(seen, values={**seen.values, "lan_mib_s": lan})

    observations = tuple(bent(seen) for seen in page.observations)
    judgement = judge(observations, "baseline", {name: metric for name, (metric, _) in BASE.items()})
    found = recommended(sample_study().cases, replace(page, observations=observations), judgement)
    item = found["Delayed ACK (delayed_ack)"]
    assert item.mixed
    assert all("LAN throughput -33" in line for line in item.cost)


def test_every_comparison_that_tests_a_setting_is_shown(page: StudyPage) -> None:
    """Jumbo frames are compared with and without delayed ACKs, and cost something in one of the two."""
    known = {case.name: case for case in sample_study().cases}
    cases, observations = [known["baseline"], known["default"], known["jumbo"]], list(page.observations)
    for name in ("default", "jumbo"):
        settings = {**known[name].settings, "delayed_ack": "off"}
        title = f"{known[name].title}, no delayed ACK"
        cases.append(
            known[name].model_copy(update={"name": f"{name}-x", "title": title, "settings": settings})
        )
        for seen in page.observations:
            if seen.case == name:
                harm = 0.8 if (name, seen.workload) == ("jumbo", "8k-random") else 1.0
                values = {**seen.values, **({"iops": harm * seen.values["iops"]} if harm < 1 else {})}
                observations.append(replace(seen, case=f"{name}-x", values=values))
    found = recommended(cases, replace(page, observations=tuple(observations)), page.judgement)
    mtu = found["Jumbo frames (mtu)"]
    sequential = [line for line in mtu.evidence if line.startswith("256K sequential read: +")]
    assert len(sequential) == 2
    assert sequential[0].endswith("(jumbo frames, default buffers against default settings)")
    assert sequential[1].endswith(
        "(jumbo frames, default buffers, no delayed ACK against default settings, no delayed ACK)"
    )
    assert any("8K random, 67 % read: -" in line for line in mtu.cost)
    assert mtu.mixed


def test_less_cpu_alone_is_no_reason_while_harm_is_not_excluded(page: StudyPage) -> None:
    def bent(seen: Observation) -> Observation:
        if seen.case != "no-delayed-ack":
            return seen
        noisy = 0.85 + 0.06 * seen.block if seen.workload == "8k-random" else 1.0
        metric = BASE[seen.workload][0]
        values = {metric: noisy * BASE[seen.workload][1], "host_cpu_percent": 15.0 + 0.1 * seen.block}
        return replace(seen, values={**seen.values, **values})

    observations = tuple(bent(seen) for seen in page.observations)
    judgement = judge(observations, "baseline", {name: metric for name, (metric, _) in BASE.items()})
    cpu = judgement.effect("no-delayed-ack", "256k-seq-read", "host_cpu_percent")
    random = judgement.effect("no-delayed-ack", "8k-random")
    assert cpu is not None
    assert random is not None
    assert (cpu.verdict, random.verdict) == ("better", "undecided")
    found = recommended(sample_study().cases, replace(page, observations=observations), judgement)
    assert "Delayed ACK (delayed_ack)" not in found


def test_less_cpu_for_less_work_is_no_gain(page: StudyPage) -> None:
    def bent(seen: Observation) -> Observation:
        if seen.case != "no-delayed-ack":
            return seen
        factor = 0.5 if seen.workload == "8k-random" else 1.5
        metric, value = BASE[seen.workload]
        values = {
            metric: factor * value * (1 + 0.001 * seen.block),
            "host_cpu_percent": 15.0 + 0.1 * seen.block,
        }
        return replace(seen, values={**seen.values, **values})

    observations = tuple(bent(seen) for seen in page.observations)
    judgement = judge(observations, "baseline", {name: metric for name, (metric, _) in BASE.items()})
    cpu = judgement.effect("no-delayed-ack", "8k-random", "host_cpu_percent")
    assert cpu is not None
    assert cpu.verdict == "better"
    found = recommended(sample_study().cases, replace(page, observations=observations), judgement)
    (gain,) = found["Delayed ACK (delayed_ack)"].evidence
    assert gain.startswith("256K sequential read: +50")
    assert "host CPU -" in gain


# ---- the verb ----


@pytest.mark.long
def test_the_verb_takes_a_study_and_a_run(
    directory: StudyDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(directory.path), "--html", str(tmp_path / "study.html")]) == 0
    told = capsys.readouterr().out
    assert "not applicable  isoe" in told
    assert "recommended:" in told
    assert told.rstrip().endswith(f"report: {tmp_path / 'study.html'}")
    assert (tmp_path / "study.html").exists()
    run = directory.run(next(iter(directory.measured.values())))
    assert isinstance(run, RunDirectory)
    assert main(["report", str(run.path), "--html", str(tmp_path / "run.html")]) == 0


def test_a_study_has_no_vdbench_output(
    directory: StudyDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(directory.path), "--vdbench-output", str(tmp_path / "v")]) == 2
    assert "a study has no vdbench output" in capsys.readouterr().err


def test_a_case_whose_runs_were_all_void_keeps_its_row_and_says_so(directory: StudyDirectory) -> None:
    void = [
        entry.model_copy(update={"state": "void", "reason": "the fabric fell behind"})
        if isinstance(entry, StepDone) and (entry.case, entry.workload) == ("jumbo", "8k-random")
        else entry
        for entry in directory.entries
    ]
    page = study_page(StudyDirectory(directory.path, directory.record, tuple(void)))
    assert page.void == {("jumbo", "8k-random")}
    (line,) = [line for line in verdict_lines(page) if line.endswith("all runs void")]
    assert line.split()[:2] == ["8k-random", "jumbo"]
    assert render_study(page).count("all runs void") == 1
