"""Paths and faults in the reports of runs and studies, on terminals and as JSON. All figures are planted."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from linerate.analysis.paths import layout_of
from linerate.analysis.verdict import ClaimVerdict, Deviance
from linerate.report import figures
from linerate.report.panels import charts, series
from linerate.report.panels.paths import failback, paths_panel, seconds
from linerate.report.study import (
    StudyPage,
    closing_lines,
    fault_lines,
    fault_table,
    opening_lines,
    render_study,
    verdict_object,
)
from linerate.report.study.carried import carried
from linerate.report.study.paths import FaultPart, LayoutPart, paths_of
from linerate.report.study.short import deciding
from linerate.results import TimedEvent
from linerate.study import StudyDirectory
from rich.console import Console

from tests.report.test_page import Page, assert_self_contained, report_of
from tests.support.samples.path_run import PathLoad, Way, make_path_run
from tests.support.samples.study_directory import make_study_directory
from tests.support.samples.study_page import sample_page

SIZE_MAX = 1_500_000
ELLIPSIS = "\u2026"
EVIL = '"><script>alert(1)</script>'
ENDS = ((0, 0), (1, 1), (2, 0), (3, 1), (0, 1), (1, 0), (2, 1), (3, 0))
MESH = PathLoad(
    [Way(f"h1.p{ours}-a1.p{theirs}", [10], 200.0, retransmits=1) for ours, theirs in ENDS],
    counters={"port.a1.p0.switch_drops": 500.0},
)
CONTROL = PathLoad([Way("h1.p0-a1.p0", [200], 40.0)])


def of_path(at_s: float, kind: str) -> TimedEvent:
    return TimedEvent(at_s, kind, "", volume="v1", path="h1.p0-a1.p0")


CABLE = PathLoad(
    [
        Way("h1.p0-a1.p0", [100, 100, 20, 0, 0, 0, 100]),
        Way("h1.p1-a1.p1", [100, 100, 20, 120, 120, 60, 100]),
    ],
    name="cable",
    events=[
        TimedEvent(1.1, "fault", "cable h1.p0"),
        of_path(1.2, "path_failed"),
        of_path(1.45, "failover"),
        TimedEvent(2.4, "healed", "cable h1.p0"),
        of_path(2.5, "path_restored"),
    ],
    slow={2: 7},
)


@pytest.mark.long
def test_a_run_tells_its_paths_and_faults(tmp_path: Path) -> None:
    text, page = report_of(make_path_run(tmp_path / "run", [MESH, CABLE]))
    for words in (
        "Four host ports shared each of array port a1.p0 and a1.p1 in 100 % of the intervals",
        "MB/sec by path",
        "I/Os in flight by path",
        "TCP retransmits by path",
        "dashed: fault, dotted: healed",
        "share of bytes, %",
        "h1.p3-a1.p1",
        "first I/O elsewhere after, s",
        "0.350",
        "400 / 240 / 400",
        "60 I/Os in 0.5 s",
    ):
        assert words in page.text, words
    assert "#fe00" not in text


@pytest.mark.long
def test_a_run_over_one_path_has_no_such_panels(tmp_path: Path) -> None:
    run = make_path_run(tmp_path / "run", [replace(CABLE, events=())])
    panel = paths_panel(run, "cable", 100, brief=True)
    assert panel is not None
    assert panel.faults == ()
    assert len(panel.charts) == 1
    _, page = report_of(run)
    assert "first I/O elsewhere" not in page.text


@pytest.mark.long
def test_names_of_paths_cannot_inject(tmp_path: Path) -> None:
    load = replace(CABLE, ways=[replace(CABLE.ways[0], name=EVIL), CABLE.ways[1]])
    faults = [TimedEvent(1.1, "fault", EVIL), replace(of_path(1.2, "path_failed"), path=EVIL)]
    text, page = report_of(make_path_run(tmp_path / "run", [replace(load, events=faults)]))
    assert text.count("<script") == 1  # the page's own
    assert EVIL in page.text


@pytest.mark.long
def test_charts_of_paths_are_valid_and_mark_faults(tmp_path: Path) -> None:
    panel = paths_panel(make_path_run(tmp_path / "run", [CABLE]), "cable", 100, brief=False)
    assert panel is not None
    for title, spec, note in panel.charts:
        alt.Chart.from_dict(spec, validate=True)
        marks = spec["layer"][-2]["data"]["values"]
        assert [(mark["t"], mark["kind"]) for mark in marks] == [(1.1, "fault"), (2.4, "healed")]
        assert title.endswith("by path")
        assert note


def test_many_paths_and_intervals_are_thinned_out_without_losing_any(tmp_path: Path) -> None:
    ways = [Way(f"p{number:02}", [100 - number]) for number in range(12)]
    run = make_path_run(tmp_path / "run", [PathLoad(ways, intervals=40)])
    points = series.paths_over_time(run, "rd1", 10, 8)
    assert len(points) == 8 * 10
    assert {point["path"] for point in points} == {*(f"p{number:02}" for number in range(7)), "others"}
    total = sum(point["mib_s"] for point in points) / 10
    layout = layout_of(run, "rd1")
    assert layout is not None
    assert total == pytest.approx(layout.mib_s, rel=1e-3)
    spec = charts.paths_chart(points, "mib_s", "MB/s", (), 2.0)
    alt.Chart.from_dict(spec, validate=True)


@pytest.mark.parametrize(("value", "written"), [(None, "-"), (0.3504, "0.350"), (12.34, "12.3")])
def test_times_keep_their_milliseconds(value: float | None, written: str) -> None:
    assert seconds(value) == written


# ---- studies ----


def fault(**changes: object) -> FaultPart:
    part = FaultPart(
        case="no-rsc",
        workload="8k-random",
        what="cable h1.p0",
        runs=6,
        at_s=3.0,
        down=(),
        detected_s=0.2,
        failover_s=1.02,
        failover_worst_s=1.31,
        failed_over=6,
        no_path=False,
        slow_ios=31,
        response_max_ms=1210.0,
        errors=0,
        iops_before=9000.0,
        iops_failed=4600.0,
        iops_after=8900.0,
        back_s=0.8,
        failback_ios=120.0,
        failback_s=0.5,
    )
    return replace(part, **changes)  # type: ignore[arg-type]


@pytest.fixture
def page(tmp_path: Path) -> StudyPage:
    layout = layout_of(make_path_run(tmp_path / "mesh", [MESH]), "rd1")
    assert layout is not None
    published = ClaimVerdict(
        claim="mpio.b_full_mesh_rr",
        subject="four host ports",
        change="against one path",
        workload="sequential 4M",
        published="-90.04 %",
        measured="-61.0 %",
        verdict="differs",
        reason="smaller",
        cases=("no-lso",),
        against="baseline",
        deviances=(
            Deviance("no-lso", "256k-seq-read", "mib_s", -90.04, -61.0, -63.0, -59.0, "worse", 6, 0.4, 1.1),
        ),
    )
    base = sample_page()
    return replace(
        base,
        layouts=(LayoutPart("no-lso", "256k-seq-read", layout, "Senders met. <b>"),),
        faults=(fault(), fault(what="switch sw1", errors=2, down=("h1.p0-a1.p0",), failback_ios=None)),
        claims=(*base.claims, published),
    )


@pytest.mark.long
def test_the_study_page_tells_layouts_faults_and_deviance(page: StudyPage) -> None:
    text = render_study(page)
    assert len(text.encode()) < SIZE_MAX
    assert_self_contained(text)
    shown = Page(text)
    for words in (
        "What did each path carry?",
        "Senders met. <b>",
        "each path of large send offload off",
        "h1.p3-a1.p0",
        "2 I/Os failed in 2 faults; failover took 1.020 s; the longest wait was 1.210 s.",
        "What did the application notice of each fault?",
        "1.310",
        "8K random, 67 % read, 6 runs",
        "120 I/Os in 0.5 s",
        "h1.p0-a1.p0 stayed down",
        "Control deviance: published and measured changes",
        "-63.0 .. -59.0",
        "control against itself",
    ):
        assert words in shown.text, words
    assert ("td", {"class": "void"}) in shown.tags  # errors that the application saw
    places = [text.index(f'<section id="{name}"') for name in ("short", "faults", "verdicts", "paths")]
    assert places == sorted(places), "what a fault study answers comes before the changes of rates"
    bare = render_study(sample_page())
    assert not any(f'id="{name}"' in bare for name in ("paths", "faults", "deviance"))


def test_the_terminal_tells_them_too(page: StudyPage) -> None:
    text = "\n".join(closing_lines(page))
    assert "paths:\n  no-lso, 256k-seq-read: Senders met. <b>" in text
    assert deciding(page) == (), "more blocks would decide on rates, which is not what was asked"
    first = opening_lines(page)[0]
    assert first == "2 I/Os failed in 2 faults; failover took 1.020 s; the longest wait was 1.210 s"
    faults = [line for line in fault_lines(page) if line.startswith("  no-rsc ")]
    assert len(faults) == 2
    assert faults[0].split()[1:8] == ["8k-random", "1.020", "1.310", "1,210.0", "31", "0", "0.800"]
    assert faults[0].endswith("120 I/Os in 0.5 s")
    (deviance,) = (line for line in text.splitlines() if "-63.0 .. -59.0" in line)
    assert deviance.split()[:6] == ["no-lso", "256k-seq-read", "-90.0", "%", "-61.0", "%"]
    assert "+0.4 %" in deviance
    bare = "\n".join(
        [*opening_lines(sample_page()), *fault_lines(sample_page()), *closing_lines(sample_page())]
    )
    assert not any(word in bare for word in ("paths:", "faults", "deviance"))


def test_a_narrow_terminal_shows_each_fault_without_a_cut(page: StudyPage) -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as written:
        console.print(fault_table(page))
    text = written.get()
    assert ELLIPSIS not in text
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert "120 I/Os in 0.5 s" in text
    assert "no-rsc" in text


def test_the_bars_of_paths_are_drawn_to_scale(page: StudyPage) -> None:
    shown = carried(page)
    assert shown is not None
    (chart,) = shown.charts
    (row,) = chart.rows
    widths = [float(width) for width in re.findall(r'width="([\d.]+)%"', str(row.bar))]
    assert len(widths) == len(ENDS)
    layout = page.layouts[0].layout
    assert row.total == figures.mib_s(layout.mib_s)
    high = float(re.findall(r">([\d.]+)</text>", str(chart.axis))[-1])
    assert sum(widths) == pytest.approx(92 * layout.mib_s / high, abs=0.1)
    assert len({colour for _, colour in shown.legend}) == len(ENDS)
    assert carried(sample_page()) is None


def test_paths_beyond_the_colours_share_one(page: StudyPage, tmp_path: Path) -> None:
    ways = [Way(f"h1.p{number}-a1.p0", [100 - number]) for number in range(11)]
    layout = layout_of(make_path_run(tmp_path / "many", [PathLoad(ways)]), "rd1")
    assert layout is not None
    shown = carried(replace(page, layouts=(LayoutPart("no-lso", "8k-random", layout, ""),)))
    assert shown is not None
    assert shown.legend[-1] == ("4 more paths", "rest")
    assert str(shown.charts[0].rows[0].bar).count('class="rest"') == 4


def test_json_holds_them(page: StudyPage) -> None:
    told = json.loads(json.dumps(verdict_object(page)))
    assert told["paths"][0]["layout"]["paths"][0]["name"] == "h1.p0-a1.p0"
    assert told["faults"][0]["failover_worst_s"] == 1.31
    assert told["claims"][-1]["deviances"][0]["published"] == -90.04


def test_the_cost_of_failback_in_words() -> None:
    assert failback(fault()) == "120 I/Os in 0.5 s"
    assert failback(fault(failback_ios=0.0, failback_s=0.0)) == "none seen"
    assert failback(fault(failback_ios=None, failback_s=None)) == "-"


def test_a_study_directory_gives_its_layouts_and_faults(tmp_path: Path) -> None:
    directory = make_study_directory(tmp_path / "study", blocks=2)
    loads = {
        ("baseline", "8k-random"): CONTROL,
        ("jumbo", "8k-random"): MESH,
        ("default", "256k-seq-read"): CABLE,
    }
    for done in directory.measured.values():
        if (load := loads.get((done.case, done.workload))) is not None:
            shutil.rmtree(directory.path / done.directory)
            make_path_run(directory.path / done.directory, [load])
    layouts, faults = paths_of(StudyDirectory.open(directory.path))
    assert [(part.case, part.workload) for part in layouts] == [
        ("baseline", "8k-random"),
        ("default", "256k-seq-read"),
        ("jumbo", "8k-random"),
    ]
    mesh = layouts[-1]
    assert mesh.layout.seconds == 10  # both blocks
    assert "consistent with" in mesh.said
    assert "control" not in layouts[1].said  # the baseline did not run over paths there
    (cable,) = faults
    assert (cable.case, cable.what, cable.runs, cable.slow_ios) == ("default", "cable h1.p0", 2, 14)
    assert (cable.failover_s, cable.failover_worst_s) == (pytest.approx(0.35), pytest.approx(0.35))


def test_runs_that_are_gone_are_left_out(tmp_path: Path) -> None:
    directory = make_study_directory(tmp_path / "study", blocks=1)
    shutil.rmtree(directory.path / "runs")
    assert paths_of(StudyDirectory.open(directory.path)) == ((), ())
