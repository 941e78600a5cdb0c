"""A study on a real virtual SAN: settings are live, cases are compared, and nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import run_study

pytestmark = [pytest.mark.paced, pytest.mark.long]
STUDY = """\
title = "Jumbo frames on a slow line"

[[san]]
topology = "base-san"
fabric = "kernel"

[[workload]]
name = "seqread"
file = "dell-nic/256k-seq-read.vdb"
metric = "mib_s"
elapsed = "1.5s"
warm_up = "0.3s"

[baseline]
settings = { mtu = 1500, delayed_ack = "on", lso = "off" }

[[case]]
name = "jumbo"
settings = { mtu = 9000 }
claims = ["nic.jumbo.seqread"]

[[case]]
name = "narrow"
settings = { recv_buffer_bytes = "4k", load.volumes = 1, link.rate = "10gbit" }  # more than such a window fills

[[case]]
name = "paused"
settings = { flow_control = "on" }

[[case]]
name = "lso"
settings = { lso = "on" }

[repeat]
blocks_min = 1
blocks_max = 1
settle = "0s"
"""


FAULTS = """\
title = "A pulled cable"

[[san]]
topology = "two-controllers"
fabric = "kernel"

[[workload]]
name = "mixed"
file = "mpio/verified.toml"
metric = "iops"
elapsed = "3s"
warm_up = "0.5s"

[baseline]
settings = { mtu = 9000, multipath.paths = "one-to-one" }
faults = [{ cable = "h1.p0", at = "0.5s", for = "1s" }]

[[case]]
name = "quiet"
faults = []

[repeat]
blocks_min = 1
blocks_max = 1
baselines = 1
settle = "0s"
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of settings."""
    return run_study(tmp_path_factory.mktemp("virtual"), STUDY)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of faults."""
    return run_study(tmp_path_factory.mktemp("faults"), FAULTS)


def steps(done: Path) -> dict[str, dict[str, object]]:
    found = {}
    for path in (done / "runs").iterdir():
        step = json.loads((path / "manifest.json").read_bytes())["steps"][0]
        found[step["san"]["case"]] = step
    return found


def test_each_case_ran_with_its_settings_read_back(done: Path) -> None:
    ran = steps(done)
    assert set(ran) == {"baseline", "jumbo", "narrow"}
    sans = {case: step["san"] for case, step in ran.items()}
    assert sans["baseline"]["settings"] == {"mtu": 1500, "delayed_ack": True, "lso": False}  # type: ignore[index]
    assert sans["jumbo"]["settings"]["mtu"] == 9000  # type: ignore[index]
    assert sans["jumbo"]["facts"]["fabric"] == "kernel"  # type: ignore[index]


def test_frames_had_the_size_that_was_set(done: Path) -> None:
    for case, mtu in (("baseline", 1500), ("jumbo", 9000)):
        counters = steps(done)[case]["counters"]
        assert isinstance(counters, dict)
        moved = counters["port.h1.p0.bytes_received"] / counters["port.h1.p0.frames_received"]
        assert 0.8 * mtu < moved < 1.02 * mtu


def test_what_the_fabric_has_not_is_not_applicable_and_says_so(done: Path) -> None:
    from linerate.study import StudyDirectory

    lost = {case: reason for (_, case), reason in StudyDirectory.open(done).not_applicable.items()}
    assert set(lost) == {"paused", "lso"}
    assert "kernel fabric has no flow_control" in lost["paused"]
    assert "whole segments" in lost["lso"]


def test_the_array_says_that_it_waited_for_the_hosts_window(done: Path) -> None:
    from linerate.study import StudyDirectory

    verdicts = StudyDirectory.open(done).verdicts
    assert verdicts is not None
    limits = {item.case: item for item in verdicts.attributions}
    assert limits["narrow"].figures["array_rwnd_limited_percent"] > 50
    assert limits["baseline"].figures["array_rwnd_limited_percent"] < 30
    assert limits["narrow"].limit == "receive window"
    assert "The host's receive window was too small" in limits["narrow"].sentence


def test_the_runs_ended_in_verdicts_and_a_report(done: Path) -> None:
    from linerate.study import StudyDirectory

    verdicts = StudyDirectory.open(done).verdicts
    assert verdicts is not None
    assert [claim.claim for claim in verdicts.claims] == ["nic.jumbo.seqread"]
    assert "h1" in (done / "report.html").read_text()


def test_the_runs_know_the_rate_of_their_links(done: Path) -> None:
    sans = {case: step["san"] for case, step in steps(done).items()}
    rates = {case: san["line_rates_bits_per_s"]["h1.p0"] for case, san in sans.items()}  # type: ignore[index]
    assert rates == {"baseline": 250e6, "jumbo": 250e6, "narrow": 10e9}


