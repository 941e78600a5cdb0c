"""Gathers what the template shows, and writes the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from linerate.analysis import (
    Bottleneck,
    PartSummary,
    StepSummary,
    bottleneck,
    bottleneck_of_run,
    check_run,
    summarise,
)
from linerate.analysis.summary import measured
from linerate.plural import plural
from linerate.report import figures, tables
from linerate.report.page.curves import THRESHOLD_MS, response_curves
from linerate.report.page.events import EventRow, event_rows
from linerate.report.page.headline import faults_said, headline
from linerate.report.page.sizes import size_lines, size_points
from linerate.report.panels import charts, series
from linerate.report.panels.arrays import ArrayPanel, array_panel
from linerate.report.panels.paths import PathsPanel, paths_panel
from linerate.report.panels.svg import draw
from linerate.report.panels.template import asset, style, template
from linerate.results import GivenStep, RunClosedError, RunDirectory, StepRecord, Validity, files
from linerate.results.facts import find_fact, label_of, show_fact
from linerate.results.histogram import LatencyHistogram
from linerate.results.sample import OPS

PAGE_BYTES_MAX = 1_450_000
_PACKAGE = "linerate.report.page"
_POINTS_ALL = 1_500
_POINTS_STEP = (40, 120)
_OPEN_STEPS_MAX = 6
_BRIEF_STEPS = 12


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What may go into a page.

    A page that still gets too large is made again with the next, smaller limits.
    """

    chart_bytes: int
    volume_rows: int
    steps: int
    events: int
    workload_characters: int


