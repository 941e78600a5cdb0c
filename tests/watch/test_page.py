"""The page in headless Chromium: what it shows, and that it asks this server alone and logs no error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.results import RunDirectory, RunWriter, TimedEvent, WorkloadSource

from tests.support.samples.path_run import PathLoad, Way, make_path_run, write_path_step
from tests.support.samples.study_directory import make_study_directory
from tests.support.samples.synthetic import Clock
from tests.watch.browser import Tab, chromium
from tests.watch.conftest import Client, served

WIDTHS = (1280, 800, 390)
STATE = "document.getElementById('state')?.textContent"
LINES = "document.querySelectorAll('#run-charts canvas').length"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as found:
        yield found


def _show(tab: Tab, client: Client, until: str, width: int = 1280, *, dark: bool = False) -> None:
    tab.requests.clear()
    tab.said.clear()
    tab.open(client.url, width=width, dark=dark)
    tab.until(until)


def _is_sound(tab: Tab, client: Client) -> None:
    """Nothing was said on the console, nothing was asked elsewhere, nothing is wider than the window."""
    assert tab.said == []
    assert tab.requests
    assert not [url for url in tab.requests if not url.startswith(f"http://127.0.0.1:{client.port}/")]
    wide = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    assert tab.value(f"{wide}.map(e => e.tagName + e.className + e.textContent.slice(0, 40))") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_run_is_shown_with_its_steps_charts_and_events(tab: Tab, tmp_path: Path, width: int) -> None:
    events = [TimedEvent(2.0, "path_lost", "<b>cable</b> of p0 was pulled", volume="vol1", path="p0")]
    ways = [Way("p0", [100] * 4 + [0] * 4 + [90], state="failed"), Way("p1", [100], 8.0)]
    run = make_path_run(tmp_path / "run", [PathLoad(ways, intervals=20, events=events)])
    with served(run.path) as client:
        _show(tab, client, f"{STATE} === 'complete' && {LINES} >= 7", width, dark=width == 800)
        text = tab.text()
        for words in (
            "Throughput by path",
            "Response time",
            "99th percentile",
            "<b>cable</b> of p0 was pulled",
        ):
            assert words in text
        assert tab.value("location.search") == ""
        _is_sound(tab, client)


def test_a_click_on_a_step_shows_its_time_only(tab: Tab, path_run: RunDirectory) -> None:
    chosen = "document.querySelectorAll('#steps tr.chosen').length"
    with served(path_run.path) as client:
        _show(tab, client, f"{STATE} === 'complete' && {LINES} >= 7")
        for expected in (1, 0):
            tab.value("document.querySelectorAll('#steps tbody tr')[1].click()")
            assert tab.value(chosen) == expected
        _is_sound(tab, client)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_study_is_shown_with_its_comparisons(tab: Tab, tmp_path: Path, width: int) -> None:
    study = make_study_directory(tmp_path / "study", blocks=3)
    rows = "document.querySelectorAll('#comparisons tbody tr').length"
    with served(study.path) as client:
        _show(tab, client, f"{STATE} === 'complete' && {rows} === 8", width)
        text = tab.text()
        for words in (
            "NIC tuning (sample)",
            "block 3",
            "delayed ACK off",
            "no adapter here has an iSCSI offload",
        ):
            assert words in text
        assert tab.value("document.querySelectorAll('#comparisons line.present').length") == 8
        assert tab.value("document.querySelectorAll('#comparisons line.past').length") > 0
        _is_sound(tab, client)


@pytest.mark.long
def test_the_page_follows_a_run_from_before_its_start_to_its_end(tab: Tab, tmp_path: Path) -> None:
    place = tmp_path / "later"
    points = "document.querySelectorAll('#steps tbody tr').length"
    with served(place) as client:
        _show(tab, client, f"{STATE} === 'waiting'")
        with RunWriter.create(place, name="later", workload=WorkloadSource(name="w"), now=Clock()) as writer:
            tab.until(f"{STATE} === 'running'")
            write_path_step(writer, PathLoad([Way("p0")], intervals=3), Clock())
            tab.until(f"{points} === 1")
            writer.close("failed", "the array went away")
        tab.until(f"{STATE} === 'failed'")
        assert "the array went away" in tab.text()
        _is_sound(tab, client)
    tab.until("document.getElementById('connection').textContent.includes('has ended')")
    assert tab.said == []
