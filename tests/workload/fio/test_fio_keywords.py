"""The table of keywords: aliases, refusals by name, harmless values, notices; and the page made from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.workload.fio.documentation import page
from linerate.workload.fio.refused import REFUSED_ENGINES
from linerate.workload.fio.tables import KEYWORDS, JobEffect, JobKeyword, find_keyword

from .conftest import ReadFio, only_run, refusal

BASE = "[a]\nfilename=x\nrw=randwrite\ntime_based\nruntime=4\n"
COMMON = (
    *(
        "ioengine",
        "rw",
        "iodepth",
        "bs",
        "direct",
        "group_reporting",
        "runtime",
        "time_based",
        "numjobs",
        "size",
    ),
    *(
        "filename",
        "ramp_time",
        "stonewall",
        "directory",
        "thread",
        "buffered",
        "verify",
        "invalidate",
        "filesize",
    ),
    *(
        "norandommap",
        "ioscheduler",
        "kb_base",
        "filename_format",
        "name",
        "openfiles",
        "allrandrepeat",
        "loops",
    ),
    *("fadvise_hint", "randrepeat", "write_iops_log", "log_avg_msec", "write_lat_log", "refill_buffers"),
    *("continue_on_error", "rwmixread"),
)
"""Those of most job files."""


def test_rows_are_complete_and_names_are_unique() -> None:
    names = [name for row in KEYWORDS for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    for row in KEYWORDS:
        assert row.meaning
        assert row.accepted or row.effect is JobEffect.REFUSED
        assert bool(row.harmless) == (row.effect is JobEffect.UNLESS)


@pytest.mark.parametrize("name", COMMON)
def test_what_most_files_need_is_known_and_not_refused(name: str) -> None:
    row = find_keyword(name)
    assert row is not None
    assert row.effect is not JobEffect.REFUSED


@pytest.mark.parametrize(
    "row",
    [row for row in KEYWORDS if row.effect in (JobEffect.REFUSED, JobEffect.UNLESS)],
    ids=lambda row: row.name,
)
def test_what_changes_the_load_is_refused_by_name_with_line_and_reason(fio: ReadFio, row: JobKeyword) -> None:
    error = refusal(fio, f"{BASE}{row.name}=7\n")
    assert error.message == f"w.fio:6: {row.name}=7: is not supported: {row.meaning}"
    assert "leave it out" in error.hint


@pytest.mark.parametrize("row", [row for row in KEYWORDS if row.harmless], ids=lambda row: row.name)
def test_harmless_values_are_accepted(fio: ReadFio, row: JobKeyword) -> None:
    plain = only_run(fio(BASE))
    for value in row.harmless:
        assert only_run(fio(f"{BASE}{row.name}={value}\n")) == plain


@pytest.mark.parametrize(
    "row", [row for row in KEYWORDS if row.effect is JobEffect.NONE], ids=lambda row: row.name
)
def test_keywords_without_effect_have_none(fio: ReadFio, row: JobKeyword) -> None:
    plan = fio(f"{BASE}{row.name}=1\n")
    assert only_run(plan) == only_run(fio(BASE))
    told = [str(notice) for notice in plan.warnings if row.name in str(notice)]
    assert told == ([] if row.silent else [f"w.fio:6: {row.name}=1: no effect, {row.meaning}"])


@pytest.mark.parametrize("engine", REFUSED_ENGINES)
def test_engines_are_refused_with_the_reason(fio: ReadFio, engine: str) -> None:
    message = refusal(fio, f"{BASE}ioengine={engine}\n").message
    assert message == f"w.fio:6: ioengine={engine}: is not supported: {REFUSED_ENGINES[engine]}"


def test_an_unknown_engine_is_refused(fio: ReadFio) -> None:
    message = refusal(fio, f"{BASE}ioengine=warp\n").message
    assert message == "w.fio:6: ioengine=warp: is not supported: no engine that Linerate knows"


@pytest.mark.parametrize("form", ["trim", "randtrim", "trimwrite"])
def test_trim_is_refused(fio: ReadFio, form: str) -> None:
    assert (
        refusal(fio, f"[a]\nrw={form}\n").message
        == f"w.fio:2: rw={form}: is not supported: blocks are not trimmed"
    )


def test_a_refused_keyword_that_a_job_turns_off_is_no_problem(fio: ReadFio) -> None:
    assert len(fio(f"[global]\nzonesize=5\n{BASE}zonesize=0\n")) == 1


def test_a_refused_keyword_of_global_is_told_once(fio: ReadFio) -> None:
    message = refusal(fio, "[global]\nfilename=x\nzonesize=5\n[a]\n[b]\n[c]\n").message
    assert message.count("zonesize") == 1


def test_a_mistyped_keyword_is_answered_with_the_nearest(fio: ReadFio) -> None:
    assert refusal(fio, "[a]\nio_depth=4\n").hint == "did you mean iodepth?"


def test_the_page_is_current() -> None:
    shown = Path(__file__).parents[3] / "docs" / "fio.md"
    assert shown.read_text() == page(), "run: python -m linerate.workload.fio.documentation > docs/fio.md"
