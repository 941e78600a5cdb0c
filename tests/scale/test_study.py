"""Studies with [scale]: each case is searched, cases are compared, and an interrupted search goes on where it was."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linerate.errors import PeerError, UserError
from linerate.report.study import study_page
from linerate.scale import Parts, Threshold
from linerate.study import Study, StudyDirectory, StudyPlan, extend, parse_study
from linerate.study.conduct import conduct
from linerate.study.journal import LoadMeasured
from linerate.study.judge import judged, write_verdicts
from linerate.study.laboratory import Measured
from linerate.study.scaling import CaseSearch, searches, sentences
from linerate.study.scaling.comparison import effects

from tests.scale.simulated import LIMIT_MS, carried_out, knee, open_response_ms, response_ms
from tests.scale.simulated import Disks as ClosedDisks
from tests.support.simulated import SimulatedLaboratory

TEXT = """\
title = "Delayed ACK and threads"
seed = 7

[[san]]
topology = "base-san"

[[workload]]
name = "random"
file = "dell-nic/8k-random.vdb"
elapsed = "2s"
warm_up = "1s"

[baseline]
title = "as found"
settings = { delayed_ack = "on" }

[[case]]
name = "off"
title = "no delayed ACK"
settings = { delayed_ack = "off" }

[[case]]
name = "again"
title = "as found, again"

