"""The HTML report: self-contained, small, escaped, complete; charts are checked as data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from linerate.analysis import check_run
from linerate.report.page import build, write_report
from linerate.report.panels import charts, series
from linerate.report.panels.svg import PALETTE, draw
from linerate.report.panels.template import style
from linerate.results import RunClosedError, RunDirectory, RunWriter, WorkloadSource, files
from linerate.results.sample import OPS
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tests.support.samples.hdr import PlainHistogram
from tests.support.samples.synthetic import Load, make_run

LOAD = Load(intervals=8, warmup=2, volumes=3, points=40)
OPEN = replace(LOAD, spec={"arrival": {"kind": "open", "process": "poisson", "rate_iops": 40_000.0}})
SIZE_MAX = 1_500_000
VOID_TAGS = {"meta", "br", "link", "img", "input", "hr"}
OPTIONAL_ENDS = {"td", "th", "tr", "thead", "tbody", "li", "p", "dt", "dd"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that what must be closed is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID_TAGS | OPTIONAL_ENDS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPTIONAL_ENDS:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def report_of(run: RunDirectory) -> tuple[str, Page]:
    path = write_report(run, run.path.parent / f"{run.path.name}.html")
    assert path.stat().st_size < SIZE_MAX
    text = path.read_text()
    assert_self_contained(text)
    return text, Page(text)


def assert_self_contained(text: str) -> None:
    assert not re.findall(r"(?i)(?:src|href|action|data)\s*=\s*[\"']?\s*(?:https?:|//)", text)
    assert not re.findall(r"(?i)url\(|@import|<link|<iframe|<object|<img", text)
    assert "http://" not in text
    assert "https://" not in text


def test_the_page_tells_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [LOAD, replace(LOAD, name="rd2", errors=3)], judge=check_run)
    text, page = report_of(run)
    for words in (
        "i/o rate",
        "MB/sec",
        "resp max",
        "queue depth",
        "cpu% sys+u",
        "p99.9",
        "tcp_congestion_control" if "tcp_congestion_control" in text else "TCP congestion control",
        "cubic",
        "9000 bytes",
        "the array answered with a check condition",
        "three workloads over eight volumes",
        "loadhost1",
        "valid with cautions",
        "linerate run demo.parm",
        "wd1: 8 KiB, 67 % read, 100 % random, 3 volumes; threads 5",
    ):
        assert words in page.text, words
    assert page.count("svg") == 12
    assert page.count("details") == 2
    assert ("span", {"class": "stamp caution"}) in page.tags
    assert "#fe00" not in text


def test_light_dark_and_paper_each_have_every_colour() -> None:
    style = (Path(charts.__file__).parent / "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        assert set(PALETTE) <= set(re.findall(r"--(\w+):", block))
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


@pytest.mark.long
def test_names_cannot_inject(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    load = replace(LOAD, name=evil, for_loops=evil, errors=1, session={"congestion_control": evil})
    run = make_run(tmp_path / "run", [load], name="evil", workload=evil * 3, reason=evil, state="failed")
    text, page = report_of(run)
    assert text.count("<script>") == 1
    assert page.count("script") == 1
    assert page.count("img") == 0
    assert evil in page.text


@pytest.mark.long
def test_the_page_is_written_once_into_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [LOAD])
    path = write_report(run)
    assert path == run.path / files.REPORT
    with pytest.raises(RunClosedError):
        write_report(run)
    elsewhere = tmp_path / "new" / "again.html"
    assert write_report(run, elsewhere).read_bytes() == path.read_bytes()
    assert RunDirectory.open(run.path).damage() == []


def test_a_run_that_never_measured_has_a_page(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="x", workload=WorkloadSource(name="x")) as writer:
        writer.begin_step("rd1", spec={}, facts={})
        run = writer.close("failed", "cannot reach 10.0.0.10:3260", judge=check_run)
    _, page = report_of(run)
    assert "cannot reach 10.0.0.10:3260" in page.text
    assert "void" in page.text


def test_a_running_run_can_be_looked_at(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="x", workload=WorkloadSource(name="x")) as writer:
        _, page = report_of(RunDirectory.open(writer.path))
        writer.close("complete")
    assert "the run is still going on" in page.text


@pytest.mark.long
def test_a_thousand_volumes_fit(tmp_path: Path) -> None:
    load = Load(intervals=3, warmup=0, volumes=1000, points=2, iops=200_000)
    text, page = report_of(make_run(tmp_path / "run", [load]))
    assert "sd1000" in page.text
    assert page.count("tr") > 1000
    assert 'class="sortable"' in text


@pytest.mark.long
@pytest.mark.timeout(300)
def test_fifty_steps_of_many_volumes_fit(tmp_path: Path) -> None:
    load = Load(intervals=4, warmup=0, volumes=70, points=2, read_percent=50)
    loads = [
        replace(load, for_loops=f"threads={n}", iops=1000.0 * n, latency_ms=1 + n / 10) for n in range(1, 51)
    ]
    _, page = report_of(make_run(tmp_path / "run", loads))
    assert page.count("details") == 50
    assert "The slowest volumes are shown; 10 more" in page.text
    assert "rd1: response time against i/o rate" in page.text
    assert all(f"rd1 (threads={n})" in page.text for n in range(1, 51))


@pytest.mark.long
def test_a_page_that_would_be_too_large_says_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary stays whole, details make room."""
    smallest = build.PageLimits(chart_bytes=0, volume_rows=0, steps=1, events=10, workload_characters=20)
    monkeypatch.setattr(build, "_LIMITS", (build._LIMITS[0], smallest))
    monkeypatch.setattr(build, "PAGE_BYTES_MAX", 30_000)
    run = make_run(tmp_path / "run", [replace(LOAD, for_loops=f"threads={n}") for n in (1, 2)])
    text, page = report_of(run)
    assert len(text) < 30_000
    assert page.count("svg") == 0
    assert "1 more runs are in the summary only" in page.text
    assert "rd1 (threads=2)" in page.text
    assert "Charts of this step are left out" in page.text


