"""Loops and sweeps multiply: how many runs they come to is known before the first is made."""

from __future__ import annotations

import time

import pytest
from linerate.errors import UserError
from linerate.study import StudyPlan, parse_study
from linerate.study.file.factors import combinations
from linerate.workload.plan import RUNS_MAX
from linerate.workload.toml_file import parse_toml

from tests.study.conftest import TEXT

from .conftest import Read

BASE = "sd=sd,lun=x,count=(1,8)\nwd=wd1,sd=sd*\n"
TOML = '[[volume]]\nname = "v"\ntarget = "null:1g"\n[[stream]]\nname = "s"\n'
SOON_S = 5.0
"""Far below the time that making 100,000,000 runs would take."""


def _refused(make: object, *parts: str) -> None:
    began = time.monotonic()
    with pytest.raises(UserError) as caught:
        make()  # type: ignore[operator]
    assert time.monotonic() - began < SOON_S
    for part in parts:
        assert part in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("rd", "parts"),
    [
        (
            "forthreads=(1-10000,1),forrdpct=(0-100,1),forxfersize=(512-51200,512)",
            ("101,000,000 runs (10000 forthreads x 101 forrdpct x 100 forxfersize)",),
        ),
        ("iorate=(1-1001,1),forthreads=(1-10,1)", ("10,010 runs (10 forthreads x 1001 rates)",)),
        ("sd=range,forthreads=(1-2000,1)", ("16,000 runs (8 sd sets x 2000 forthreads)",)),
        (
            "iorate=(curve,max),curve=(1-99,1),forthreads=(1-100,1)",
            ("10,100 runs (100 forthreads x 101 rates)",),
        ),
    ],
)
def test_vdbench_loops(read: Read, rd: str, parts: tuple[str, ...]) -> None:
    text = BASE + f"rd=rd1,wd=wd1,{rd}\n"
    _refused(lambda: read(text), "w.vdb:3: rd=rd1: ", f"at most {RUNS_MAX:,}", *parts)


@pytest.mark.long
def test_runs_of_several_rds_add_up(read: Read) -> None:
    loop = "forthreads=(1-6000,1)"
    text = BASE + f"rd=rd1,wd=wd1,{loop}\nrd=rd2,wd=wd1,{loop}\n"
    _refused(lambda: read(text), "rd=rd2: 6,000 runs (6000 forthreads), 12,000 with those before it")
    assert len(read(BASE + f"rd=rd1,wd=wd1,forthreads=(1-{RUNS_MAX},1)\n")) == RUNS_MAX


@pytest.mark.long
def test_sd_sets_of_thousands_are_made_one_by_one(read: Read) -> None:
    text = "sd=sd,lun=x,count=(1,4000)\nwd=wd1,sd=sd*\nrd=rd1,wd=wd1,sd=range,forthreads=(1-3,1)\n"
    _refused(lambda: read(text), "12,000 runs (4000 sd sets x 3 forthreads)")


def test_toml_sweeps() -> None:
    many = list(range(1, 101))
    sweep = (
        f"[sweep]\noutstanding = {many}\nread = {many}\nrandom = {many}\nsize = {[512 * n for n in many]}\n"
    )
    _refused(
        lambda: parse_toml(TOML + sweep, "w.toml", name="w"),
        "100,000,000 runs (100 outstanding x 100 read x 100 random x 100 size)",
        f"at most {RUNS_MAX:,}",
    )
    curves = (
        TOML + f'[[run]]\nname = "r"\nrate = ["curve"]\ncurve = {many}\n[run.sweep]\noutstanding = {many}\n'
    )
    _refused(lambda: parse_toml(curves, "w.toml", name="w"), "10,100 runs (100 outstanding x 101 rates)")


def test_study_factors_and_blocks() -> None:
    factors = {f"f{number}": (0, 1) for number in range(40)}
    _refused(
        lambda: list(combinations(factors, 1)), "1,099,511,627,776 combinations", f"at most {RUNS_MAX:,}"
    )
    _refused(lambda: list(combinations(factors, 1 << 20)), "1,048,576 combinations")
    runs = len(StudyPlan(parse_study(TEXT)).block(1))
    blocks = RUNS_MAX // runs + 1
    _refused(
        lambda: parse_study(TEXT, blocks=blocks), f"{blocks:,} blocks x {runs} runs", "repeat.blocks_max"
    )
    assert parse_study(TEXT, blocks=blocks - 1).repeat.blocks_max == blocks - 1
