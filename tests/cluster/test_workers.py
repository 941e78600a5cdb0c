"""Real worker processes on this machine: one run directory from two hosts, a host that dies, nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.cluster import Cluster, Endpoint, PortRange, divide, local_endpoint
from linerate.cluster.tls import Membership
from linerate.errors import HostError, InternalError, LinerateError
from linerate.results import WorkloadSource
from linerate.run import Execution, RunEvent, carry_out
from linerate.volumes import Consent, RefusedError, clear
from linerate.workload import RunSpec
from linerate.workload.hosts import LoadHost, LoadHosts
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


PORTS = PortRange(23100, 23160)  # below those that the kernel gives to others (net.ipv4.ip_local_port_range)


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
    with Cluster([local_endpoint("h1"), local_endpoint("h2"), local_endpoint("h3")], ports=PORTS) as made:
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


def _listening(cluster: Cluster) -> list[int]:
    """Ports of its machines: the scheduler's, then each worker's."""
    client = cluster._client
    assert client is not None
    addresses = [client.scheduler.address, *client.scheduler_info(n_workers=-1)["workers"]]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    return [int(address.rpartition(":")[2]) for address in addresses]


def test_everything_listens_in_the_range_that_was_given(cluster: Cluster) -> None:
    ports = _listening(cluster)
    assert len(set(ports)) == 4
    assert all(PORTS.first <= port <= PORTS.last for port in ports)


@pytest.mark.parametrize("certificate", ["none", "of another run", "no TLS at all"])
def test_a_third_party_is_refused(cluster: Cluster, certificate: str) -> None:
    """Dask would run any program that it is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if certificate == "of another run":
        context = Membership().security.get_connection_args("client")["ssl_context"]
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it would take any scheduler
    for port in _listening(cluster):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
            try:  # in TLS 1.3 a client hears of the refusal when it reads
                with raw if certificate == "no TLS at all" else context.wrap_socket(raw) as end:
                    end.sendall(b"\0" * 64)
                    heard = end.recv(100)
            except (ssl.SSLError, ConnectionError):
                continue
            assert heard == b"", "it has hung up"


def test_keys_are_on_no_command_line_and_in_no_file(cluster: Cluster, spools: Path) -> None:
    for pid in cluster.worker_pids.values():
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert b"linerate.cluster.worker" in shown
        assert b"PRIVATE KEY" not in shown
    files = [path for path in spools.rglob("*") if path.is_file()]
    assert not [path for path in files if b"PRIVATE KEY" in path.read_bytes()]


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


def test_a_host_that_writes_in_a_later_run_only_looks_too(cluster: Cluster, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(b"precious" * 1000)
    urls = {"v1": {"h1": f"file:{tmp_path}/new", "h3": f"file:{data}"}}
    dealt = cluster.dealt(
        LoadHosts(
            (LoadHost("h1", "h1"), LoadHost("h3", "h3")),
            urls,
            {"first": ("h1",), "second": ("h3",)},
        )
    )
    runs = [
        RunSpec.model_validate(
            {
                "name": stream,
                "volumes": [{"name": "v1", "url": urls["v1"]["h1"], "size_bytes": 1 << 20, "create": True}],
                "streams": [{"name": stream, "volumes": ["v1"], "read_percent": 0}],
            }
        )
        for stream in ("first", "second")
    ]
    with pytest.raises(RefusedError, match=r"^this run would overwrite\n  h3: v1 .*data of unknown kind$"):
        clear(runs, dealt.look, Consent.nothing(), dealt.hosts_of)
    clearance = clear(runs, dealt.look, Consent.of(["v1"]), dealt.hosts_of)
    assert [look.host for look in clearance.looks] == ["h1", "h3"]
    assert set(clearance.of(runs[1]).free) == {str(tmp_path / "new"), str(data)}, "each host may hold its own"
    one = clear(runs[:1], dealt.look, Consent.nothing(), dealt.hosts_of)
    with pytest.raises(InternalError, match="second writes to v1, which was not looked at"):
        one.of(runs[1])


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


@pytest.mark.long
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


@pytest.mark.long
def test_a_range_without_a_port_for_the_worker_is_told() -> None:
    """The scheduler has taken the only one."""
    with pytest.raises(HostError, match="host h1: the worker did not start: no port of 23161 can be used"):
        Cluster([local_endpoint("h1")], ports=PortRange(23161, 23161))


@pytest.mark.alone
def test_two_hosts_are_ready_in_ten_seconds(spools: Path) -> None:
    began = time.monotonic()
    with Cluster([local_endpoint("h1"), local_endpoint("h2")]) as cluster:
        cluster.offsets()
        taken_s = time.monotonic() - began
    assert taken_s < 10.0


@pytest.mark.long
def test_an_address_that_this_machine_lacks_is_told() -> None:
    with pytest.raises(HostError, match=r"cannot listen on 192\.0\.2\.1: "):
        Cluster([local_endpoint("h1")], address="192.0.2.1")
