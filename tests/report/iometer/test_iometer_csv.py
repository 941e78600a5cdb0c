"""Results as Iometer's CSV: the run's figures under Iometer's columns, with their units."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.report import write_iometer_csv
from linerate.report.iometer.columns import BINS, COLUMNS
from linerate.results import IometerRecord, IometerWorkerRecord, RunDirectory, RunWriter, WorkloadSource

from tests.support.samples.synthetic import Load, make_run, spec_of

MIXED = Load(name="rd1", intervals=8, warmup=2, volumes=3, points=40)
READS = Load(name="rd2", intervals=5, warmup=0, volumes=3, read_percent=100, size_bytes=262144, iops=4000)
ERRORS = Load(
    name="rd3", volumes=1, errors=4, wait_ms=7.0, spec={"arrival": {"kind": "open", "rate_iops": 2500.0}}
)

HEADER = (
    "'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,Write IOps,"
    "MiBps (Binary),Read MiBps (Binary),Write MiBps (Binary),MBps (Decimal),Read MBps (Decimal),"
    "Write MBps (Decimal),Transactions per Second,Connections per Second,Average Response Time,"
    "Average Read Response Time,Average Write Response Time,Average Transaction Time,Average Connection Time,"
    "Maximum Response Time,Maximum Read Response Time,Maximum Write Response Time,Maximum Transaction Time,"
    "Maximum Connection Time,Errors,Read Errors,Write Errors,Bytes Read,Bytes Written,Read I/Os,Write I/Os,"
    "Connections,Transactions per Connection,Total Raw Read Response Time,Total Raw Write Response Time,"
    "Total Raw Transaction Time,Total Raw Connection Time,Maximum Raw Read Response Time,"
    "Maximum Raw Write Response Time,Maximum Raw Transaction Time,Maximum Raw Connection Time,Total Raw Run Time,"
    "Starting Sector,Maximum Size,Queue Depth,% CPU Utilization,% User Time,% Privileged Time,% DPC Time,"
    "% Interrupt Time,Processor Speed,Interrupts per Second,CPU Effectiveness,Packets/Second,Packet Errors,"
    "Segments Retransmitted/Second,0 to 50 uS,50 to 100 uS,100 to 200 uS,200 to 500 uS,0.5 to 1 mS,1 to 2 mS,"
    "2 to 5 mS,5 to 10 mS,10 to 15 mS,15 to 20 mS,20 to 30 mS,30 to 50 mS,50 to 100 mS,100 to 200 mS,"
    "200 to 500 mS,0.5 to 1 S,1 to 2 s,2 to 4.7 s,4.7 to 5 s,5 to 10 s, >= 10 s"
)
"""The line that Iometer 1.1.0 writes."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("iometer") / "run", [MIXED, READS, ERRORS])


@pytest.fixture(scope="module")
def lines(run: RunDirectory) -> list[str]:
    path = run.path.parent / "deep" / "out.csv"
    write_iometer_csv(run, path)
    text = path.read_bytes().decode()
    assert text.endswith("'End Test\r\n")
    assert text.count("\n") == text.count("\r\n")
    return text.splitlines()


def blocks(lines: list[str]) -> Iterator[list[dict[str, str]]]:
    """The rows of each step, as a program that reads Iometer's files finds them."""
    for at, line in enumerate(lines):
        if line == "'Results":
            end = lines.index("'Time Stamp", at)
            yield list(csv.DictReader([lines[at + 1].removeprefix("'"), *lines[at + 2 : end]]))


def test_the_file_has_iometers_blocks(lines: list[str]) -> None:
    labels = [line.partition(",")[0] for line in lines if line.startswith("'")]
    step = [
        "'Access specifications",
        "'Access specification name",
        "'size",
        "'End access specifications",
        "'Results",
        "'Target Type",
        "'Time Stamp",
    ]
    assert labels == ["'Test Type", "'Version", "'Time Stamp", *step * 3, "'End Test"]
    assert lines[1] == "0,synthetic"
    assert lines[3].startswith("1.1.0 (Linerate")
    assert len(lines[5]) == len("2013-07-16 10:12:45:123")


def test_columns_are_those_of_iometer_in_its_order(lines: list[str]) -> None:
    assert "'" + ",".join(COLUMNS) == HEADER
    assert lines.count(HEADER) == 3
    rows = [line for line in lines if line.startswith(("ALL,", "MANAGER,", "WORKER,", "DISK,"))]
    assert {line.count(",") for line in rows} == {len(COLUMNS) - 1}