[scale]
until = "mean=20ms"
most = 64
headroom = false
"""
SERVICE_MS = {"on": 8.0, "off": 5.0}
DISKS = 8


class Disks(SimulatedLaboratory):
    """A closed network whose service time depends on a setting."""

    def measure(self, workload, directory, record):  # type: ignore[no-untyped-def]
        done = super().measure(workload, directory, record)
        assert workload.spec is not None
        random = np.random.default_rng(workload.spec.seed)
        service_ms = SERVICE_MS[str(self.settings["delayed_ack"])]
        arrival = workload.spec.arrival
        if arrival.kind == "open":
            time_ms, iops = open_response_ms(arrival.rate_iops, DISKS, service_ms), arrival.rate_iops
        else:
            load = workload.spec.volumes[0].outstanding
            time_ms = response_ms(load, DISKS, service_ms)
            iops = 1000 * load / time_ms
        noise = math.exp(random.normal(0, 0.01))
        values = {"response_ms": time_ms * noise, "p99_ms": 4 * time_ms * noise, "iops": iops / noise}
        return replace(done, values={**values, "ios": 1000.0})


def study_of(text: str = TEXT) -> Study:
    return parse_study(text)


def place_of(tmp_path: Path, text: str = TEXT) -> Path:
    return StudyDirectory.create(tmp_path / "study", study_of(text), source=text).path


def run(place: Path, laboratory: SimulatedLaboratory) -> StudyDirectory:
    return conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)


@pytest.mark.long
def test_each_case_is_searched_and_the_ratio_of_the_true_loads_is_in_the_interval(tmp_path: Path) -> None:
    done = run(place_of(tmp_path), Disks())
    assert done.state == "complete"
    assert [step.state for step in done.steps] == ["complete"] * 3
    true = {case: knee(DISKS, SERVICE_MS[ack]) for case, ack in (("baseline", "on"), ("off", "off"))}
    for one in searches(done):
        assert one.ended
        assert one.low is not None
        assert one.high is not None
        assert one.low <= true.get(one.case.name, true["baseline"]) <= one.high
    verdicts = write_verdicts(done)
    off = verdicts.judgement.effect("off", "random")
    again = verdicts.judgement.effect("again", "random")
    assert off is not None
    assert again is not None
    assert off.low is not None
    assert off.high is not None
    assert off.low <= true["off"] / true["baseline"] <= off.high
    assert off.verdict == "better"
    assert again.verdict in ("no difference", "undecided")
    assert again.low is not None
    assert again.low <= 1
    said = sentences(done, verdicts.judgement)
    assert f"no delayed ACK carries {off.estimate:.2g} times the threads of as found (" in said[0]
    assert len(done.steps[0].values) > 3
    assert done.run(done.steps[0]).manifest.name == "random"


@pytest.mark.long
def test_the_true_ratio_is_in_the_interval_of_95_of_100_pairs() -> None:
    """Searches of two networks with noise of 2 % per run; the true ratio is that of their true loads."""
    study = study_of(TEXT.replace("most = 64", "most = 256"))
    assert study.scale is not None
    limits = study.scale.limits(2)
    slow, fast = (24, 8.0), (24, 5.0)
    true = knee(*fast) / knee(*slow)
    held = 0
    for seed in range(100):
        pair = [
            CaseSearch(
                study.cases[number],
                study.workloads[0],
                study.scale,
                carried_out(
                    ClosedDisks(*shape, seed=2 * seed + number).run, Parts(down=False, headroom=False), limits
                ),
                ended=True,
            )
            for number, shape in enumerate((slow, fast))
        ]
        (effect,) = effects(study, pair, "baseline")
        assert effect.low is not None
        assert effect.high is not None
        held += effect.low <= true <= effect.high
        assert effect.verdict == "better"
    assert held >= 95


@pytest.mark.long
def test_every_run_is_in_the_journal_with_a_seed_of_its_own(tmp_path: Path) -> None:
    laboratory = Disks()
    done = run(place_of(tmp_path), laboratory)
    entries = [entry for entry in done.entries if isinstance(entry, LoadMeasured)]
    assert len(entries) == laboratory.runs
    assert len(set(laboratory.seeds)) == laboratory.runs
    assert all((done.path / entry.reached.directory).is_dir() for entry in entries)
    assert {entry.reached.purpose for entry in entries} == {"up", "down"}
    volumes = study_of().workloads[0].spec
    assert volumes is not None
    first = next(entry.reached for entry in entries if entry.reached.load == 2)
    assert first.in_flight == 2 * len(volumes.volumes)


@pytest.mark.long
def test_a_search_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    after = 33
    whole = run(place_of(tmp_path / "whole"), Disks())
    place = place_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(place, Disks(faults={after + 1: KeyboardInterrupt()}))
    left = StudyDirectory.open(place)
    assert (left.state, sum(map(len, left.loads.values()))) == ("interrupted", after)
    second = Disks()
    done = run(place, second)
    assert second.runs == sum(map(len, whole.loads.values())) - after
    assert {key: [one.reached.load for one in runs] for key, runs in done.loads.items()} == {
        key: [one.reached.load for one in runs] for key, runs in whole.loads.items()
    }
    assert judged(done).judgement == judged(whole).judgement


@pytest.mark.long
def test_a_run_that_fails_costs_a_bring_up_and_no_load(tmp_path: Path) -> None:
    done = run(place_of(tmp_path), Disks(faults={4: PeerError("a1 went away", "see its log")}))
    assert done.state == "complete"
    assert [step.state for step in done.steps].count("failed") == 1
    assert len(judged(done).judgement.effects) == 2


@pytest.mark.long
def test_a_void_run_does_not_count_and_is_made_again(tmp_path: Path) -> None:
    done = run(place_of(tmp_path), Disks(void=frozenset({3})))
    entries = [entry for entry in done.entries if isinstance(entry, LoadMeasured)]
    assert [entry.state for entry in entries].count("void") == 1
    assert done.state == "complete"
    counted = sum(len(one.procedure.runs) for one in searches(done))
    assert counted == len(entries) - 1


@pytest.mark.long
def test_headroom_is_measured_where_it_is_asked_for(tmp_path: Path) -> None:
    done = run(place_of(tmp_path, TEXT.replace("headroom = false", "down = false")), Disks())
    purposes = {run.purpose for one in searches(done) for run in one.procedure.runs}
    assert purposes == {"up", "headroom"}


@pytest.mark.long
def test_a_case_that_misses_or_keeps_the_threshold_at_every_load(tmp_path: Path) -> None:
    never = run(place_of(tmp_path / "never", TEXT.replace("20ms", "6ms")), Disks())
    assert judged(never).judgement.effects == ()
    assert never.steps[0].values["iops"] > 0, "figures of the smallest load"
    (finding, *_) = study_page(never).validity.findings
    assert finding.reason.startswith("nothing could be compared: the largest load of")
    assert finding.advice.startswith("a longer elapsed time")
    always = run(place_of(tmp_path / "always", TEXT.replace("most = 64", "most = 18")), Disks())
    said = sentences(always, judged(always).judgement)
    assert said[0].startswith("no delayed ACK carries at least ")
    both = run(place_of(tmp_path / "both", TEXT.replace("most = 64", "most = 8")), Disks())
    (first, _) = sentences(both, judged(both).judgement)
    assert first == "no delayed ACK against as found: the ratio of the threads is not known"


def test_too_few_ios_for_the_threshold_end_the_study_with_a_way_out(tmp_path: Path) -> None:
    class Short(Disks):
        def measure(self, workload, directory, record):  # type: ignore[no-untyped-def]
            done: Measured = super().measure(workload, directory, record)
            return replace(done, values={"iops": 10.0, "response_ms": 1.0, "ios": 20.0})

    with pytest.raises(UserError, match="20 I/Os were completed: too few for a p99 of 20 ms"):
        run(place_of(tmp_path, TEXT.replace("mean=", "p99=")), Short())


def test_the_plan_counts_the_runs_of_all_searches() -> None:
    study = study_of()
    assert study.scale is not None
    assert study.scale.until == Threshold("mean", LIMIT_MS)
    assert len(StudyPlan(study).block(1)) == 3
    shorter, longer = (
        StudyPlan(study_of(TEXT.replace("headroom = false", f"headroom = {on}"))).duration()
        for on in ("false", "true")
    )
    assert shorter.least_s == longer.least_s
    more_s = 3 * 18 * (3.0 + 1.0)  # three searches, 18 runs each, of 3 s and a second to begin
    assert longer.most_s - shorter.most_s == pytest.approx(more_s)
    assert study.search_limits.alpha == pytest.approx(0.05 / 3)


def test_it_is_not_extended_by_blocks(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    with pytest.raises(UserError, match="searches each case once"):
        extend(place, 5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("mean=20ms", "20ms", r"study file:27: scale\.until: '20ms' is no threshold"),
        ("most = 64", "most = 64\nleast = 65", r"scale\.least: loads from 65 to 64"),
        ("most = 64", 'most = 64\nover = "volumes"', r"scale\.most: up to 64 volumes, and a workload has"),
        ("most = 64", 'most = 64\nover = "disks"', r"scale\.over"),
        ("most = 64", 'most = 64\nover = "hosts"', r"scale\.most: up to 64 hosts with 8 volumes each"),
        ("most = 64", "most = 64\nvolumes_per_host = 2", r"scale\.volumes_per_host: it is of over"),
        ("most = 64", "most = 64\ncurve = [1, 4, 4]", r"scale\.curve: two loads or more, each larger"),
        ("most = 64", "most = 64\ncurve = [1, 65]", r"scale\.curve: loads from 1 to 65"),
        ("most = 64", 'most = 64\nover = "rate"\ncurve = [1, 2]', r"scale\.curve: a paced load has the rate"),
        ("[scale]", "[repeat]\nblocks_max = 5\n[scale]", r"repeat\.blocks_max: each case is searched once"),
        ('elapsed = "2s"', 'elapsed = "2s"\nmetric = "iops"', r"metric: iops, and the file has \[scale\]"),
        (
            'settings = { delayed_ack = "off" }',
            "settings = { load.rate = 100 }",
            "load.rate is what a search",
        ),
        (
            'settings = { delayed_ack = "off" }',
            "settings = { outstanding = 9 }",
            "outstanding is what a search",
        ),
        (
            'title = "no delayed ACK"',
            'claims = ["nic.jumbo.seqread"]',
            "nic.jumbo.seqread is not about growth",
        ),
        (
            'title = "no delayed ACK"',
            'claims = ["scale.threads"]',
            r"scale\.curve: scale.threads is about loads that it lacks: 1, 10",
        ),
    ],
)
def test_mistakes_are_named_with_their_key(old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(UserError, match=words):
        study_of(TEXT.replace(old, new, 1))


def test_blocks_and_a_missing_metric_are_refused() -> None:
    with pytest.raises(UserError, match="--blocks 3: each case is searched once"):
        parse_study(TEXT, blocks=3)
    without = TEXT[: TEXT.index("[scale]")]
    with pytest.raises(UserError, match=r"workload 1\.metric: missing|metric: missing"):
        parse_study(without)
    with pytest.raises(UserError, match=r"largest_load is of searches"):
        parse_study(without.replace('elapsed = "2s"', 'elapsed = "2s"\nmetric = "largest_load"'))


def test_a_workload_without_volumes_for_all_hosts_is_refused() -> None:
    """A search that silently ended at fewer hosts would answer another question."""
    text = TEXT.replace("base-san", "two-sites").replace("most = 64", 'over = "hosts"')
    with pytest.raises(
        UserError, match=r"scale\.most: up to \d hosts with \d+ volumes? each, and a workload has 8"
    ):
        parse_study(text)
