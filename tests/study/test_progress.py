"""How far a study is: for `study status`, for a terminal and for a pipe, while it runs and after it was stopped."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.cli.study.comparison import progress_line
from linerate.cli.study.lines import StudyLines
from linerate.cli.study.live import StudyLive
from linerate.cli.study.progress import next_line
from linerate.study import Study, StudyDirectory, StudyPlan
from linerate.study.conduct import conduct
from linerate.study.events import BlockBegan, StudyEvent
from linerate.study.judge import judged
from linerate.study.remaining import study_progress
from rich.console import Console

from tests.cli.conftest import linerate
from tests.support.simulated import SimulatedLaboratory

EFFECTS = {("mtu", 1500): 0.8}
LACKING = {"toe": "no adapter with it"}


def _stopped_after(place: Path, runs: int) -> StudyDirectory:
    laboratory = SimulatedLaboratory(EFFECTS, lacking=LACKING, faults={runs + 1: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)
    return StudyDirectory.open(place)


def test_before_the_first_run_all_is_left_at_the_pace_of_the_plan(place: Path, study: Study) -> None:
    progress = study_progress(StudyDirectory.open(place))
    plan = StudyPlan(study)
    assert (progress.measured, progress.spent_s, progress.share) == (0, 0, 0)
    assert progress.left_least == sum(len(plan.block(number)) for number in (1, 2, 3))
    assert progress.left_most == sum(len(plan.block(number)) for number in range(1, 6))
    assert progress.left_s.least_s == pytest.approx(plan.duration().least_s)
    assert progress.left_s.most_s == pytest.approx(plan.duration().most_s)


def test_what_is_measured_is_not_left_and_the_pace_is_the_runs_own(place: Path) -> None:
    stopped = _stopped_after(place, 8)
    before = study_progress(StudyDirectory(place, stopped.record, ()))
    progress = study_progress(stopped)
    assert progress.measured == 8
    assert progress.left_least <= before.left_least - 8
    assert progress.spent_s > 0
    # Simulated runs take no time, and the pace is believed down to half of the plan's.
    assert progress.left_s.least_s < 0.6 * before.left_s.least_s
    assert 0 < progress.share < 1


def test_a_complete_study_has_nothing_left(place: Path) -> None:
    laboratory = SimulatedLaboratory(EFFECTS, lacking=LACKING)
    done = conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)
    progress = study_progress(done)
    assert (progress.left_most, progress.left_s.most_s, progress.share) == (0, 0, 1.0)
    assert progress_line(progress).startswith(f"{progress.measured} runs measured in ")


@pytest.mark.long
def test_status_shows_progress_time_left_and_the_comparison_so_far(place: Path) -> None:
    stopped = _stopped_after(place, 24)
    done = linerate("study", "status", place)
    assert done.returncode == 0, done.stderr
    assert progress_line(study_progress(stopped)) in done.stdout
    assert "24 runs measured, " in done.stdout
    assert " left; " in done.stdout
    effects = [one for one in judged(stopped).judgement.effects if one.primary]
    assert effects
    for effect in effects:
        about = re.compile(rf"^ +{effect.workload} +{effect.case} .* {effect.verdict}$", re.MULTILINE)
        assert about.search(done.stdout), done.stdout
    status = json.loads(linerate("study", "status", place, "--json").stdout)
    progress = study_progress(stopped)
    assert status["left_least_s"] == pytest.approx(progress.left_s.least_s)
    assert (status["runs_left_least"], status["runs_left_most"]) == (progress.left_least, progress.left_most)


def test_a_pipe_gets_lines_and_after_each_block_what_is_decided(place: Path, study: Study) -> None:
    out = io.StringIO()
    lines = StudyLines(StudyDirectory.open(place), Console(file=out, width=200))
    laboratory = SimulatedLaboratory(EFFECTS, lacking=LACKING, void=frozenset({2}))
    done = conduct(place, laboratory, lines.show, settle=lambda seconds: None)
    text = out.getvalue()
    assert f"{len(study.cases)} cases, 3 workloads, 3 to 5 blocks: takes " in text
    assert "after block 1: " in text
    assert text.count(" runs measured, ") == text.count("\nblock ") - 1
    assert "void" in text
    assert "\x1b" not in text
    assert all(step.case in text for step in done.steps)


@pytest.mark.long
def test_a_terminal_gets_bar_time_left_and_the_comparison(place: Path) -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=100, height=40, force_terminal=True, color_system=None)
    view = StudyLive(StudyDirectory.open(place), console)
    pictures: list[str] = []

    def show(event: StudyEvent) -> None:
        view.show(event)
        with console.capture() as moving:
            console.print(view._render())
        pictures.append(moving.get())
        if isinstance(event, BlockBegan):
            assert f"block {event.block} of " in pictures[-1]

    conduct(
        place, SimulatedLaboratory(EFFECTS, lacking=LACKING, void=frozenset({2})), show, settle=lambda _: None
    )
    assert "offload on base-san: not applicable: toe: no adapter with it" in printed.getvalue()
    assert "void" in printed.getvalue()
    assert any("run 1 of " in picture and " left" in picture for picture in pictures)
    assert "so far: nothing to compare yet" in pictures[5]
    effects = [one for one in judged(StudyDirectory.open(place)).judgement.effects if one.primary]
    last = pictures[-1].splitlines()
    row = next(line for line in last if line.startswith("default"))
    assert sum(one.verdict in row for one in effects if one.case == "default")
    assert all(len(line.rstrip()) <= 100 for picture in pictures for line in picture.splitlines())


def test_many_cases_leave_the_picture_no_higher_than_the_terminal(place: Path) -> None:
    console = Console(file=io.StringIO(), width=60, height=9, force_terminal=True, color_system=None)
    view = StudyLive(StudyDirectory.open(place), console)
    view.show(BlockBegan(block=1, steps=3, seconds=9))
    with console.capture() as moving:
        console.print(view._render())
    lines = moving.get().rstrip("\n").splitlines()
    assert len(lines) <= 9
    assert "and 1 more" in moving.get()


def test_at_the_end_the_next_command_is_named(place: Path) -> None:
    laboratory = SimulatedLaboratory(EFFECTS, lacking=LACKING)
    done = conduct(place, laboratory, lambda event: None, settle=lambda seconds: None)
    effects = [replace(one, blocks_needed=None) for one in judged(done).judgement.effects if one.primary]
    assert f"linerate study check {place}" in next_line(done, effects)
    effects[0] = replace(effects[0], blocks_needed=9)
    assert f"linerate study resume {place} --blocks 9" in next_line(done, effects)
