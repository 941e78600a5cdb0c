"""Published findings about growth: the verdict of a study with [scale] on arrays whose growth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linerate.analysis.verdict import ClaimVerdict, shipped_claims
from linerate.errors import UserError
from linerate.report.study import closing_lines, study_page, write_study_report
from linerate.scale import Parts, SearchLimits
from linerate.scale.curve import Curve
from linerate.study import Study, StudyDirectory, parse_study
from linerate.study.conduct import conduct
from linerate.study.judge import judged, write_verdicts
from linerate.study.scaling import CaseSearch, claim_verdicts
from linerate.study.scaling.growth import answer_of

from tests.scale.simulated import Disks, carried_out, response_ms
from tests.support.simulated import SimulatedLaboratory

TEXT = """\
title = "Threads on paper"
seed = 7

[[san]]
topology = "base-san"

[[workload]]
name = "random"
title = "8 KB random"
file = "dell-nic/8k-random.vdb"
elapsed = "2s"
warm_up = "1s"

[baseline]
title = "as found"
settings = { delayed_ack = "on" }
claims = ["scale.threads"]

[[case]]
name = "off"
title = "no delayed ACK"
settings = { delayed_ack = "off" }

[scale]
until = "mean=20ms"
most = 10
curve = [1, 2, 4, 6, 8, 10]
linear_margin_percent = 10
down = false
headroom = false
"""
Times = Callable[[int], float]


def constant(load: int) -> float:
    """Many disks: nothing waits."""
    return 5.0


def late_limit(load: int) -> float:
    """Little's law allows no other: a rate that stays, from 8 threads on, lets the response time grow past 20 ms."""
    return 12.0 if load < 8 else 12.0 * load / 4


def soon_full(load: int) -> float:
    """Eight disks for eight I/Os per thread."""
    return response_ms(8 * load, 8, 2.0)


def later_full(load: int) -> float:
    """Room for some threads."""
    return 5.0 if load <= 4 else 5.0 * load / 4.4


class Array(SimulatedLaboratory):
    """An array whose response time at a load is known, with noise of 1 % per run."""

    def __init__(self, time_ms: Times) -> None:
        super().__init__()
        self._time_ms = time_ms

    def measure(self, workload, directory, record):  # type: ignore[no-untyped-def]
        done = super().measure(workload, directory, record)
        assert workload.spec is not None
        noise = math.exp(np.random.default_rng(workload.spec.seed).normal(0, 0.01))
        load = workload.spec.volumes[0].outstanding
        time_ms = self._time_ms(load)
        busy = min(100.0, 12.0 * load)
        values = {
            "response_ms": time_ms * noise,
            "iops": 8000 * load / time_ms / noise,
            "ios": 1000.0,
            "disk_busy_percent": busy,
            "disk_service_ms": 6.0 - load / 5,
        }
        return replace(done, values=values)


def carried(tmp_path: Path, time_ms: Times) -> StudyDirectory:
    place = StudyDirectory.create(tmp_path / "study", parse_study(TEXT), source=TEXT).path
    return conduct(place, Array(time_ms), lambda event: None, settle=lambda seconds: None)


def verdict(directory: StudyDirectory) -> ClaimVerdict:
    (found,) = judged(directory).claims
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("time_ms", "outcome", "words"),
    [
        (constant, "agrees", "which is 10.0"),
        (
            late_limit,
            "agrees in part",
            "linear, but the mean of 20 ms is missed from 8 threads on; published up to",
        ),
        (soon_full, "differs", "the rate grows less than linearly from 2 threads on"),
        (later_full, "agrees in part", "the rate grows less than linearly from 6 threads on"),
    ],
)
def test_the_verdict_says_how_far_growth_is_linear(
    tmp_path: Path, time_ms: Times, outcome: str, words: str
) -> None:
    found = verdict(carried(tmp_path, time_ms))
    assert found.verdict == outcome
    assert words in found.reason
    assert found.measured.startswith("as found, 8 KB random: ")
    assert "I/Os per s at 1 thread, " in found.measured
    assert "10 threads" in found.measured
    assert "within 10 %" in found.measured
    assert found.cases == ("baseline",)


def test_a_bend_is_explained_with_the_work_of_the_disks(tmp_path: Path) -> None:
    reason = verdict(carried(tmp_path, soon_full)).reason
    assert "The disks are busy 12 % of the time at 1 thread" in reason
    assert "10 times that rate would keep them busy 120 %" in reason
    assert "At 10 threads they are busy 100 %, with 4.00 ms of work per disk I/O instead of 5.80" in reason


@pytest.mark.long
def test_reports_show_the_curve_and_the_verdict(tmp_path: Path) -> None:
    done = carried(tmp_path, later_full)
    write_verdicts(done)
    text = "\n".join(closing_lines(study_page(done)))
    assert "published findings: 1 agrees in part" in text
    page = write_study_report(done).read_text(encoding="utf-8")
    assert "agrees in part" in page
    assert "less than linearly from 6 threads on" in page


def test_few_noisy_runs_decide_nothing(tmp_path: Path) -> None:
    def of_noise(load: int) -> float:
        return 5.0 / (1 - 0.1) if load == 10 else 5.0

    found = verdict(carried(tmp_path, of_noise))
    assert found.verdict == "not tested"
    assert "undecided at 10 threads; more curve_repeats would decide" in found.reason


def study() -> Study:
    return parse_study(TEXT)


@pytest.mark.parametrize(
    ("disks", "service_ms", "expected"),
    [(2000, 5.0, "agrees"), (24, 5.0, "differs"), (200, 5.0, "agrees in part")],
)
def test_the_verdict_is_right_in_95_of_100_seeds(disks: int, service_ms: float, expected: str) -> None:
    """Closed networks with noise of 1 % per run, eight I/Os in flight per thread."""
    paper = study()
    assert paper.scale is not None
    (expectation,) = shipped_claims()["scale.threads"].expect
    curve = Curve(paper.scale.curve, 4)
    right = 0
    for seed in range(100):
        network = _Network(disks, service_ms, seed)
        limits = SearchLimits(20.0, most=10)
        procedure = carried_out(network.run, Parts(down=False, headroom=False, curve=curve), limits)
        search = CaseSearch(paper.baseline, paper.workloads[0], paper.scale, procedure, ended=True)
        right += answer_of(search, expectation, 0.05).outcome == expected
    assert right >= 95


class _Network(Disks):
    """Eight I/Os in flight per thread."""

    def __init__(self, disks: int, service_ms: float, seed: int) -> None:
        super().__init__(disks, service_ms, noise=0.01, seed=seed)

    def run(self, task):  # type: ignore[no-untyped-def]
        larger = replace(task, load=8 * task.load)
        return super().run(larger).model_copy(update={"load": task.load})


def test_a_finding_about_growth_needs_a_search() -> None:
    without = TEXT[: TEXT.index("[scale]")].replace('warm_up = "1s"', 'warm_up = "1s"\nmetric = "iops"')
    with pytest.raises(UserError, match=r"scale\.threads is about growth"):
        parse_study(without)


def test_a_case_that_could_not_be_had_is_named(tmp_path: Path) -> None:
    nothing = StudyDirectory.create(tmp_path / "study", study(), source=TEXT)
    (found,) = claim_verdicts(nothing, shipped_claims(), {"baseline": "no such disks"})
    assert (found.verdict, found.measured) == ("not tested", "not measured")
    assert "Case baseline: no such disks." in found.reason