def test_rows_hold_the_runs_figures_in_their_units(run: RunDirectory, lines: list[str]) -> None:
    for step, rows in zip(summarise(run), blocks(lines), strict=True):
        total = rows[0]
        assert [row["Target Type"] for row in rows[:3]] == ["ALL", "MANAGER", "WORKER"]
        assert {row["Target Type"] for row in rows[3:]} == {"DISK"}
        assert (total["# Managers"], total["# Workers"], total["# Disks"]) == ("1", "1", str(len(rows) - 3))
        for row in rows[:3]:
            assert float(row["IOps"]) == pytest.approx(step.total.iops, rel=1e-6)
            assert float(row["MiBps (Binary)"]) == pytest.approx(step.total.mib_s, rel=1e-6)
            assert float(row["MBps (Decimal)"]) == pytest.approx(step.total.mib_s * 1.048576, rel=1e-6)
            assert float(row["Transactions per Second"]) == pytest.approx(step.total.iops, rel=1e-6)
        for name, part in (("Read", step.read), ("Write", step.write)):
            ios = 0 if part is None else part.ios
            assert int(total[f"{name} I/Os"]) == ios
            assert sum(int(row[f"{name} I/Os"]) for row in rows[3:]) == ios
            assert float(total[f"{name} IOps"]) == pytest.approx(0 if part is None else part.iops, rel=1e-6)


def test_times_are_service_times_in_ms_and_raw_ones_fit_their_clock(
    run: RunDirectory, lines: list[str]
) -> None:
    for step, rows in zip(run.manifest.steps, blocks(lines), strict=True):
        service = run.latency(step.key)
        assert service is not None
        manager = rows[1]
        counted = run.measured_rows(step.key)
        mean_ms = counted["service_sum_ns"].sum() / counted["ios"].sum() / 1e6
        assert float(manager["Average Response Time"]) == pytest.approx(mean_ms, rel=1e-6)
        assert float(manager["Average Response Time"]) == pytest.approx(service.mean / 1e6, rel=0.1)
        clock = int(manager["Processor Speed"])
        ticks = int(manager["Total Raw Read Response Time"]) + int(manager["Total Raw Write Response Time"])
        ios = int(manager["Read I/Os"]) + int(manager["Write I/Os"])
        assert ticks * 1000 / clock / ios == pytest.approx(float(manager["Average Response Time"]), rel=1e-5)
        seconds = int(manager["Total Raw Run Time"]) / clock
        assert ios / seconds == pytest.approx(float(manager["IOps"]), rel=1e-6)
        assert rows[0]["Total Raw Read Response Time"] == ""


def test_bins_count_all_ios_where_they_are_known(run: RunDirectory, lines: list[str]) -> None:
    for step, rows in zip(run.manifest.steps, blocks(lines), strict=True):
        service = run.latency(step.key)
        assert service is not None
        for row in rows[:3]:
            assert sum(int(row[name]) for name, _ in BINS) == service.count
        below = sum(count for low, high, count in service.buckets() if (low + high) / 2 < 1e6)
        assert sum(int(rows[0][name]) for name, limit_ns in BINS if limit_ns <= 1e6) == below


def test_errors_are_told(lines: list[str]) -> None:
    assert [rows[0]["Errors"] for rows in blocks(lines)] == ["0", "0", "4"]


def test_the_load_of_the_host_is_in_the_rows_of_hosts_alone(lines: list[str]) -> None:
    for rows in blocks(lines):
        for row in rows[:2]:
            busy = float(row["% CPU Utilization"])
            assert busy == pytest.approx(
                float(row["% User Time"]) + float(row["% Privileged Time"]), abs=1e-5
            )
            assert 0 <= busy <= 100
            assert row["% DPC Time"] == "0.000000"
        assert {row["% CPU Utilization"] for row in rows[2:]} == {""}


def test_names_of_a_configuration_are_those_of_its_file(tmp_path: Path) -> None:
    spec = spec_of(Load(name="x", volumes=2))
    (stream,) = spec["streams"]
    names = list(stream["volumes"])
    worker = IometerWorkerRecord(
        stream=stream["name"],
        specification="4k, mixed",
        lines=("4096,100,67,100,0,1,0,0",),
        targets={names[0]: 'C: "a,b"', names[1]: "PHYSICALDRIVE:1"},
    )
    test = IometerRecord(test_type=6, description="first, second", manager="LOAD1", workers=(worker,))
    with RunWriter.create(tmp_path / "run", name="w", workload=WorkloadSource(name="w.icf")) as writer:
        writer.begin_step("x", spec=spec, facts={}, iometer=test)
    write_iometer_csv(RunDirectory.open(tmp_path / "run"), tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1] == "6,first  second"
    at = lines.index("'Access specification name,default assignment")
    assert lines[at + 1] == "4k  mixed,0"
    assert lines[at + 3] == "4096,100,67,100,0,1,0,0,"
    (rows,) = blocks(lines)
    assert [row["Target Name"] for row in rows] == [
        "All",
        "LOAD1",
        stream["name"],
        'C: "a b"',
        "PHYSICALDRIVE:1",
    ]
    assert [row["Access Specification Name"] for row in rows] == ["4k  mixed"] * 3 + [""] * 2
    assert {row["IOps"] for row in rows} == {"0.000000"}