def test_the_report_links_the_reports_of_its_runs(done: Path) -> None:
    page = (done / "report.html").read_text()
    written = list((done / "runs").glob("*/report.html"))
    assert written
    for report in written:
        assert f'href="runs/{report.parent.name}/report.html"' in page


def events(done: Path, case: str) -> list[dict[str, object]]:
    for path in (done / "runs").iterdir():
        if json.loads((path / "manifest.json").read_bytes())["steps"][0]["san"]["case"] == case:
            return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    raise AssertionError(f"no run of {case}")


def test_a_pulled_cable_stands_among_the_events_with_what_the_paths_did(broken: Path) -> None:
    told = events(broken, "baseline")
    first = {str(event["kind"]): event for event in reversed(told)}
    assert {"fault", "path_failed", "failover", "healed", "path_restored"} <= first.keys()
    at_s = {kind: float(str(event["at_s"])) for kind, event in first.items()}
    assert 1.0 <= at_s["fault"] <= at_s["path_failed"] <= at_s["failover"]
    assert at_s["fault"] + 0.9 <= at_s["healed"] <= at_s["path_restored"]
    assert first["fault"]["message"] == "cable h1.p0"
    assert first["path_failed"]["path"] == "h1.p0-a1.p0"
    assert not {"fault", "path_failed"} & {str(event["kind"]) for event in events(broken, "quiet")}


def test_the_application_sees_no_error_and_goes_on_over_the_other_path(broken: Path) -> None:
    from linerate.study import StudyDirectory

    (step,) = (step for step in StudyDirectory.open(broken).steps if step.case == "baseline")
    assert step.state == "complete", step.reason
    figures = step.values
    assert (figures["io_errors"], figures["paths_down"]) == (0, 0)
    assert figures["failover_s"] < 1.5


PAIR = """\
name = "pair"
fabric = "kernel"

[link]
rate = "100mbit"

[[switch]]
name = "sw1"

[[host]]
name = "h"
count = 2
port = [{ name = "p0", switch = "sw1" }]

[[array]]
name = "a1"
port = [{ name = "p0", switch = "sw1" }]
volume = [{ name = "v", size = "16m", count = 2 }]
"""
HOSTS = """\
title = "Two hosts"

[[san]]
topology = "pair.toml"

[[workload]]
name = "read"
file = "load.toml"
elapsed = "1s"
warm_up = "0.2s"
WORKLOAD

[baseline]
settings = { BASELINE }

[[case]]
name = "other"
settings = { CASE }

[repeat]
settle = "0s"
"""
LOAD = """\
[[volume]]
name = "v{n}"
count = COUNT
target = "null:1m"
outstanding = 4

[[stream]]
name = "read"
size = "8k"
"""


def carried_out_of_hosts(done: Path) -> dict[str, set[str]]:
    """Case -> the ports of hosts that moved most of the bytes of a run."""
    found: dict[str, set[str]] = {}
    for path in (done / "runs").iterdir():
        step = json.loads((path / "manifest.json").read_bytes())["steps"][0]
        counters = step["counters"]
        moved = {host: counters[f"port.{host}.p0.bytes_received"] for host in ("h1", "h2")}
        found.setdefault(step["san"]["case"], set()).update(
            host for host, count in moved.items() if count > 0.2 * max(moved.values())
        )
    return found


def test_cases_differ_in_the_host_that_makes_the_load(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(PAIR)
    (tmp_path / "load.toml").write_text(LOAD.replace("COUNT", "2"))
    text = HOSTS.replace("WORKLOAD", 'metric = "iops"').replace("BASELINE", 'load.host = "h1"')
    text = text.replace("CASE", 'load.host = "h2"').replace(
        "[repeat]", "[repeat]\nblocks_min = 1\nblocks_max = 1"
    )
    assert carried_out_of_hosts(run_study(tmp_path, text)) == {"baseline": {"h1"}, "other": {"h2"}}


def test_hosts_are_an_axis_of_a_search(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(PAIR)
    (tmp_path / "load.toml").write_text(LOAD.replace("COUNT", "4"))
    text = HOSTS.replace("WORKLOAD", "").replace("BASELINE", 'delayed_ack = "on"')
    text = text.replace("CASE", 'delayed_ack = "off"')
    text += '\n[scale]\nover = "hosts"\nuntil = "mean=2s"\nrepeats = 2\ndown = false\nheadroom = false\n'
    done = run_study(tmp_path, text)
    in_use = {}
    for path in (done / "runs").iterdir():
        step = json.loads((path / "manifest.json").read_bytes())["steps"][0]
        in_use.setdefault(path.name.rpartition("-")[2], set()).update(
            volume["netns"] for volume in step["spec"]["volumes"]
        )
    assert {load: len(namespaces) for load, namespaces in in_use.items()} == {"1": 1, "2": 2}
