"""`linerate export`: the figures are those of the run, spreadsheets open the files, nothing is overwritten."""

from __future__ import annotations

import csv
import io
import os
import pty
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from linerate.analysis import summarise
from linerate.report.export import encoded, encoded_workbook, exported_run
from linerate.report.export.formats import SHEET_ROWS_MAX
from linerate.report.export.study import exported_study
from linerate.results import CounterRow, IntervalSample, RunDirectory, RunWriter, WorkloadSource

from tests.cli.conftest import COMMAND, environment, linerate
from tests.support.samples.study_directory import make_study_directory
from tests.support.samples.synthetic import START, Clock, Load, make_run

LOAD = Load(intervals=4, warmup=1, volumes=2, points=20)
HOSTILE = (
    '=HYPERLINK("http://x")',
    "+1",
    "-1",
    "@sum",
    "a,b",
    'say "x"',
    "two\nlines",
    "\r",
    "\tx",
    " x",
    "",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("runs") / "run", [LOAD, replace(LOAD, name="rd2")])


def known_run(path: Path) -> RunDirectory:
    """One read volume, 2 s of warm-up, then 1,000 I/Os of 8192 bytes in 2 s, 3 s of service time in all."""
    clock = Clock()
    source = WorkloadSource(name="w")
    with RunWriter.create(path, name="known", workload=source, now=clock) as writer:
        writer.begin_step("rd1", spec={}, facts={})
        for index, ios in enumerate((7, 1000)):
            row = CounterRow(
                "wd1", "sd1", "read", ios, ios * 8192, 0, 3 * 10**6 * ios, 0.0, 5_000_000, 4 * 10**6 * ios
            )
            writer.interval(IntervalSample(index, 2.0 * index, 2.0 * index + 2, index == 0, (row,)))
        clock.pass_s(4)
        writer.end_step()
        return writer.close("complete")


def test_the_figures_are_those_that_a_hand_computes(tmp_path: Path) -> None:
    tables = exported_run(known_run(tmp_path / "known")).tables
    warm, measured = tables["intervals"].iter_rows(named=True)
    assert (warm["warmup"], measured["warmup"]) == (True, False)
    assert (measured["iops"], measured["mib_s"]) == (500, 500 * 8192 / 2**20)
    assert (measured["service_mean_ms"], measured["response_mean_ms"]) == (3, 4)
    assert (measured["start_utc"] - START.replace(tzinfo=None)).total_seconds() == 2
    (step,) = tables["steps"].iter_rows(named=True)
    assert (step["ios"], step["iops"], step["measured_s"], step["read_percent"]) == (1000, 500, 2, 100)
    assert (step["service_mean_ms"], step["response_mean_ms"], step["service_max_ms"]) == (3, 4, 5)
    assert step["write_iops"] is None
    assert step["service_p99_ms"] is None


def test_the_steps_are_those_of_the_summary(run: RunDirectory) -> None:
    steps = exported_run(run).tables["steps"]
    for row, summary in zip(steps.iter_rows(named=True), summarise(run), strict=True):
        assert (row["step"], row["iops"], row["mib_s"]) == (
            summary.step,
            summary.total.iops,
            summary.total.mib_s,
        )
        quantile = summary.total.quantile(0.99)
        assert quantile is not None
        assert (row["service_p99_ms"], row["service_p99_ios_beyond"]) == (quantile.value_ms, quantile.beyond)


def test_numbers_have_their_unit_in_the_name(run: RunDirectory) -> None:
    """Counts of things are their own unit; every other number ends in a unit."""
    counted = {
        "interval",
        "intervals",
        "ios",
        "bytes",
        "errors",
        "flushes",
        "retransmits",
        "data_segments_sent",
        "late_arrivals",
    }
    counted |= {"outstanding_asked", "queue_depth", "outstanding_mean", "backlog_max"}
    counted |= {"bytes_sent", "bytes_received", "rtt_us_mean", "cycles_per_byte"}
    units = (
        "_s",
        "_ms",
        "_us",
        "_ns",
        "_ns2",
        "_hz",
        "_iops",
        "iops",
        "_percent",
        "_ios",
        "_beyond",
        "_per_io",
    )
    for name, table in exported_run(run).tables.items():
        numbers = {column for column, kind in table.schema.items() if kind.is_numeric()}
        strange = {column for column in numbers - counted if not column.endswith(units)}
        assert not strange, name


# ---- formats ----


def test_csv_is_that_of_rfc_4180_and_has_no_formulas() -> None:
    table = pl.DataFrame({"name": list(HOSTILE), "x": [-1.5] * len(HOSTILE)})
    data = encoded(table, "csv").decode()
    assert data.startswith("name,x\r\n")
    header, *rows = csv.reader(io.StringIO(data, newline=""))
    assert header == ["name", "x"]
    expected = [f"'{name}" if name[:1] in set("=+-@\t\r") - {""} else name for name in HOSTILE]
    assert [name for name, _ in rows] == expected
    assert {number for _, number in rows} == {"-1.5"}


