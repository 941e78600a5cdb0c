"""A study is conducted as planned in spite of failures, and continues where it stopped."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.errors import HostError, PeerError, UserError
from linerate.study import Study, StudyDirectory, StudyPlan, parse_study
from linerate.study.conduct import conduct, spent_s
from linerate.study.journal import CaseSkipped, StudyJournal
from linerate.study.judge import judged
from linerate.study.laboratory import SetUp
from linerate.study.repeat import missing

from tests.study.conftest import TEXT
from tests.support.simulated import SimulatedLaboratory


def run(place: Path, laboratory: SimulatedLaboratory) -> StudyDirectory:
    return conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)


def keys(directory: StudyDirectory) -> list[str]:
    return [step.key for step in directory.steps if step.state == "complete"]


def planned(study: Study, blocks: int, without: str = "offload") -> list[str]:
    plan = StudyPlan(study)
    steps = [step for number in range(1, blocks + 1) for step in plan.block(number)]
    return [step.key for step in steps if step.case != without]


def test_a_quiet_study_ends_after_the_fewest_blocks_in_the_planned_order(place: Path, study: Study) -> None:
    done = run(place, SimulatedLaboratory(lacking={"toe": "no adapter with it"}))
    assert done.state == "complete"
    assert keys(done) == planned(study, 3)
    assert {step.directory for step in done.steps} == {
        f"runs/{path.name}" for path in (place / "runs").iterdir()
    }
    assert all(done.run(step).manifest.steps[0].san["case"] == step.case for step in done.steps)


def test_a_case_that_cannot_be_had_is_named_with_its_reason_and_not_run(place: Path) -> None:
    laboratory = SimulatedLaboratory(lacking={"toe": "no adapter with it"})
    done = run(place, laboratory)
    assert done.not_applicable == {
        ("base-san", "offload"): "toe: no adapter with it",
        ("congested-san", "offload"): "toe: no adapter with it",
    }
    assert not any("offload" in line for line in laboratory.log)


class Busy(SimulatedLaboratory):
    """Refuses a value of a setting a few times before it can be had."""

    def __init__(self, value: object, times: int) -> None:
        super().__init__()
        self.value, self.left, self.asked = value, times, 0

    def apply(self, settings):  # type: ignore[no-untyped-def]
        done = super().apply(settings)
        if self.value not in settings.values():
            return done
        self.asked += 1
        if self.asked > self.left:
            return done
        return SetUp(done.readback, {name: "busy" for name, at in settings.items() if at == self.value})


def test_a_refusal_that_passes_costs_no_case_and_no_run(place: Path, study: Study) -> None:
    done = run(place, Busy(1500, times=1))
    assert done.state == "complete"
    assert done.not_applicable == {}
    assert set(planned(study, 3, without="")) <= set(keys(done))
    assert len([entry for entry in done.entries if isinstance(entry, CaseSkipped)]) == 1


def test_a_case_that_is_refused_in_two_blocks_running_is_not_asked_for_again(place: Path) -> None:
    laboratory = Busy(1500, times=1000)
    done = run(place, laboratory)
    assert done.state == "complete"
    assert set(done.not_applicable) == {("base-san", "default"), ("congested-san", "default")}
    assert laboratory.asked == 4


def test_a_run_that_fails_whenever_it_is_tried_leaves_the_study_incomplete_until_it_is_made_up(
    place: Path, study: Study
) -> None:
    fault = PeerError("a1 went away", "see its log")
    done = run(place, SimulatedLaboratory(lacking={"toe": "no"}, faults={4: fault, 5: fault}))
    (key,) = set(planned(study, 3)) - set(keys(done))
    assert (done.state, done.is_complete) == ("incomplete", False)
    assert done.reason == f"no run of {key}: a1 went away"
    assert missing(done) == {key: "a1 went away"}
    assert judged(done).missing == (f"{key}: a1 went away",)

    made_up = run(place, SimulatedLaboratory(lacking={"toe": "no"}))
    assert (made_up.state, missing(made_up)) == ("complete", {})
    assert set(planned(study, 3)) <= set(keys(made_up))


def test_a_figure_that_is_no_number_does_not_spoil_the_journal(place: Path) -> None:
    class Odd(SimulatedLaboratory):
        def measure(self, workload, directory, record):  # type: ignore[no-untyped-def]
            done = super().measure(workload, directory, record)
            return replace(done, values={**done.values, "response_ms": math.nan, "p99_ms": math.inf})

    done = run(place, Odd())
    assert {"response_ms", "p99_ms"}.isdisjoint(done.steps[0].values)
    assert len(StudyDirectory.open(place).measured) == len(keys(done))


def test_a_setting_that_a_san_is_named_for_ends_the_study_where_it_cannot_be_had(tmp_path: Path) -> None:
    text = TEXT.replace(
        'topology = "congested-san"', 'topology = "congested-san"\nsettings = { link.delay = "1ms" }'
    )
    place = StudyDirectory.create(tmp_path / "study", parse_study(text)).path
    with pytest.raises(UserError, match=r"congested-san cannot have its link\.delay: no"):
        run(place, SimulatedLaboratory(lacking={"link.delay": "no"}))


def test_a_san_has_settings_of_its_own_under_every_case_that_leaves_them(tmp_path: Path) -> None:
    text = TEXT.replace('topology = "congested-san"', 'topology = "congested-san"\nsettings = { mtu = 4000 }')
    study = parse_study(text)
    place = StudyDirectory.create(tmp_path / "study", study).path
    done = run(place, SimulatedLaboratory())
    mtus = {
        (step.san, step.case): done.run(step).manifest.steps[0].san["settings"]["mtu"] for step in done.steps
    }
    assert mtus["base-san", "baseline"] == 9000
    assert mtus["congested-san", "baseline"] == mtus["congested-san", "offload"] == 4000
    assert mtus["congested-san", "default"] == 1500


def test_a_setting_that_every_case_lacks_takes_no_case_with_it(place: Path) -> None:
    done = run(place, SimulatedLaboratory(lacking={"nagle": "not here", "toe": "no"}))
    assert {case for _, case in done.not_applicable} == {"nagle on", "offload"}
    default = next(step for step in done.steps if step.case == "default")
    assert done.run(default).manifest.steps[0].san["settings_refused"] == {"nagle": "not here"}


def test_noisy_cases_are_repeated_with_their_baseline_and_quiet_ones_are_not(
    place: Path, study: Study
) -> None:
    class Noisy(SimulatedLaboratory):
        def measure(self, workload, directory, record):  # type: ignore[no-untyped-def]
            self.noise = 0.1 if (record["case"], workload.name) == ("default", "random") else 0.0
            return super().measure(workload, directory, record)

    done = run(place, Noisy(lacking={"toe": "no"}))
    late = {(step.block, step.case, step.workload) for step in done.steps if step.block > 3}
    assert late == {(block, case, "random") for block in (4, 5) for case in ("default", study.baseline.name)}


def test_no_block_begins_that_would_end_beyond_the_budget(tmp_path: Path) -> None:
    study = parse_study(TEXT + 'budget = "60s"\n')
    place = StudyDirectory.create(tmp_path / "study", study).path
    done = run(place, SimulatedLaboratory(lacking={"toe": "no"}))
    assert done.state == "complete"
    assert {step.block for step in done.steps} == {1}


def test_a_run_that_is_void_is_run_again_and_does_not_count(place: Path) -> None:
    done = run(place, SimulatedLaboratory(lacking={"toe": "no"}, void=frozenset({2})))
    void = [step for step in done.steps if step.state == "void"]
    assert [step.reason for step in void] == ["the fabric fell behind"]
    assert keys(done).count(void[0].key) == 1


def test_a_run_that_fails_once_costs_a_new_bring_up_and_nothing_else(place: Path, study: Study) -> None:
    fault = PeerError("a1 went away", "see its log")
    laboratory = SimulatedLaboratory(lacking={"toe": "no"}, faults={4: fault})
    done = run(place, laboratory)
    assert keys(done) == planned(study, 3)
    assert [step.reason for step in done.steps if step.state == "failed"] == ["a1 went away"]
    at = [line.split()[0] for line in laboratory.log]
    assert ("down", "up") in itertools.pairwise(at)


def test_a_host_that_has_vanished_ends_the_study_with_its_name_and_restores_the_rest(place: Path) -> None:
    gone = PeerError("h1 does not answer", "see that it runs")
    laboratory = SimulatedLaboratory(faults=dict.fromkeys(range(5, 20), gone))
    with pytest.raises(PeerError, match="h1 does not answer"):
        run(place, laboratory)
    directory = StudyDirectory.open(place)
    assert (directory.state, directory.reason) == ("failed", "h1 does not answer")
    assert laboratory.settings == {}
    assert laboratory.log[-1] == "down"
    assert len(keys(directory)) == 4


def test_a_full_disk_says_so_and_loses_nothing(
    place: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    laboratory = SimulatedLaboratory(lacking={"toe": "no"}, faults={3: full})
    with pytest.raises(HostError, match="no space left") as caught:
        run(place, laboratory)
    assert f"linerate study resume {place}" in caught.value.hint
    assert laboratory.settings == {}
    assert keys(run(place, SimulatedLaboratory(lacking={"toe": "no"}))) == planned(study, 3)


def test_a_full_disk_leaves_no_torn_line_in_the_journal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.write

    def fails(file: int, data: bytes) -> int:
        if b"seqread" in data:
            written(file, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fails)
        with pytest.raises(HostError, match="no space left"):
            run(place, SimulatedLaboratory())
    for line in (place / "journal.jsonl").read_text().splitlines():
        json.loads(line)
    assert StudyDirectory.open(place).state in ("failed", "interrupted")


def test_ctrl_c_restores_the_settings_and_the_study_goes_on_later(place: Path, study: Study) -> None:
    laboratory = SimulatedLaboratory(lacking={"toe": "no"}, faults={6: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(place, laboratory)
    assert laboratory.settings == {}
    directory = StudyDirectory.open(place)
    assert (directory.state, len(keys(directory))) == ("interrupted", 5)
    assert keys(run(place, SimulatedLaboratory(lacking={"toe": "no"}))) == planned(study, 3)


def test_settings_are_restored_when_bringing_up_fails(place: Path) -> None:
    class Broken(SimulatedLaboratory):
        def bring_up(self, san, cases):  # type: ignore[no-untyped-def]
            if san.name == "congested-san":
                raise HostError("no more namespaces", "raise the limit")
            return super().bring_up(san, cases)

    laboratory = Broken()
    with pytest.raises(HostError, match="no more namespaces"):
        run(place, laboratory)
    assert laboratory.settings == {}


def test_two_processes_do_not_run_one_study(place: Path) -> None:
    with StudyJournal(place / "journal.jsonl"), pytest.raises(UserError, match="another process"):
        run(place, SimulatedLaboratory())


def test_a_complete_study_is_left_as_it_is(place: Path) -> None:
    run(place, SimulatedLaboratory())
    before = (place / "journal.jsonl").read_bytes()
    again = SimulatedLaboratory()
    run(place, again)
    assert (again.runs, (place / "journal.jsonl").read_bytes()) == (0, before)


@pytest.mark.long
def test_a_study_killed_at_any_moment_resumes_with_the_same_plan_and_loses_one_step_at_most(
    place: Path, tmp_path: Path, study: Study
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "tests.support.simulated", str(place), str(state)]
    kills = 0
    finished = False
    while not finished:
        already = len(StudyDirectory.open(place).entries)
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        if kills < 3:
            _await_entries(place, already + dice.randrange(1, 9), process)
            signal.sigtimedwait([], dice.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            kills += 1
        finished = process.wait(60) == 0
    done = StudyDirectory.open(place)
    assert done.state == "complete", f"seed {seed}"
    assert keys(done) == planned(study, 3, without=""), f"seed {seed}"
    unfinished = {f"runs/{path.name}" for path in (place / "runs").iterdir()} - {
        step.directory for step in done.steps
    }
    assert len(unfinished) <= kills, f"seed {seed}"
    assert json.loads(state.read_text()) == {}


def _await_entries(place: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and len(StudyDirectory.open(place).entries) < number:
        signal.sigtimedwait([], 0.005)


def test_the_budget_counts_the_time_of_all_sessions(place: Path) -> None:
    run(place, SimulatedLaboratory(faults={}, pace_s=0.001))
    entries = StudyDirectory.open(place).entries
    alone = spent_s(entries)
    later = [entry.model_copy(update={"at": entry.at.replace(year=entry.at.year + 1)}) for entry in entries]
    assert spent_s([*entries, *later]) == pytest.approx(2 * alone)
    assert alone == pytest.approx((entries[-1].at - entries[0].at).total_seconds())


def test_a_warm_up_by_rule_is_found_once_and_holds_for_every_case(tmp_path: Path) -> None:
    text = TEXT.replace('warm_up = "1s"', 'warm_up = "steady"\nwarm_up_max = "20s"')
    study = parse_study(text)
    place = StudyDirectory.create(tmp_path / "study", study).path
    laboratory = SimulatedLaboratory(faults={9: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(place, laboratory)
    resumed = SimulatedLaboratory()
    done = run(place, resumed)
    assert done.warmups_s.keys() == {"seqread", "random", "congested"}
    (found_s,) = set(done.warmups_s.values())
    assert 1 <= found_s <= 5
    warmups_s = laboratory.warmups_s + resumed.warmups_s
    assert sorted(set(warmups_s)) == [0.0, found_s]
    assert warmups_s.count(0.0) == 3
    assert keys(done) == planned(study, 3, without="")