@pytest.mark.long
def test_an_open_loop_shows_service_and_response(tmp_path: Path) -> None:
    _, page = report_of(make_run(tmp_path / "run", [replace(OPEN, wait_ms=400.0)]))
    assert "response counts from the intended start" in page.text
    assert "response time, from the intended start; log scale" in page.text
    assert page.text.count("with wait") >= 4, "summary, its note, volumes, headline"
    assert "401.1 ms per I/O with wait" in page.text


@pytest.mark.long
def test_the_head_says_what_was_reached_and_what_limited_it(tmp_path: Path) -> None:
    busy = replace(LOAD, usage={"load_cpu_user_s": 0.99})
    _, page = report_of(make_run(tmp_path / "run", [busy]))
    head = page.text[: page.text.index("Summary")]
    assert re.search(r"[\d,]+ IOPS, [\d.]+ MB/s, [\d.]+ ms per I/O, 99 % within [\d.]+ ms", head)
    assert head.strip().endswith("us of CPU per I/O.")
    assert "Bottleneck The load generator was the limit" in head


def test_a_run_without_counters_says_that_its_limit_is_not_known(tmp_path: Path) -> None:
    _, page = report_of(make_run(tmp_path / "run", [replace(LOAD, iops=0)]))
    assert "No I/O was completed, so nothing can be said about a limit." in page.text


@pytest.mark.long
def test_every_point_of_a_chart_has_a_tooltip_with_units(tmp_path: Path) -> None:
    specs = chart_specs(make_run(tmp_path / "run", [LOAD]))
    said = {name: re.findall(r"<title>([^<]+)</title>", draw(spec)) for name, spec in specs.items()}
    assert len(said["rate"]) == len(
        {point["t"] for point in series.rates(RunDirectory.open(tmp_path / "run"), "rd1", 5)}
    )
    assert all("IOPS" in words for words in said["rate"])
    assert all("MB/s" in words for words in said["throughput"])
    assert all(re.search(r"p99: [\d.]+ ms", words) for words in said["latency"])
    assert all("% of the I/Os" in words for words in said["bars"])
    assert said["response"] == ["1 threads", "2 threads", "3 threads", "4 threads"]


def test_charts_of_few_intervals_fill_their_place(tmp_path: Path) -> None:
    """The strips of the tooltips are part of the picture: wide ones made the chart small."""
    run = make_run(tmp_path / "run", [replace(LOAD, intervals=2, warmup=0)])
    page = write_report(run).read_text("utf-8")
    widths = [float(width) for width in re.findall(r'<svg viewBox="0 0 ([0-9.]+) ', page)]
    assert len(widths) > 3
    assert max(widths) < 1.25 * charts.WIDTH


def test_no_io_is_a_gap_and_not_a_line() -> None:
    points = [
        {"t": t, "path": "p", "ms": ms} for t, ms in ((0, 1.0), (1, 1.0), (2, None), (3, 1.0), (4, 1.0))
    ]
    svg = draw(charts.paths_chart(points, "ms", "ms", [], 0.0))
    (line,) = re.findall(r'<path[^>]* d="(M[^"]*)" stroke="var\(--path1\)"', svg)
    assert line.count("M") == 2
    assert "2 s\np: no I/O" in svg.replace("&#xA;", "\n")