def sheet_cells(data: bytes, sheet: int) -> tuple[list[str], str]:
    """The texts that the sheet refers to, and its XML."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        shared = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        texts = ["".join(item.itertext()) for item in shared.iter(f"{space}si")]
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{sheet}.xml"))
    used = [
        texts[int(cell.findtext(f"{space}v") or 0)] for cell in root.iter(f"{space}c") if cell.get("t") == "s"
    ]
    return used, ElementTree.tostring(root, encoding="unicode")


def test_text_in_excel_stays_text() -> None:
    table = pl.DataFrame({"name": ["=1+1", "http://x", "a,b"], "x": [1.25, None, -2.0]})
    texts, sheet = sheet_cells(encoded_workbook({"steps": table}), 1)
    assert texts == ["name", "x", "=1+1", "http://x", "a,b"]
    assert ":f>" not in sheet, "a formula"
    assert "hyperlink" not in sheet
    assert ">1.25<" in sheet


def test_a_table_that_no_sheet_holds_is_refused() -> None:
    table = pl.DataFrame({"x": pl.zeros(SHEET_ROWS_MAX, dtype=pl.Int8, eager=True)})
    with pytest.raises(Exception, match="an Excel sheet holds 1,048,575"):
        encoded_workbook({"intervals": table})


def test_parquet_keeps_types(run: RunDirectory) -> None:
    table = exported_run(run).tables["steps"]
    assert pl.read_parquet(io.BytesIO(encoded(table, "parquet"))).equals(table)


# ---- studies ----


@pytest.mark.long
def test_a_study_has_verdicts_and_the_runs_with_their_place(tmp_path: Path) -> None:
    study = make_study_directory(tmp_path / "study", blocks=3)
    exported = exported_study(study)
    steps, verdicts = exported.tables["steps"], exported.tables["verdicts"]
    assert steps.height == len(study.steps)
    assert set(steps["case"].unique()) == {"baseline", "default", "jumbo", "no-autotuning", "no-delayed-ack"}
    assert steps["counted"].all()
    assert study.verdicts is not None
    judgement = study.verdicts.judgement
    assert verdicts.height == len(judgement.effects)
    row = verdicts.row(
        by_predicate=(pl.col("case") == "no-autotuning")
        & (pl.col("workload") == "256k-seq-read")
        & pl.col("decides"),
        named=True,
    )
    effect = judgement.effect("no-autotuning", "256k-seq-read")
    assert effect is not None
    assert row["change_percent"] == effect.change == pytest.approx(-31, abs=2)
    assert (row["change_low_percent"], row["verdict"], row["unit"]) == (effect.change_low, "worse", "MB/s")
    points = verdicts.filter(pl.col("metric") == "retransmit_percent")
    assert points["change_percent"].null_count() == points.height
    assert points["change_points"].null_count() == 0


def test_a_run_that_is_gone_is_named(tmp_path: Path) -> None:
    study = make_study_directory(tmp_path / "study", blocks=2)
    (study.path / study.steps[0].directory / "manifest.json").unlink()
    exported = exported_study(study)
    assert exported.tables["steps"].height == len(study.steps) - 1
    assert study.steps[0].directory in exported.notes[0]


# ---- the verb ----


def test_the_verb_writes_one_file_per_table_and_replaces_none(run: RunDirectory, tmp_path: Path) -> None:
    done = linerate("export", run.path, "--csv", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.split() == ["run-intervals.csv", "run-usage.csv", "run-steps.csv"]
    (tmp_path / "run-steps.csv").write_text("mine")
    refused = linerate("export", run.path, "--csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert (tmp_path / "run-steps.csv").read_text() == "mine"
    assert linerate("export", run.path, "--csv", "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run-steps.csv").read_text().startswith("step,")


@pytest.mark.long
@pytest.mark.parametrize(("answer", "replaced"), [("y", True), ("n", False), ("", False)])
def test_a_yes_on_the_terminal_replaces(
    run: RunDirectory, tmp_path: Path, answer: str, replaced: bool
) -> None:
    file = tmp_path / "run-steps.csv"
    file.write_text("mine")
    master, slave = pty.openpty()
    try:
        words = [*COMMAND, "export", str(run.path), "--csv", "--table", "steps"]
        os.write(master, f"{answer}\n".encode())
        done = subprocess.run(
            words,
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            env=environment(),
            cwd=tmp_path,
            timeout=60,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert (done.returncode, file.read_text() != "mine") == ((0, True) if replaced else (2, False))


@pytest.mark.parametrize(
    ("out", "written"),
    [
        ("new/folder", "new/folder/run-steps.parquet"),
        ("x.parquet", "x.parquet"),
        (".", "run-steps.parquet"),
    ],
)
def test_out_is_a_file_or_a_folder(run: RunDirectory, tmp_path: Path, out: str, written: str) -> None:
    done = linerate("export", run.path, "--parquet", "--table", "steps", "--out", out, cwd=tmp_path)
    assert done.returncode == 0
    assert pl.read_parquet(tmp_path / written)["step"].to_list() == ["rd1", "rd2"]


@pytest.mark.long
def test_one_table_goes_to_standard_output(run: RunDirectory) -> None:
    words = [*COMMAND, "export", str(run.path), "--csv", "--table", "steps", "--out", "-"]
    done = subprocess.run(words, capture_output=True, env=environment(), check=True, timeout=60)
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))
    assert [row["step"] for row in rows] == ["rd1", "rd2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--csv", "--xlsx"), "one format at a time"),
        ((), "one format at a time"),
        (("--csv", "--out", "-"), "one table"),
        (("--csv", "--out", "x.csv"), "3 tables"),
        (("--csv", "--table", "verdicts"), "no table verdicts"),
        (("--csv", "--out", "RUN"), "does not change after its end"),
    ],
)
def test_wrong_words(run: RunDirectory, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    given = [str(run.path) if word == "RUN" else word for word in words]
    done = linerate("export", run.path, *given, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
    assert not list(run.path.glob("*.csv"))


def test_a_run_named_like_an_option_or_a_path_makes_a_plain_file_name(tmp_path: Path) -> None:
    folder = tmp_path / "=1, 2"
    known_run(folder)
    assert linerate("export", folder, "--xlsx", cwd=tmp_path).stdout == "1-2.xlsx\n"
