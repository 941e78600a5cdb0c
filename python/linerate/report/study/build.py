"""Renders the page of a study: the view model in, one self-contained HTML text out; and writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from linerate.analysis.verdict import METRICS, VERDICTS, Effect
from linerate.quantity import duration_text
from linerate.report import figures
from linerate.report.panels.scale import ScalePanel, SearchShown, scale_panel
from linerate.report.panels.svg import draw
from linerate.report.panels.template import asset, style, template
from linerate.report.study import bars, words
from linerate.report.study.carried import carried
from linerate.report.study.disks import DisksTable, disks_table
from linerate.report.study.drift import drift_chart
from linerate.report.study.gather import study_page
from linerate.report.study.model import CasePart, StudyPage, WorkloadPart
from linerate.report.study.runs import run_links
from linerate.report.study.short import headline, short_rows
from linerate.results import files
from linerate.study import StudyDirectory
from linerate.study.directory import REPORT

PAGE_BYTES_MAX = 1_450_000
_PACKAGE = "linerate.report.study"
_FILTERS = {
    "change": words.change,
    "bounds": words.bounds,
    "relative": words.percent,
    "p": words.probability,
    "value": words.value,
    "detectable": words.detectable,
    "interval": words.interval,
    "duration": duration_text,
}
COSTS = {
    "lan_mib_s": "LAN, MB/s",
    "iscsi_share_percent": "iSCSI share, %",
    "backup_s": "seconds",
    "wire_mbit_s": "on the wire, Mbit/s",
    "gb_per_hour": "GB per hour",
    "response_ms": "resp, ms",
    "p99_ms": "p99, ms",
    "retransmit_percent": "retransmits, %",
    "host_cpu_percent": "host CPU, %",
    "array_cpu_percent": "array CPU, %",
}
"""What is shown beside the metric that decides; what was not measured is left out."""
_DRAWN = ("lan_mib_s", "iscsi_share_percent", "retransmit_percent", "host_cpu_percent", "array_cpu_percent")
_POINTLESS = {"lan_mib_s": "iscsi_share_percent"}  # LAN traffic alone has nothing to share the line with
RunLinks = Mapping[tuple[str, str], str]
"""(case, workload) -> the address of a run report."""
_CLAIMS = ("differs", "agrees in part", "agrees", "not tested", "needs hardware")


@dataclass(frozen=True, slots=True)
class CostCell:
    """One cost of one case: its figure, its bar, and the verdict on it where it was judged."""

    shown: str
    bar: Markup
    verdict: str


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload as the template shows it: every row with its drawing."""

    part: WorkloadPart
    margin: str
    axis: Markup
    rows: list[tuple[CasePart, Effect, Markup]]
    cost_names: list[str]
    costs: list[tuple[CasePart, list[CostCell], str]]
    attributed: bool
    disks: DisksTable | None
    drift: Markup | None
    scale: ScalePanel | None = None
    """Of a study with [scale], the searches of all cases."""
    floor: float | None = None
    """The smallest change that these blocks detect, in percent."""
    scatter: float | None = None
    """Standard deviation of one comparison of the baseline with itself, in percent."""


def write_study_report(directory: StudyDirectory, path: Path | None = None) -> Path:
    """Write the report of a study, by default into its directory, where it takes the place of an earlier one.

    Raises HostError where it cannot be written.
    """
    target = path or directory.path / REPORT
    links = run_links(directory, target)
    files.write_result(target, render_study(study_page(directory), links).encode())
    return target


def render_study(page: StudyPage, links: RunLinks | None = None) -> str:
    """The page as text, under `PAGE_BYTES_MAX` bytes: one too large loses its charts by block, then its path tables.

    `links` are the addresses of run reports.
    """
    text = ""
    for drift, paths in ((True, True), (False, True), (False, False)):
        text = _render(page, links or {}, drift=drift, paths=paths)
        if len(text.encode()) <= PAGE_BYTES_MAX:
            break
    return text


