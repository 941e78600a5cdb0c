"""File system workloads on two real worker processes: what is on disk, what is counted, what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from linerate.cluster import Cluster, local_endpoint
from linerate.errors import UserError
from linerate.report.vdbench import write_vdbench_output
from linerate.results import RunDirectory, WorkloadSource
from linerate.run import Execution, Loader, RunOutcome, carry_out
from linerate.volumes import Consent, RefusedError, clear
from linerate.workload import RunPlan
from linerate.workload.vdbench import load_vdbench

# Dask leaves some closing to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(240),
    pytest.mark.long,
]

HD = "create_anchors=yes\nhd=h1,system=localhost\nhd=h2,system=127.0.0.1\n"
SHARED = "fsd=fsd1,anchor={anchor},depth=2,width=2,files=5,size=(4k,50,12k,50),shared=yes\n"
OWN = "fsd=fsd_$host,anchor={anchor}_$host,depth=1,width=2,files=3,size=8k\n"
ONCE = "fwd=fwd1,fsd=fsd1,operation=read,fileselect=once,xfersize=4k,threads=4\n"
STEPS = (
    "rd=clean,fwd=fwd1,fwdrate=max,format=(clean,only),elapsed=4,interval=1\n"
    "rd=make,fwd=fwd1,fwdrate=max,format=(restart,only),elapsed=4,interval=1\n"
)
READ = "rd=rd1,fwd=fwd*,fwdrate=max,elapsed=4,interval=1\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests, since each worker takes seconds to load its libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("spools")))
        with Cluster([local_endpoint("h1"), local_endpoint("h2")]) as made:
            yield made


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], RunPlan]:
    """Reads a file; {anchor} is a folder of the test."""

    def one(text: str) -> RunPlan:
        path = tmp_path / "files.vdb"
        path.write_text(text.replace("{anchor}", f"{tmp_path}/anchor"), "ascii")
        return load_vdbench([path])

    return one


def _dealt(cluster: Cluster, plan: RunPlan) -> Loader:
    assert plan.hosts is not None
    return cluster.dealt(plan.hosts)


def _carried_out(plan: RunPlan, loader: Loader, folder: Path, *agreed: str) -> RunOutcome:
    source = WorkloadSource(name="files.vdb", text="")
    return carry_out(
        Execution(plan, source, folder, Consent.of(list(agreed)), loader=loader), lambda event: None
    )


def _files(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*.file")}


def _counts(run: RunDirectory) -> dict[tuple[str, str], tuple[int, int]]:
    """By stream and structure: operations and bytes."""
    counted = run.intervals.group_by("stream", "volume").agg(pl.col("ios").sum(), pl.col("bytes").sum())
    return {(stream, volume): (ios, size) for stream, volume, ios, size in counted.iter_rows() if ios}


def test_hosts_make_a_shared_structure_once_and_read_it_once(
    cluster: Cluster, read: Callable[[str], RunPlan], tmp_path: Path
) -> None:
    plan = read(f"validate=yes\n{HD}{SHARED}{ONCE}{STEPS}{READ}")
    anchor, old = tmp_path / "anchor", tmp_path / "anchor" / "vdb.1_1.dir"
    old.mkdir(parents=True)
    (old / "vdb_f0001.file").write_bytes(b"old")
    outcome = _carried_out(plan, _dealt(cluster, plan), tmp_path / "run", "fsd1")
    assert (outcome.state, outcome.reason) == ("complete", "")
    files = _files(anchor)
    assert len(files) == 20
    assert set(files.values()) == {4096, 12288}
    assert not (old / "vdb_f0001.file").exists()
    found = _counts(outcome.run)
    assert found["format delete", "h2/fsd1"] == found["format rmdir", "h2/fsd1"] == (1, 0)
    made = [found["format create", f"{host}/fsd1"][0] for host in ("h1", "h2")]
    opened = [found["fwd1 open", f"{host}/fsd1"][0] for host in ("h1", "h2")]
    assert made == opened == [10, 10]
    assert sum(found.get(("format mkdir", f"{host}/fsd1"), (0, 0))[0] for host in ("h1", "h2")) == 6
    for stream in ("format write", "fwd1 read"):
        assert sum(found[stream, f"{host}/fsd1"][1] for host in ("h1", "h2")) == sum(files.values())
    record = outcome.run.manifest.steps[-1]
    assert [(one["name"], one["outstanding"]) for one in record.spec["volumes"]] == [
        ("h1/fsd1", 2),
        ("h2/fsd1", 2),
    ]
    assert record.facts["workers"] == 4
    write_vdbench_output(outcome.run, tmp_path / "told")
    pages = [path.read_text().partition("</title>")[0] for path in (tmp_path / "told").glob("*fsd1.html")]
    assert sorted(page.rpartition("=")[2] for page in pages) == ["h1/fsd1", "h2/fsd1"]


def test_a_host_finds_what_was_changed_in_its_files(
    cluster: Cluster, read: Callable[[str], RunPlan], tmp_path: Path
) -> None:
    plan = read(f"validate=yes\n{HD}{SHARED}{ONCE}{STEPS}{READ}")
    loader = _dealt(cluster, plan)
    clearance = clear([step.spec for step in plan.steps()], loader.look, Consent.nothing(), loader.hosts_of)
    *making, reading = [step.spec for step in plan.steps()]
    for spec in making:
        assert loader.start(clearance.of(spec)).finish().error is None
    damaged = tmp_path / "anchor" / "vdb.1_2.dir" / "vdb.2_1.dir" / "vdb_f0002.file"
    with damaged.open("r+b") as file:
        file.seek(1000)
        file.write(b"\0")
    end = loader.start(clearance.of(reading)).finish()
    assert end.error is not None
    # File 11 of the structure, counted from 0: the second host's.
    assert end.error.message.startswith(f"host h2: volume h2/fsd1: wrong data: {damaged}: block at offset 0")


def test_each_host_has_its_own_anchor_and_all_rates_add_up(
    cluster: Cluster, read: Callable[[str], RunPlan], tmp_path: Path
) -> None:
    plan = read(
        f"{HD}{OWN}fwd=fwd_$host,fsd=fsd_$host,host=$host,operation=getattr,threads=2\n"
        "rd=rd1,fwd=fwd*,fwdrate=200,format=yes,elapsed=4,interval=1\n"
    )
    outcome = _carried_out(plan, _dealt(cluster, plan), tmp_path / "run")
    assert (outcome.state, outcome.reason) == ("complete", "")
    for host in ("h1", "h2"):
        assert len(_files(tmp_path / f"anchor_{host}")) == 6
    run = outcome.run
    assert {volume for _, volume in _counts(run)} == {"h1/fsd_h1", "h2/fsd_h2"}
    asked = run.intervals.filter(pl.col("stream").str.ends_with("getattr") & ~pl.col("warmup"))
    by_host = dict(asked.group_by("volume").agg(pl.col("ios").sum() / 3).iter_rows())
    assert by_host == {"h1/fsd_h1": pytest.approx(100, rel=0.3), "h2/fsd_h2": pytest.approx(100, rel=0.3)}


def test_no_host_s_files_are_overwritten_unasked(
    cluster: Cluster, read: Callable[[str], RunPlan], tmp_path: Path
) -> None:
    """Also those of a host that has the FSD in a later run only."""
    mine = tmp_path / "anchor" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    text = (
        f"{HD}{SHARED}fwd=fwd1,fsd=fsd1,operation={{}},host=h1\nfwd=fwd2,fsd=fsd1,operation=write,host=h2\n"
    )
    runs = READ.replace("fwd*", "fwd1") + READ.replace("rd1,fwd=fwd*", "rd2,fwd=fwd2")
    for operation, hosts in (("write", ["h1", "h2"]), ("read", ["h2"])):
        plan = read(text.replace("{}", operation) + runs)
        loader, specs = _dealt(cluster, plan), [step.spec for step in plan.steps()]
        with pytest.raises(
            RefusedError, match=rf"^this run would overwrite\n  {hosts[0]}: fsd1 .*holds mine\.txt"
        ):
            clear(specs, loader.look, Consent.nothing(), loader.hosts_of)
        looks = clear(specs, loader.look, Consent.of(["fsd1"]), loader.hosts_of).looks
        assert [look.host for look in looks] == hosts


def test_hosts_of_the_command_line_share_what_the_file_shares(
    cluster: Cluster, read: Callable[[str], RunPlan], tmp_path: Path
) -> None:
    steps = STEPS + READ
    plan = read(f"create_anchors=yes\n{SHARED}{ONCE}{steps}")
    assert plan.hosts is None
    outcome = _carried_out(plan, cluster, tmp_path / "run")
    assert (outcome.state, outcome.reason) == ("complete", "")
    found = _counts(outcome.run)
    assert [found["fwd1 open", f"{host}/fsd1"][0] for host in cluster.hosts] == [10, 10]
    assert [one["outstanding"] for one in outcome.run.manifest.steps[-1].spec["volumes"]] == [4, 4]
    alone = read(f"create_anchors=yes\n{SHARED.replace(',shared=yes', '')}{ONCE}{steps}")
    refused = _carried_out(alone, cluster, tmp_path / "again", "fsd1")
    assert isinstance(refused.error, UserError)
    assert refused.reason.endswith("h1, h2 would use fsd1 at the same time")
