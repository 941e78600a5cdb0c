"""A SAN on the page without a lab: what its drawing, figures and paths say, and what is taken from recorded runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from linerate.results import RunWriter, WorkloadSource
from linerate.san import PAGE, Topology, drawing, load_topology, parse_fault
from linerate.study.directory import RUNS
from linerate.watch import DirectorySource
from linerate.watch.run.point import MIB
from linerate.watch.san.figures import san_update, traffic_update

from tests.support.samples.study_directory import make_study_directory
from tests.watch.browser import Tab, chromium
from tests.watch.conftest import kept, polled, served

FACTS = {"lab": "base-san-1", "fabric": "user"}


def _alive(topology: Topology, *faults: str) -> dict[str, bool]:
    told = san_update(topology, [parse_fault(fault) for fault in faults], lab="x").data
    return {path["name"]: path["is_alive"] for path in told["paths"]}


def _unplugged(topology: Topology, name: str) -> Topology:
    trunks = [trunk.model_dump() | {"link": {"up": trunk.name != name}} for trunk in topology.trunks]
    return Topology.model_validate(topology.model_dump() | {"trunks": trunks})


@pytest.mark.parametrize("fault", ["controller a1.A", "one_way a1.p0 from", "address a1.p0"])
def test_a_path_is_dead_where_its_links_stay_up_and_nothing_passes(fault: str) -> None:
    alive = _alive(load_topology("two-controllers"), fault)
    assert alive["h1.p0-a1.p0"] is False
    assert alive["h1.p0-a1.p2"] is True


def test_a_path_over_a_trunk_dies_with_the_trunk() -> None:
    topology = load_topology("two-sites")
    assert set(_alive(topology).values()) == {True}
    assert _alive(_unplugged(topology, "wan")) == {
        "h1.p0-a1.p0": True,
        "h1.p0-a2.p0": False,
        "h2.p0-a1.p0": False,
        "h2.p0-a2.p0": True,
    }


def test_figures_of_a_link_are_what_passed_between_two_readings() -> None:
    topology = load_topology("base-san")
    before = dict.fromkeys(_counters(0.0), 0.0)
    links = traffic_update(topology, before, _counters(2.0)).data["links"]
    assert set(links) == set(topology.links)
    assert links["h1.p0"] == {
        "sent_mib_s": 1.0,
        "received_mib_s": 10.0,
        "load_percent": 34.07,
        "drops": 1.0,
        "switch_drops": 2.0,
        "lost": 0.0,
        "new_drops": 3.0,
        "queue_bytes": None,
        "switch_queue_bytes": 4096.0,
    }


def _counters(clock_s: float) -> dict[str, float]:
    """20 MiB received and 2 MiB sent by each port, in 15,000 frames."""
    one = {
        "bytes_sent": 2.0 * MIB,
        "bytes_received": 20.0 * MIB,
        "frames_sent": 1_500.0,
        "frames_received": 13_500.0,
        "drops": 1.0,
        "switch_drops": 2.0,
        "switch_queue_bytes": 4096.0,
    }
    found = {
        f"port.{link}.{name}": value
        for link in load_topology("base-san").links
        for name, value in one.items()
    }
    return {**found, "machine.clock_s": clock_s}


@pytest.mark.parametrize("name", ["two-controllers", "two-sites", "converged"])
def test_each_link_of_the_drawing_has_a_curve_and_a_place_for_its_figures(name: str) -> None:
    topology = load_topology(name)
    drawn = drawing(topology, PAGE, dict.fromkeys(topology.links, ""))
    for tag in ("path", "text"):
        assert sorted(one.link for one in drawn.elements if one.tag == tag and one.link) == sorted(
            topology.links
        )


def _recorded(study: Path) -> Path:
    """A study whose last run counted what its links carried."""
    make_study_directory(study, blocks=1)
    path = study / RUNS / "099-b01-256k-seq-read-jumbo"
    writer = RunWriter.create(path, name="seqread", workload=WorkloadSource(name="seqread"))
    san: dict[str, Any] = {"san": "base-san", "case": "jumbo", "facts": FACTS}
    writer.begin_step("seqread", spec={}, facts={}, san=san)
    counters = {name.replace("queue_bytes", "queue_bytes_max"): one for name, one in _counters(2.0).items()}
    writer.end_step(counters=counters)
    writer.close("complete")
    return path


@pytest.mark.parametrize("of_the_run", [False, True], ids=["study", "run"])
def test_a_study_without_its_lab_shows_what_its_last_run_recorded(tmp_path: Path, of_the_run: bool) -> None:
    run = _recorded(tmp_path / "study")
    source = kept(DirectorySource(run if of_the_run else tmp_path / "study"))
    told = dict(polled(source))
    assert (told["san"]["recorded"], told["san"]["may_pull"]) == (run.name, False)
    assert "MTU 9000" in json.dumps(told["san"]["drawings"]["wide"])  # as this case had it
    assert told["traffic"]["links"]["h1.p0"]["switch_queue_bytes"] == 4096
    assert not {"san", "traffic"} & {kind for kind, _ in polled(source)}


def test_a_study_on_no_lab_shows_no_san(tmp_path: Path) -> None:
    make_study_directory(tmp_path / "study", blocks=1)
    assert "san" not in dict(polled(kept(DirectorySource(tmp_path / "study"))))


@pytest.mark.long
def test_a_recorded_san_is_drawn_and_has_no_cables_to_pull(tmp_path: Path) -> None:
    run = _recorded(tmp_path / "study")
    with served(tmp_path / "study") as client, chromium() as tab:
        tab.open(client.url)
        tab.until("document.querySelectorAll('#links tbody tr').length === 4")
        assert f"As run {run.name} recorded it" in tab.text()
        assert _texts(tab, "#san-wide text").count("10.0 MB/s, 34 %, 3 dropped") == 4
        assert tab.value("document.querySelectorAll('#san [role=button], #san button').length") == 0
        assert client.ask("/cable", "POST", b"{}", content_type="application/json").status == 404
        assert tab.said == []


def _texts(tab: Tab, selector: str) -> list[str]:
    return list(tab.value(f"[...document.querySelectorAll('{selector}')].map(e => e.textContent)"))
