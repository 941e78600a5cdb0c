"""skew.html of vdbench: the shares of workloads, asked for and seen."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from linerate.report.vdbench import skew
from linerate.report.vdbench.operations import Figures, OperationRow, summary_lines
from linerate.report.vdbench.rows import ReportRow, StepRows, step_rows
from linerate.results import RunDirectory, StepRecord

from tests.report.test_vdbench import MIXED
from tests.support.samples import synthetic
from tests.support.samples.synthetic import make_run

AT = datetime(2026, 11, 27, 9, 30, tzinfo=UTC)


def _row(rate: float) -> ReportRow:
    return ReportRow(AT, "avg_2-5", rate, rate / 128, 8192, 67, 1.5, 1.25, 2, 9.5, 0.5, rate * 0.0015)


def _lines(run: RunDirectory, spec: dict[str, Any], rates: dict[str, float]) -> list[str]:
    record = StepRecord(key="rd1", name="rd1", spec=spec, started_at=AT)
    rows = StepRows([], _row(sum(rates.values())), streams={name: _row(rate) for name, rate in rates.items()})
    return list(skew.lines(run, record, rows))


def test_shares_of_workloads_and_their_deltas(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MIXED])
    streams = [{"name": "oltp", "share_percent": 70.0}, {"name": "backup"}, {"name": "log"}]
    lines = _lines(
        run, {"shares": "controlled", "streams": streams}, {"oltp": 690, "backup": 150.5, "log": 159.5}
    )
    assert lines[3:5] == [
        "              i/o   MB/sec   bytes   read     resp     read    write     resp     resp  queue"
        "      skew     skew    skew",
        "WD:          rate  1024**2     i/o    pct     time     resp     resp      max   stddev  depth"
        " requested observed   delta",
    ]
    assert [line.split()[0] for line in lines[5:]] == ["oltp", "backup", "log", "Total"]
    assert [line.split()[11:] for line in lines[5:]] == [
        ["70.00%", "69.00%", "1.00%"],
        ["15.00%", "15.05%"],
        ["15.00%", "15.95%", "-0.95%"],
        ["100.00%", "100.00%"],
    ]
    assert lines[5].split()[1:4] == ["690.00", "5.39", "8192"]


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MIXED])
    streams = [{"name": "a"}, {"name": "b", "rate_iops": 10.0}]
    free = _lines(run, {"streams": streams}, {"a": 90, "b": 10})
    assert "Shares are not kept in an Uncontrolled MAX run." in free
    assert [line.split()[11:] for line in free[6:]] == [
        ["100.00%", "90.00%", "10.00%"],
        ["0.00%", "10.00%", "-10.00%"],
        ["100.00%", "100.00%"],
    ]
    paced = _lines(
        run, {"streams": streams, "arrival": {"kind": "open", "rate_iops": 100}}, {"a": 90, "b": 10}
    )
    assert "Shares are not kept in an Uncontrolled MAX run." not in paced
    assert _lines(run, {"streams": streams[:1]}, {"a": 90}) == [], "one workload has no shares"


def test_several_hosts_have_a_table_and_one_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "volume_name", lambda number: ("h1/sd1", "h1/sd2", "h10/sd1")[number])
    run = make_run(tmp_path / "run", [MIXED])
    (alone,) = run.manifest.steps
    assert not any(line.startswith("Host:") for line in skew.lines(run, alone, step_rows(run, alone)))
    record = alone.model_copy(update={"facts": {**alone.facts, "cluster": {"h1": {}, "h10": {}}}})
    rows = step_rows(run, record)
    lines = list(skew.lines(run, record, rows))
    start = next(number for number, line in enumerate(lines) if line.startswith("Host:"))
    table = [line.split() for line in lines[start + 1 :]]
    assert [line[0] for line in table] == ["h1", "h10", "Total"]
    volumes = {name: row.rate for name, (_, row) in rows.volumes.items() if row is not None}
    assert rows.total is not None
    wanted = [volumes["h1/sd1"] + volumes["h1/sd2"], volumes["h10/sd1"], rows.total.rate]
    assert [float(line[1]) for line in table] == pytest.approx(wanted, abs=0.01)


def test_copies_and_moves_have_columns() -> None:
    done = {"copy": Figures(12.5, 3.25), "move": Figures(7.5, 1.75)}
    first, second, line = summary_lines(AT, [OperationRow(_row(20), Figures(20, 2.5), done)])
    assert first.split()[-4:] == ["copy", "copy", "move", "move"]
    assert second.split()[-4:] == ["rate", "resp", "rate", "resp"]
    assert line.split()[-4:] == ["12.5", "3.250", "7.5", "1.750"]
    assert len(first) == len(second) == len(line)
