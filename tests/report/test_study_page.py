"""The page of a study: complete, self-contained, escaped; its rows drawn to scale. All figures are made up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from linerate.report.panels.svg import draw
from linerate.report.study import StudyPage, bars, build, render_study, words
from linerate.report.study.drift import drift_chart
from linerate.report.study.short import headline, short_rows

from tests.report.test_page import Page, assert_self_contained
from tests.support.samples.study_page import BLOCKS, CASES, WORKLOADS, sample_page

SIZE_MAX = 1_500_000
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def rendered(page: StudyPage) -> tuple[str, Page]:
    text = render_study(page)
    assert len(text.encode()) < SIZE_MAX
    assert_self_contained(text)
    return text, Page(text)


def test_the_page_tells_the_study() -> None:
    text, page = rendered(sample_page())
    for words_of_the_page in (
        "8K random, 67 % read",
        "baseline: jumbo frames, largest buffers",
        "receive-window auto-tuning off",
        "not applicable: no NIC here has a TCP offload engine",
        "other programs used 7.1 % of the CPUs",
        "MTU (mtu)",
        "nic.interrupt_moderation.off",
        "needs hardware",
        "The link: 99 % of line rate",
        "Only changes of more than 12 % could be found this way.",
        "largest lag 0.21 ms",
        "margin of 5 %",
        "permutation, 6 blocks",
    ):
        assert words_of_the_page in page.text, words_of_the_page
    assert ("span", {"class": "stamp caution"}) in page.tags
    assert text.count('<svg class="row"') == (len(CASES) - 1) * len(WORKLOADS)
    assert "#fe00" not in text


def test_every_verdict_of_the_table_stands_in_a_chart_too() -> None:
    text, _ = rendered(sample_page())
    for effect in sample_page().judgement.primary():
        shown = words.change(effect)
        assert text.count(f'<b class="{effect.verdict}">{shown}</b>') >= 1
        assert f"<td><b>{shown}</b>" in text


def test_names_cannot_inject() -> None:
    text, page = rendered(sample_page(evil=EVIL))
    assert "<script" not in text
    assert page.count("img") == 0
    assert EVIL in page.text


def test_a_study_without_results_has_a_page() -> None:
    page = sample_page()
    empty = replace(
        page,
        state="interrupted",
        reason="interrupted before the first block was done",
        observations=(),
        attributions=(),
        judgement=replace(page.judgement, effects=(), noise_floor=()),
        recommendations=(),
        claims=(),
    )
    _, shown = rendered(empty)
    assert "interrupted before the first block was done" in shown.text
    assert "no setting was shown to help" in shown.text


@pytest.mark.long
def test_a_large_study_still_fits() -> None:
    page = sample_page()
    parts = page.workloads * 8
    _, shown = rendered(replace(page, workloads=parts))
    assert shown.text.count("results by block") <= len(parts)


@pytest.mark.long
def test_a_page_that_would_be_too_large_leaves_the_blocks_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "PAGE_BYTES_MAX", 1000)
    assert "results by block" not in render_study(sample_page())


def test_a_row_is_drawn_to_scale() -> None:
    page = sample_page()
    effects = [effect for _, effect in page.effects("256k-seq-read")]
    scale = bars.Scale.over(effects, page.margin_percent)
    effect = next(effect for effect in effects if effect.case == "no-autotuning")
    drawn = str(bars.row(effect, scale, page.margin_percent))
    found = re.search(r'bar worse" x="([\d.]+)%" y="-5" width="([\d.]+)%"', drawn)
    assert found is not None
    start, width = (float(place) for place in found.groups())
    assert start + width == pytest.approx(scale.place(0), abs=0.02)
    whole = scale.place(10) - scale.place(0)
    assert width / whole == pytest.approx(-effect.change / 10, abs=0.01)
    assert drawn.count('class="dot"') == BLOCKS


def test_a_scale_holds_all_and_never_magnifies_noise() -> None:
    page = sample_page()
    quiet = [effect for _, effect in page.effects("8k-random") if effect.case == "jumbo"]
    scale = bars.Scale.over(quiet, page.margin_percent)
    assert scale.low <= -10
    assert scale.high >= 10
    assert 0 in scale.ticks()
    loud = [replace(quiet[0], estimate=5.0, low=0.2, high=90.0, points=((1, 5.0),))]
    scale = bars.Scale.over(loud, page.margin_percent)
    assert scale.high <= 100
    assert "&#9656;" in str(bars.row(loud[0], scale, page.margin_percent))


@pytest.mark.parametrize(
    ("percent", "written"),
    [(5.14, "+5.1 %"), (-0.04, "0.0 %"), (0.0, "0.0 %"), (-99.96, "-100 %"), (251.2, "+251 %"), (None, "-")],
)
def test_changes_are_written_with_the_digits_they_deserve(percent: float | None, written: str) -> None:
    assert words.percent(percent) == written


@pytest.mark.parametrize(
    ("value", "written"), [(0.0, "0"), (0.0123, "0.012"), (0.11, "0.11"), (40.27, "40.3")]
)
def test_small_shares_keep_their_digits(value: float, written: str) -> None:
    assert words.small(value) == written


def test_the_chart_of_blocks_is_valid_and_knows_the_baseline() -> None:
    page = sample_page()
    spec = drift_chart(page, page.workloads[0])
    assert spec is not None
    alt.Chart.from_dict(spec, validate=True)
    band, _, baseline, strips = spec["layer"]
    floor = page.judgement.floor("8k-random", "iops")
    assert floor is not None
    assert band["data"]["values"] == [{"low": -(floor.spread or 0), "high": floor.spread}]
    assert {point["case"] for point in baseline["data"]["values"]} == {"baseline"}
    first = strips["data"]["values"][0]["say"].splitlines()
    assert first[0] == "block 1"
    assert first[1].startswith("baseline: jumbo frames, largest buffers: ")
    assert first[1].endswith(" % off its mean")
    drawn = draw(spec)
    assert drawn.count("<title>block ") == BLOCKS


def test_the_page_begins_with_the_short_answer() -> None:
    text, _ = rendered(sample_page())
    rows = dict(short_rows(replace(sample_page(), place="out", blocks_planned=20)))
    assert headline(sample_page()).startswith(
        "Best: 8K random, 67 % read: interrupt moderation off, i/o rate +6.8 %"
    )
    assert rows["compared"] == (
        '8 cases against "baseline: jumbo frames, largest buffers", 3 workloads, 6 blocks',
    )
    assert len(rows["best"]) == len(WORKLOADS)
    assert "256K sequential read: no case is shown to be better" in rows["best"][1]
    assert rows["largest loss"][0].startswith("8K random, 67 % read: Nagle's algorithm on, i/o rate -9")
    assert rows["how sure"][-1] == "result: valid with cautions, 1 doubt (see below)"
    assert any("smallest detectable change: " in line for line in rows["how sure"])
    assert rows["limit now"] == (
        "256K sequential read (baseline: jumbo frames, largest buffers): "
        "The link: 99 % of line rate, load host CPU 31 % busy.",
    )
    assert rows["change"][0] == "MTU (mtu): 9000 instead of 1500"
    assert rows["next"] == ("linerate study check out (is the result reliable)",)
    assert text.index('id="short"') < text.index('id="verdicts"')


def test_bars_show_the_noise_floor_inside_of_the_scale() -> None:
    page = sample_page()
    effect = next(effect for _, effect in page.effects("8k-random"))
    scale = bars.Scale.over([effect], page.margin_percent)
    assert str(bars.row(effect, scale, page.margin_percent, 1.5)).count('class="floor"') == 2
    assert 'class="floor"' not in str(bars.row(effect, scale, page.margin_percent, 1e6))
    assert "noise floor: smallest detectable change" in rendered(page)[1].text


def test_light_dark_and_paper_each_have_every_colour_of_the_verdicts() -> None:
    style = (Path(build.__file__).parent / "study.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(blocks) == 3
    names = [set(re.findall(r"--(\w+):", block)) for block in blocks]
    assert names[0] == names[1] == names[2]
