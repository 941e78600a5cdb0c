"""Terminal tables: exact text, greyed quantiles, findings told once."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.analysis import check_run, compare_runs, summarise
from linerate.report import comparison_lines, result_lines, result_table, validity_lines
from linerate.report.figures import mib_s, ms, percent, rate, significant, size
from linerate.results import Finding, Validity
from rich.console import Console

from tests.support.samples.synthetic import Load, make_run

LOAD = Load(intervals=5, warmup=1, volumes=2, points=40)


def test_the_result_table_has_vdbenchs_words_and_aligned_columns(tmp_path: Path) -> None:
    steps = summarise(make_run(tmp_path / "run", [LOAD, replace(LOAD, name="rd2", read_percent=100)]))
    lines = result_lines(steps)
    assert lines[0].split("  ")[0] == "run"
    for word in ("i/o rate", "MB/sec", "resp", "queue depth", "cpu% sys+u"):
        assert word in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["rd1", "read", "write", "rd2", "times"]
    end = lines[0].index("i/o rate") + len("i/o rate")
    assert all(line[end - 1].isdigit() and line[end] == " " for line in lines[1:5])


def test_thin_quantiles_are_in_parentheses(tmp_path: Path) -> None:
    lines = result_lines(summarise(make_run(tmp_path / "run", [replace(LOAD, iops=400)])))
    assert "(" in lines[1]
    assert "fewer than 100 I/Os were slower" in lines[-1]


def test_the_rich_table_prints_the_same_figures(tmp_path: Path) -> None:
    steps = summarise(make_run(tmp_path / "run", [LOAD]))
    out = io.StringIO()
    Console(file=out, width=160, no_color=True).print(result_table(steps, 160))
    wanted = result_lines(steps)[1].split()
    assert any(line.split() == wanted for line in out.getvalue().splitlines())


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_gets_fewer_columns_and_whole_figures(tmp_path: Path, width: int) -> None:
    steps = summarise(make_run(tmp_path / "run", [replace(LOAD, name="256k-seq-write")]))
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(result_table(steps, width))
    lines = out.getvalue().splitlines()
    (row,) = (line.split() for line in lines if "256k-seq-write" in line)
    whole = result_lines(steps)[1].split()
    assert {"256k-seq-write", whole[1], whole[2], whole[4], whole[7]} <= set(row)
    assert set(row) <= set(whole)
    assert max(map(len, lines)) <= width
    assert "\u2026" not in out.getvalue()


def test_a_doubt_about_many_steps_is_told_once() -> None:
    finding = Finding(rule="closed-loop", severity="note", reason="closed", advice="open it", step="rd1")
    grave = Finding(rule="io-errors", severity="void", reason="lost", advice="mend it", step="rd2")
    lines = validity_lines(
        Validity(stamp="void", findings=(finding, finding.model_copy(update={"step": "rd2"}), grave))
    )
    assert lines == [
        "result: void",
        "  void     io-errors: lost [rd2]",
        "           -> mend it",
        "  note     closed-loop: closed [rd1, rd2]",
        "           -> open it",
    ]


def test_a_doubt_with_other_figures_is_the_same_doubt() -> None:
    reason = "too few I/Os for p99.9, p99.99: fewer than 100 were slower"
    first = Finding(rule="thin-tail", severity="note", reason=reason, advice="run longer", step="rd1")
    second = first.model_copy(update={"step": "rd2", "reason": reason.replace("p99.9, ", "p99, p99.9, ")})
    other = first.model_copy(update={"step": "rd3", "reason": "another thing"})
    validity = Validity(stamp="valid", findings=(first, second, other))
    lines = validity_lines(validity, brief=True)
    assert lines == [
        "result: valid",
        f"  note     thin-tail: {reason} [rd1; likewise rd2]",
        "  note     thin-tail: another thing [rd3]",
    ]
    assert validity_lines(validity)[2] == "           -> run longer"


def test_response_time_is_beside_service_time_where_a_rate_was_asked_for(tmp_path: Path) -> None:
    paced = {"arrival": {"kind": "open", "process": "poisson", "rate_iops": 40_000.0}}
    run = make_run(tmp_path / "run", [LOAD, replace(LOAD, name="paced", spec=paced, wait_ms=400.0)])
    steps = summarise(run)
    lines = result_lines(steps)
    heads = [head.strip() for head in lines[0].split("  ") if head.strip()]
    columns = {head: place for place, head in enumerate(heads)}
    closed, rated = (
        next(line.split() for line in lines if line.startswith(name)) for name in ("rd1", "paced")
    )
    assert closed[columns["with wait"]] == closed[columns["p99 with wait"]] == "-"
    assert float(rated[columns["resp"]]) < 2
    assert float(rated[columns["with wait"]]) == pytest.approx(401, abs=1)
    assert "with wait: response time, from the intended start" in lines[-1]
    assert "with wait" not in result_lines(steps[:1])[0]
    compared = "\n".join(comparison_lines(compare_runs([run], [run])))
    assert compared.count("\nwith wait ms") == compared.count("\np99 with wait ms") == 1


def test_a_caution_shows_its_effect() -> None:
    finding = Finding(
        rule="x", severity="caution", reason="why", effect="up to 5 % too low", advice="do", step="rd1"
    )
    lines = validity_lines(Validity(stamp="caution", findings=(finding,)), brief=True)
    assert lines[0] == "result: valid with cautions"
    assert lines[2] == "           effect: up to 5 % too low"


def test_a_comparison_tells_ratio_and_difference(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", [LOAD], judge=check_run)
    b = make_run(tmp_path / "b", [replace(LOAD, iops=80_000, session={"congestion_control": "bbr"})])
    text = "\n".join(comparison_lines(compare_runs([a], [b])))
    assert "one run on a side" in text
    assert "congestion_control: cubic -> bbr" in text
    assert "is not judged" in text


def test_a_comparison_on_a_narrow_terminal_is_no_table(tmp_path: Path) -> None:
    a, b = (make_run(tmp_path / name, [LOAD], judge=check_run) for name in ("a", "b"))
    comparison = compare_runs([a], [b])
    wide, narrow = comparison_lines(comparison, 200), comparison_lines(comparison, 40)
    assert wide == comparison_lines(comparison)
    table = [line for line in narrow if line.startswith("  A ") or line.startswith("  B/A ")]
    assert len(table) == 2 * len(comparison.steps[0].metrics)
    start = narrow.index(comparison.steps[0].step)
    assert all(len(line) <= 40 for line in narrow[start : start + 6 * len(comparison.steps[0].metrics)])


def test_figures_have_just_enough_digits() -> None:
    assert [rate(v) for v in (None, 0.0, 12.345, 1234.5)] == ["-", "0.0", "12.3", "1,234"]
    assert [mib_s(v) for v in (0.5, 12.345, 1234.5)] == ["0.50", "12.3", "1,234"]
    assert [ms(v) for v in (0.0, 0.00312, 0.1234, 12.345, 123.45)] == [
        "0.000",
        "0.0031",
        "0.123",
        "12.35",
        "123.5",
    ]
    assert [percent(v) for v in (None, 99.99, 0.04)] == ["-", "100.0", "0.0"]
    assert [significant(v) for v in (0.01234, 12.345, 12345.6)] == ["0.0123", "12.3", "12,346"]
    assert [size(v) for v in (512, 8192, 1536 << 20, 3 << 40)] == ["512 B", "8 KiB", "1.5 GiB", "3 TiB"]