_LIMITS = (
    PageLimits(chart_bytes=850_000, volume_rows=3_000, steps=200, events=400, workload_characters=60_000),
    PageLimits(chart_bytes=400_000, volume_rows=1_500, steps=100, events=200, workload_characters=20_000),
    PageLimits(chart_bytes=100_000, volume_rows=0, steps=20, events=50, workload_characters=5_000),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn chart with the words above it."""

    title: str
    note: str
    svg: Markup


@dataclass(slots=True)
class Budget:
    """Bytes of charts that may still be drawn, so that a page of any number of steps stays small."""

    left: int

    def figure(self, title: str, spec: charts.Spec, note: str = "") -> Figure | None:
        """Draw a chart, or None when the page is full."""
        if self.left <= 0:
            return None
        svg = draw(spec)
        self.left -= len(svg)
        return Figure(title, note, Markup(svg))


@dataclass(frozen=True, slots=True)
class StepPage:
    """One step as the template shows it."""

    summary: StepSummary
    record: StepRecord
    what: str
    limit: str
    figures: list[Figure]
    facts: list[tuple[str, str]]
    volumes: Sequence[PartSummary]
    volumes_left_out: int
    charts_left_out: bool
    paths: PathsPanel | None = None
    path_figures: Sequence[Figure] = ()
    arrays: ArrayPanel | None = None
    array_figures: Sequence[Figure] = ()
    opened: bool = field(default=True)


def write_report(run: RunDirectory, path: Path | None = None) -> Path:
    """Write the report of a run and return its path.

    Without `path` it goes to `report.html` in the run directory; `RunClosedError` when that exists already,
    for then it belongs to the closed run: give another path. Raises HostError where it cannot be written.
    """
    target = path or run.path / files.REPORT
    if path is None and target.exists():
        raise RunClosedError(
            f"{target} exists and belongs to a closed run", hint="give another path for the report"
        )
    files.write_result(target, render_report(run).encode())
    return target


def render_report(run: RunDirectory) -> str:
    """The page as text, under `PAGE_BYTES_MAX` bytes unless even the summary of its steps is longer."""
    summaries = summarise(run)
    validity = run.manifest.validity or check_run(run, summaries)
    page = ""
    for limits in _LIMITS:
        page = _render(run, summaries, validity, limits)
        if len(page.encode()) <= PAGE_BYTES_MAX:
            break
    return page


def _render(
    run: RunDirectory, summaries: Sequence[StepSummary], validity: Validity, limits: PageLimits
) -> str:
    budget = Budget(limits.chart_bytes)
    workload = run.manifest.workload
    found = [(summary, bottleneck(run, summary)) for summary in summaries]
    events = list(event_rows(run.events))
    by_size = size_lines(summaries)
    sizes = _size_figures(by_size, budget, computed=_is_computed(run))
    in_lines = {step.step for steps in by_size.values() for step in steps}
    # A line over sizes is not one over loads: it has no knee.
    responses = _response_figures([step for step in summaries if step.step not in in_lines], budget)
    pages = list(_step_pages(run, found[: limits.steps], budget, limits))
    return template(_PACKAGE, "report.html.j2").render(
        run=run,
        manifest=run.manifest,
        state=run.state,
        validity=validity,
        findings=figures.grouped_findings(validity.findings, len(run.manifest.steps)),
        headline=headline(summaries, run.state),
        faults_said=faults_said([fault for step in pages if step.paths for fault in step.paths.faults]),
        limit=bottleneck_of_run(found) if found else "",
        columns=tables.result_columns(summaries),
        paced=any(summary.paced for summary in summaries),
        limit_each=len(summaries) > 1,
        rows=tables.result_rows(summaries),
        sizes=sizes,
        responses=responses,
        steps=pages,
        steps_left_out=max(len(summaries) - limits.steps, 0),
        environment=_environment(run),
        events=_shortened(events, limits.events),
        events_left_out=max(len(events) - limits.events, 0),
        workload_text=workload.text[: limits.workload_characters],
        workload_cut=len(workload.text) > limits.workload_characters,
        style=Markup(style()),
        script=Markup(asset(_PACKAGE, "page.js")),
    )


def _step_pages(
    run: RunDirectory, found: Sequence[tuple[StepSummary, Bottleneck]], budget: Budget, limits: PageLimits
) -> Iterator[StepPage]:
    smallest, largest = _POINTS_STEP
    points = min(largest, max(smallest, _POINTS_ALL // max(len(found), 1)))
    rows_each = limits.volume_rows // max(len(found), 1)
    brief = len(found) > _BRIEF_STEPS
    for summary, limited in found:
        record = run.step(summary.step)
        panel = paths_panel(run, summary.step, points, brief=brief)
        drawn = _step_figures(run, summary, points, budget, brief=brief)
        of_paths = [budget.figure(title, spec, note) for title, spec, note in panel.charts] if panel else []
        disks = array_panel(run, summary.step, points, brief=brief)
        of_disks = [budget.figure(title, spec, note) for title, spec, note in disks.charts] if disks else []
        slowest_first = sorted(summary.volumes, key=lambda volume: -measured(volume.total.mean_ms))
        shown = summary.volumes if len(slowest_first) <= rows_each else slowest_first[:rows_each]
        yield StepPage(
            summary=summary,
            record=record,
            what=describe_load(record.given) if record.given else describe_streams(record.spec),
            limit=limited.sentence,
            figures=drawn,
            paths=panel,
            path_figures=[figure for figure in of_paths if figure],
            arrays=disks,
            array_figures=[figure for figure in of_disks if figure],
            facts=_usage_facts(summary, computed=record.facts.get("driver") == "virtual"),
            volumes=shown,
            volumes_left_out=len(slowest_first) - len(shown),
            charts_left_out=budget.left <= 0,
            opened=len(found) <= _OPEN_STEPS_MAX,
        )


def _step_figures(
    run: RunDirectory, summary: StepSummary, points: int, budget: Budget, *, brief: bool
) -> list[Figure]:
    """The charts of a step; `brief` leaves out those that repeat what others show."""
    step = summary.step
    rates = series.rates(run, step, points)
    if not any(point["iops"] for point in rates):
        return []
    warmup_end_s = series.warmup_end_s(run, step)
    band = "warm-up is shaded" if warmup_end_s else ""
    found = [
        budget.figure("i/o rate over time", charts.rate_chart(rates, "iops", "IOPS", warmup_end_s), band)
    ]
    if not brief:
        found.append(
            budget.figure(
                "MB/sec over time", charts.rate_chart(rates, "mib_s", "MB/s", warmup_end_s), "MB = 2^20 bytes"
            )
        )
    found += _latency_figures(run, summary, points, budget, brief=brief)
    cpu = series.cpu_over_time(run, step, points)
    if cpu and not brief:
        found.append(
            budget.figure("cpu% over time", charts.cpu_chart(cpu), "load: the load generator's own share")
        )
    return [figure for figure in found if figure]


def _latency_figures(
    run: RunDirectory, summary: StepSummary, points: int, budget: Budget, *, brief: bool
) -> list[Figure | None]:
    step = summary.step
    over_time = series.latency_over_time(run, step, points)
    if not over_time:
        return []
    times = "response time, from the intended start" if summary.paced else "service time"
    found = [budget.figure("resp over time", charts.latency_chart(over_time), f"{times}; log scale")]
    by_op: list[tuple[str, LatencyHistogram]] = [
        (op, histogram) for op in OPS if (histogram := run.latency(step, op=op))
    ]
    response = run.latency(step, kind="response")
    curves = by_op
    note = "dashed: fewer than 100 I/Os beyond"
    if summary.paced and response and (service := run.latency(step)):
        curves, note = (
            [("service", service), ("response", response)],
            f"response counts from the intended start; {note}",
        )
    samples = [
        point for name, histogram in curves for point in series.percentile_curve(histogram, name, points // 3)
    ]
    found.append(budget.figure("resp by percentile", charts.percentile_chart(samples), note))
    if not brief:
        bars = charts.bars_chart(series.latency_bars(by_op))
        found.append(budget.figure("resp histogram", bars, "service time, log scale"))
    return found


def _response_figures(summaries: Sequence[StepSummary], budget: Budget) -> list[Figure]:
    """The curves that a sweep is run for, one chart per workload."""
    found = []
    for name, points in response_curves(summaries).items():
        spec = charts.response_chart(points, THRESHOLD_MS)
        note = (
            "ring: knee"
            if any(point["knee"] for point in points)
            else "no knee between the first and last point"
        )
        found.append(budget.figure(f"{name}: response time against i/o rate", spec, note))
    return [figure for figure in found if figure]


def _size_figures(
    lines: Mapping[str, Sequence[StepSummary]], budget: Budget, *, computed: bool
) -> list[Figure]:
    """Rates and CPU cost against I/O size; in virtual time (`computed`) no CPU had a part in it."""
    if not lines:
        return []
    points, unit = size_points(lines)
    found = [
        budget.figure("MB/sec against size", charts.size_chart(points, "mib_s", "MB/s"), "MB = 2^20 bytes"),
        budget.figure("i/o rate against size", charts.size_chart(points, "iops", "IOPS")),
    ]
    if not computed:
        note = "CPU time of the load; lower is better"
        found.append(budget.figure(f"{unit} against size", charts.size_chart(points, "cpu", unit), note))
    return [figure for figure in found if figure]


def _is_computed(run: RunDirectory) -> bool:
    return any(record.facts.get("driver") == "virtual" for record in run.manifest.steps)


def _usage_facts(summary: StepSummary, *, computed: bool) -> list[tuple[str, str]]:
    """The CPU and TCP panel: what the I/O cost, and what held the connections back.

    In virtual time (`computed`) no CPU and no connection had a part in it.
    """
    usage = summary.usage
    asked = f" of {summary.queue_depth_asked} asked for" if summary.queue_depth_asked else ""
    shown = [("queue depth achieved", f"{figures.decimal(summary.queue_depth)}{asked}")]
    used = [
        ("cpu% sys+u", figures.percent(usage.cpu_busy_percent)),
        ("cpu% sys", figures.percent(usage.cpu_system_percent)),
        ("CPUs used by the load", figures.decimal(usage.load_cores, 2)),
        ("CPU per I/O", f"{figures.significant(usage.cpu_us_per_io)} us"),
        ("cycles per byte, load", figures.significant(usage.cycles_per_byte)),
        ("cycles per byte, host", figures.significant(usage.host_cycles_per_byte)),
        ("TCP retransmits", figures.count(usage.retransmits)),
        ("waited for the array's window", f"{figures.percent(usage.rwnd_limited_percent)} % of busy time"),
        ("waited for the send buffer", f"{figures.percent(usage.sndbuf_limited_percent)} % of busy time"),
        ("TCP round trip", f"{figures.significant(usage.rtt_us_mean or None)} us"),
    ]
    if not computed:
        shown += used
    if usage.late_arrivals or usage.backlog_max:
        shown.append(
            ("late arrivals", f"{figures.count(usage.late_arrivals)}, backlog up to {usage.backlog_max}")
        )
    return [(name, value) for name, value in shown if not value.startswith(figures.NOTHING)]


def _environment(run: RunDirectory) -> list[tuple[str, list[tuple[str, str]]]]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, value in run.manifest.environment.items():
        fact = find_fact(key)
        groups.setdefault(fact.group if fact else "Other", []).append((label_of(key), show_fact(key, value)))
    versions = [(name, version) for name, version in run.manifest.versions.items()]
    return [*groups.items(), *([("Versions", versions)] if versions else [])]


def _shortened(events: list[EventRow], limit: int) -> list[EventRow]:
    half = limit // 2
    return events if len(events) <= limit else [*events[:half], *events[-half:]]


def describe_load(given: GivenStep) -> str:
    """What an imported step does, in the words of its tool."""
    return ", ".join(f"{name} {value}" for name, value in given.load.items())


def describe_streams(spec: dict[str, Any]) -> str:
    """What a step does, in vdbench's words: sizes, read and random percentage, volumes, threads."""
    parts = []
    for stream in spec.get("streams", ()):
        sizes = stream.get("sizes", {})
        if sizes.get("kind") == "range":
            transfer = f"{figures.size(sizes['min_bytes'])} to {figures.size(sizes['max_bytes'])}"
        else:
            transfer = " + ".join(
                figures.size(int(size)) + (f" ({share:g} %)" if share < 100 else "")
                for size, share in sizes.get("parts", ())
            )
        words = [
            transfer,
            f"{stream.get('read_percent', 100):g} % read",
            f"{stream.get('random_percent', 100):g} % random",
            plural(len(stream.get("volumes", ())), "volume"),
        ]
        if stream.get("share_percent") is not None:
            words.append(f"skew {stream['share_percent']:g} %")
        parts.append(f"{stream.get('name', '')}: " + ", ".join(word for word in words if word))
    depths = sorted({int(volume.get("outstanding", 0)) for volume in spec.get("volumes", ())})
    if depths:
        parts.append("threads " + " to ".join(str(depth) for depth in dict.fromkeys((depths[0], depths[-1]))))
    return "; ".join(parts)