@pytest.fixture
def json_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


def normalised(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec without the schema's address and with the data sets' generated names replaced by their place."""
    text = json.dumps({key: value for key, value in spec.items() if key != "$schema"})
    for place, name in enumerate(
        dict.fromkeys(re.findall(r"(?:data|view|param)[-_][0-9a-f]{6,}|view_\d+", text))
    ):
        text = text.replace(name, f"name-{place}")
    result: dict[str, Any] = json.loads(text)
    return result


CURVE = [
    {
        "of": "rd1",
        "label": str(n),
        "order": n,
        "iops": n * 10,
        "ms": n * 8,
        "knee": n == 2,
        "say": f"{n} threads",
    }
    for n in range(1, 5)
]


def chart_specs(run: RunDirectory) -> dict[str, dict[str, Any]]:
    histograms = [(op, histogram) for op in OPS if (histogram := run.latency("rd1", op=op))]
    rates = series.rates(run, "rd1", 5)
    curve = [point for name, histogram in histograms for point in series.percentile_curve(histogram, name, 5)]
    return {
        "rate": charts.rate_chart(rates, "iops", "IOPS", series.warmup_end_s(run, "rd1")),
        "throughput": charts.rate_chart(rates, "mib_s", "MB/s", 0.0),
        "latency": charts.latency_chart(series.latency_over_time(run, "rd1", 4)),
        "cpu": charts.cpu_chart(series.cpu_over_time(run, "rd1", 4)),
        "percentile": charts.percentile_chart(curve),
        "bars": charts.bars_chart(series.latency_bars(histograms)),
        "response": charts.response_chart(CURVE, 20.0),
    }


@pytest.mark.long
@pytest.mark.parametrize("name", ["rate", "throughput", "latency", "cpu", "percentile", "bars", "response"])
def test_chart_specs_stay_as_they_are(name: str, tmp_path: Path, json_snapshot: SnapshotAssertion) -> None:
    spec = chart_specs(make_run(tmp_path / "run", [LOAD]))[name]
    alt.Chart.from_dict(spec, validate=True)
    assert normalised(spec) == json_snapshot
    svg = draw(spec)
    assert svg.startswith("<svg")
    assert "#fe00" not in svg
    assert "var(--" in svg


def test_labels_keep_their_decimals(tmp_path: Path) -> None:
    svg = draw(chart_specs(make_run(tmp_path / "run", [LOAD]))["percentile"])
    assert {"90", "99", "99.9", "99.99"} <= set(re.findall(r"<text[^>]*>([^<]+)</text>", svg))
    assert not re.search(r"\d\.\d\d[^<>]*>", svg)


def test_long_series_are_thinned_without_losing_io(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=50, warmup=0, volumes=1, points=5)])
    points = [point for point in series.rates(run, "rd1", 10) if point["op"] == "total"]
    assert len(points) == 10
    mean = sum(point["iops"] for point in points) / 10
    assert mean == pytest.approx(run.intervals["ios"].sum() / 50, rel=1e-3)
    assert len(series.latency_over_time(run, "rd1", 10)) == 40
    assert len(series.cpu_over_time(run, "rd1", 10)) == 30


def test_a_percentile_curve_says_where_honesty_ends() -> None:
    histogram = PlainHistogram()
    for value in range(1, 1001):
        histogram.record(value * 1000, 10)
    points = series.percentile_curve(histogram, "read", 20)
    reliable = [point["nines"] for point in points if point["reliable"]]
    beyond = [point["nines"] for point in points if not point["reliable"]]
    assert max(reliable) == min(beyond) == 2.0
    assert max(beyond) == 4.0
    assert [point["ms"] for point in points] == sorted(point["ms"] for point in points)


def test_bars_hold_all_io() -> None:
    read, write = PlainHistogram(), PlainHistogram()
    for value in range(1, 2000):
        read.record(value * 1000, 3)
        write.record(value * 3000, 1)
    bars = series.latency_bars([("read", read), ("write", write)])
    assert sum(bar["high"] - bar["low"] for bar in bars) == pytest.approx(100, rel=1e-3)
    one = PlainHistogram()
    one.record(5_000_000, 7)
    assert len(series.latency_bars([("read", one)])) == 1


def test_notes_below_a_table_that_scrolls_are_not_cut() -> None:
    """A table that is wider than a phone scrolls in its frame; its note stays as wide as the screen."""
    (rule,) = (line for line in style().splitlines() if ".wide caption" in line)
    assert "max-width: calc(100vw" in rule
    assert "position: sticky; left: 0" in rule