def _render(page: StudyPage, links: RunLinks, *, drift: bool, paths: bool) -> str:
    findings = [
        (group.finding, words.where(group, page.runs))
        for group in figures.grouped_findings(page.validity.findings)
    ]
    return template(_PACKAGE, "study.html.j2", *_FILTERS.items()).render(
        page=page,
        headline=headline(page),
        short=list(short_rows(page)),
        each_path=paths,
        carried=carried(page),
        links=links,
        counts=verdict_counts(page),
        doubts=[(finding, where) for finding, where in findings if finding.severity != "note"],
        notes=[(finding, where) for finding, where in findings if finding.severity == "note"],
        sourced=any(case.source for case in page.cases),
        topologies=[(caption, Markup(svg)) for caption, svg in page.topologies],
        metrics=" and ".join(dict.fromkeys(part.metric.label for part in page.workloads)),
        views=[_view(page, part, drift=drift) for part in page.workloads],
        claims=sorted(page.claims, key=lambda claim: _CLAIMS.index(claim.verdict)),
        style=Markup(style() + asset(_PACKAGE, "study.css")),
    )


def verdict_counts(page: StudyPage) -> list[tuple[str, int]]:
    """How many pairs of case and workload got each verdict; a case that could not run counts once."""
    counts: Counter[str] = Counter(effect.verdict for effect in page.judgement.primary())
    shown = [(word, counts[word]) for word in VERDICTS]
    return [(word, count) for word, count in (*shown, ("not applicable", len(page.not_applicable))) if count]


def _view(page: StudyPage, part: WorkloadPart, *, drift: bool) -> WorkloadView:
    effects = list(page.effects(part.name))
    margin = page.margin_of(part)
    scale = bars.Scale.over([effect for _, effect in effects], margin)
    chart = drift_chart(page, part) if drift and page.blocks > 1 else None
    noise = page.judgement.floor(part.name, part.metric.name)
    floor = noise if noise is not None and noise.scale == "ratio" else None
    tops = {
        metric: bars.largest(page.typical(case.name, part.name, metric) for case in page.cases)
        for metric in COSTS
        if metric not in (part.metric.name, _POINTLESS.get(part.metric.name))
        and any(page.typical(case.name, part.name, metric) is not None for case in page.cases)
    }
    costs = list(_costs(page, part, tops))
    return WorkloadView(
        part=part,
        margin=f"{margin:g} {part.change_unit}",
        axis=bars.axis(scale, "%" if part.change_unit == "%" else ""),
        rows=[
            (case, effect, bars.row(effect, scale, margin, floor.detectable if floor else None))
            for case, effect in effects
        ],
        cost_names=[COSTS[metric] for metric in tops],
        costs=costs,
        attributed=any(sentence for *_, sentence in costs),
        disks=disks_table(page, part),
        drift=Markup(draw(chart)) if chart else None,
        scale=_scale(page, part),
        floor=floor.detectable if floor else None,
        scatter=floor.spread if floor else None,
    )


def _scale(page: StudyPage, part: WorkloadPart) -> ScalePanel | None:
    shown = [
        SearchShown(one.case.title, one.scale.over, one.scale.until, one.procedure)
        for one in page.searches
        if one.workload.name == part.name
    ]
    return scale_panel(shown) if shown else None


def _costs(
    page: StudyPage, part: WorkloadPart, tops: Mapping[str, float]
) -> Iterator[tuple[CasePart, list[CostCell], str]]:
    """Per case its costs and what held it back. `tops`: the largest value of each metric that was measured."""
    for case in page.cases:
        cells = []
        for metric, top in tops.items():
            value = page.typical(case.name, part.name, metric)
            effect = page.judgement.effect(case.name, part.name, metric)
            drawing = bars.share(value, top) if metric in _DRAWN else Markup("")
            shown = words.number(value, METRICS[metric]) if metric in METRICS else words.small(value)
            cells.append(CostCell(shown, drawing, effect.verdict if effect else ""))
        sentence = page.attribution(case.name, part.name)
        if sentence or any(cell.shown != figures.NOTHING for cell in cells):
            yield case, cells, sentence
