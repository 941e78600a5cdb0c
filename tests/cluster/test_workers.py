"""Real worker processes on this machine: one run directory from two hosts, a host that dies, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.cluster import Cluster, Endpoint, divide, local_endpoint
from linerate.errors import HostError, LinerateError
from linerate.results import WorkloadSource
from linerate.run import Execution, RunEvent, carry_out
from linerate.volumes import Consent, RefusedError, clear
from linerate.workload.toml_file import parse_toml

from tests.support.cleared import Loads, cleared

# Dask leaves some closing to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.timeout(240)]

WORKLOAD = """\
name = "pair"
warm_up = 0.4
elapsed = 1.2
interval = 0.4

[[volume]]
name = "v1"
target = "null:1g"
outstanding = 4

[[stream]]
name = "reads"
size = "4k"
rate = 400
"""


@pytest.fixture(scope="module")
def spools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the workers keep what they measure until it was fetched."""
    folder = tmp_path_factory.mktemp("spools")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def cluster(spools: Path) -> Iterator[Cluster]:
    """One for all tests, since each worker takes seconds to load its libraries. h3 is there to be lost."""
    with Cluster([local_endpoint("h1"), local_endpoint("h2"), local_endpoint("h3")]) as made:
        yield made


def _on(cluster: Cluster, *hosts: str) -> Loads:
    """Starts a run on some of its hosts."""
    return Loads(lambda run: cluster.start_parts(divide(run.spec, hosts), run))


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_plan_runs_on_two_hosts_into_one_run_directory(
    cluster: Cluster, spools: Path, tmp_path: Path
) -> None:
    plan = parse_toml(WORKLOAD, "pair.toml", name="pair")
    told: list[RunEvent] = []
    source = WorkloadSource(name="pair.toml", text=WORKLOAD)
    outcome = carry_out(
        Execution(plan, source, tmp_path / "run", Consent.nothing(), loader=_on(cluster, "h1", "h2")),
        told.append,
    )
    assert (outcome.state, outcome.reason) == ("complete", "")
    step = summarise(outcome.run)[0]
    assert step.total.iops == pytest.approx(400, rel=0.4)  # of both together, not of each
    record = outcome.run.manifest.steps[0]
    assert [volume["name"] for volume in record.spec["volumes"]] == ["h1/v1", "h2/v1"]
    assert {volume["name"] for volume in record.facts["volumes"]} == {"h1/v1", "h2/v1"}
    for clock in record.facts["cluster"].values():  # one machine: the true offset is zero
        assert abs(clock["clock_offset_ns"]) <= clock["clock_uncertainty_ns"]
    assert list(spools.glob("linerate-spool-*")) == []


def test_every_host_looks_at_what_it_would_overwrite(cluster: Cluster, spools: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"precious" * 1000)
    writes = WORKLOAD.replace("null:1g", str(data)).replace('size = "4k"', 'size = "4k"\nread = 50')
    plan = parse_toml(writes, "pair.toml", name="pair")
    source = WorkloadSource(name="pair.toml", text=writes)
    for consent, message in (
        (Consent.nothing(), r"h1: v1  .*data of unknown kind"),
        (Consent.of(["v2"]), "h3: v1"),
    ):
        execution = Execution(plan, source, tmp_path / "run", consent, loader=cluster)
        with pytest.raises(RefusedError, match=message):
            carry_out(execution, lambda event: None)
    assert not (tmp_path / "run").exists()
    assert data.read_bytes() == b"precious" * 1000
    looks = clear([step.spec for step in plan.steps()], cluster.look, Consent.of(["v1"])).looks
    assert {(look.host, look.volume) for look in looks} == {(host, "v1") for host in cluster.hosts}


def test_a_host_that_dies_degrades_the_result_and_keeps_its_spool(cluster: Cluster, spools: Path) -> None:
    plan = parse_toml(WORKLOAD.replace("elapsed = 1.2", "elapsed = 3.2"), "pair.toml", name="pair")
    load = _on(cluster, "h1", "h3").start(cleared(next(iter(plan.steps())).spec))
    while load.next_interval(1.0) is None:
        pass
    os.kill(cluster.worker_pids["h3"], signal.SIGKILL)
    killed = time.monotonic()
    events = []
    noticed_s = 0.0
    while not load.finished:
        interval = load.next_interval(0.2)
        if load.lost and not noticed_s:
            noticed_s = time.monotonic() - killed
        events += interval.events if interval is not None else ()
    end = load.finish()
    assert end.error is None
    assert noticed_s < 10.0
    assert [event.kind for event in events] == ["host_lost"]
    assert {row.volume for row in end.total.rows} == {"h1/v1"}
    (kept,) = spools.glob("linerate-spool-*/*/run*-h3")
    assert (kept / "intervals.spool").stat().st_size > 0


def test_nothing_is_left_when_the_gathering_machine_dies(spools: Path) -> None:
    program = (
        "import signal\n"
        "from linerate.cluster import Cluster, local_endpoint\n"
        "cluster = Cluster([local_endpoint('h1')])\n"
        "print(cluster.worker_pids['h1'], flush=True)\n"
        "signal.pause()\n"
    )
    before = set(spools.glob("linerate-worker-*"))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        worker = int(driver.stdout.readline())
        assert not _ended(worker)
        driver.kill()
    until = time.monotonic() + 30
    while not _ended(worker):
        assert time.monotonic() < until, "the worker outlived its parent"
        time.sleep(0.05)
    assert set(spools.glob("linerate-worker-*")) == before


def test_a_host_without_linerate_is_named() -> None:
    broken = Endpoint("h9", lambda _: [sys.executable, "-c", "raise SystemExit('no module named linerate')"])
    with pytest.raises(HostError, match="host h9: the worker did not start: no module named linerate"):
        Cluster([broken])


def test_an_unreachable_volume_fails_the_step_with_the_host(cluster: Cluster) -> None:
    plan = parse_toml(WORKLOAD.replace("null:1g", "file:/nonexistent/volume"), "pair.toml", name="pair")
    with pytest.raises(LinerateError, match=r"host h[12]: volume h[12]/v1"):
        _on(cluster, "h1", "h2").start(cleared(next(iter(plan.steps())).spec))


def test_an_address_that_this_machine_lacks_is_told() -> None:
    with pytest.raises(HostError, match=r"cannot listen on 192\.0\.2\.1: "):
        Cluster([local_endpoint("h1")], address="192.0.2.1")
