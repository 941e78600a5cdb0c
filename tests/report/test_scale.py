"""The page of a search: the curve with its threshold, the loads, headroom and laws of a SAN on paper."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.report.panels.scale import SearchShown, scale_panel
from linerate.report.scale import render_scale, write_scale_report
from linerate.report.study import render_study, study_page
from linerate.scale import Parts, ScaleRecord, SearchLimits, Threshold

from tests.scale.simulated import LIMIT_MS, MOST, Disks, carried_out
from tests.scale.test_study import Disks as StudyDisks
from tests.scale.test_study import place_of, run

MEAN = Threshold("mean", LIMIT_MS)


def record_of(runs: int | None = None) -> ScaleRecord:
    """Of a search, or of its first runs."""
    procedure = carried_out(Disks(noise=0.01, bursts=1.5).run)
    return ScaleRecord(
        name="reads",
        started_at=datetime(2026, 11, 25, tzinfo=UTC),
        axis="threads",
        threshold=MEAN,
        limits=SearchLimits(LIMIT_MS, most=MOST),
        parts=Parts(),
        runs=procedure.runs[:runs],
    )


def test_the_page_says_what_the_search_says() -> None:
    record = record_of()
    kept = record.procedure.capacity().kept
    page = render_scale(record)
    assert "reads: the largest number of threads with a mean of 20 ms" in page
    assert "Largest load: " in page
    assert f"the rate at {kept} threads" in page
    assert "On the way down (" in page
    assert "Universal Scalability Law: contention " in page
    assert "state <b>complete</b>" in page
    assert page.count("<td>kept") + page.count(">missed") >= 4
    loads = {run.load for run in record.runs if run.purpose == "up"}
    for load in loads:
        assert f"<tr><td>{load}<td>" in page
    assert not re.search(r'(?:src|href)="(?!#)', page), "nothing is loaded from elsewhere"


def test_the_curve_has_a_line_per_search_the_threshold_and_the_largest_load() -> None:
    slow = carried_out(Disks(service_ms=8.0).run)
    fast = carried_out(Disks().run)
    panel = scale_panel(
        [
            SearchShown("RAID 50", "threads", MEAN, slow),
            SearchShown("RAID 10", "threads", MEAN, fast),
        ]
    )
    chart = str(panel.chart)
    assert "20 ms" in chart
    assert f">{slow.capacity().kept}</text>" in chart
    assert f">{fast.capacity().kept}</text>" in chart
    assert {"RAID 50", "RAID 10"} <= set(re.findall(r">(RAID \d+)</text>", chart))
    states = [row.state for row in panel.parts[0].loads]
    assert states == sorted(states, key=["kept", "too close to tell", "missed"].index)
    assert states[0] == "kept"
    assert states[-1] == "missed"


def test_a_search_that_was_interrupted_and_one_without_an_answer() -> None:
    part = render_scale(record_of(7))
    assert "not at its end" in part
    assert "Headroom" not in part
    none = carried_out(Disks(service_ms=30.0).run)
    panel = scale_panel([SearchShown("reads", "threads", MEAN, none)])
    assert panel.chart is None
    assert panel.parts[0].answer.startswith("Even the smallest load")
    assert panel.parts[0].headroom == ()


@pytest.mark.long
def test_the_record_is_kept_and_read(tmp_path: Path) -> None:
    record = record_of()
    record.write(tmp_path)
    assert ScaleRecord.open(tmp_path) == record
    assert write_scale_report(tmp_path) == tmp_path / "report.html"
    assert (tmp_path / "report.html").read_text() == render_scale(record)
    with pytest.raises(UserError, match=r"scale\.json"):
        ScaleRecord.open(tmp_path / "none")
    (tmp_path / "scale.json").write_text('{"format": "linerate-scale"}')
    with pytest.raises(UserError, match="Field required"):
        ScaleRecord.open(tmp_path)
    record.model_copy(update={"format_version": 2}).write(tmp_path)
    with pytest.raises(UserError, match="this version reads up to 1"):
        ScaleRecord.open(tmp_path)


@pytest.mark.long
def test_the_page_of_a_study_with_searches(tmp_path: Path) -> None:
    page = study_page(run(place_of(tmp_path), StudyDisks()))
    text = render_study(page)
    assert len(page.carries) == 2
    for sentence in page.carries:
        assert sentence in text
    assert "How far does each case go?" in text
    for case in ("as found", "no delayed ACK"):
        assert f"every load that was measured of {case}" in text
    assert "more repeats or longer runs are needed" in text
    assert "each case is searched once" in text
