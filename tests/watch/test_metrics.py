"""/metrics: what a parser of OpenMetrics reads is what the directories hold; the dashboard asks for nothing else."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pytest
from linerate import watch
from linerate.array.control import ArrayReport, ControlClient, find
from linerate.array.control.server import ControlServer
from linerate.array.figures.openmetrics import CONTENT_TYPE
from linerate.results import RunDirectory
from linerate.watch import ArraySource, DirectorySource
from linerate.watch.metrics import exposition
from linerate.watch.run.totals import BUCKETS_NS, bucket
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.array.fake import FILE, IQN, pretend
from tests.support.samples.study_directory import make_study_directory
from tests.support.samples.synthetic import Load, make_run
from tests.watch.conftest import kept, polled, served

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _samples(text: bytes) -> Samples:
    """(name, labels without the run) -> value. The parser refuses what is no OpenMetrics."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "run"}
            found[sample.name, tuple(sorted(labels.items()))] = sample.value
    return found


class _Client(ControlClient):
    """Of an array that pretends, without HTTP between."""

    def __init__(self, text: str = FILE) -> None:
        array, _, self._service = pretend(text)
        array.task = {"kind": "scrub", "done": 0.5}

    def report(self) -> ArrayReport:
        return ArrayReport.model_validate(self._service.status())


def _of(source: watch.Source) -> Samples:
    polled(source)
    return _samples(exposition(source))


def test_the_counters_of_a_run_are_the_sums_of_its_tables(path_run: RunDirectory) -> None:
    with served(path_run.path) as client:
        answer = client.ask("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    samples = _samples(answer.body)
    rows = path_run.intervals.group_by("volume", "op").agg(pl.col("ios", "bytes", "service_sum_ns").sum())
    for row in rows.iter_rows(named=True):
        labels = (("op", row["op"]), ("volume", row["volume"]))
        assert samples["linerate_ios_total", labels] == row["ios"]
        assert samples["linerate_io_bytes_total", labels] == row["bytes"]
        assert samples["linerate_io_service_seconds_total", labels] == pytest.approx(
            row["service_sum_ns"] / 1e9
        )
    for row in path_run.paths.group_by("volume", "path").agg(pl.col("read_ios", "write_ios").sum()).rows():
        assert samples["linerate_path_ios_total", (("path", row[1]), ("volume", row[0]))] == row[2] + row[3]


def test_cpu_and_tcp_are_those_of_the_usage_table(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=6), Load(name="rd2", intervals=4)])
    samples = _of(kept(DirectorySource(run.path)))
    system = samples["linerate_cpu_seconds_total", (("mode", "system"), ("side", "host"))]
    assert system == pytest.approx(run.usage["host_cpu_system_s"].sum())
    assert samples["linerate_tcp_retransmits_total", ()] == run.usage["retransmits"].sum()
    assert samples["linerate_intervals_total", ()] == run.usage.height


def test_the_histogram_holds_every_io_and_their_exact_sum(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [Load(intervals=6)])
    samples = _of(kept(DirectorySource(run.path)))
    recorded = sum(histogram.count for _, histogram in run.latency_over_time("rd1"))
    assert samples["linerate_service_time_seconds_count", ()] >= recorded > 0
    assert samples["linerate_service_time_seconds_sum", ()] == pytest.approx(
        run.intervals["service_sum_ns"].sum() / 1e9
    )
    below = [value for (name, _), value in samples.items() if name == "linerate_service_time_seconds_bucket"]
    assert below == sorted(below)
    assert len(below) == len(BUCKETS_NS) + 1


@pytest.mark.parametrize(
    ("value_ns", "number"), [(1, 0), (8192, 0), (8193, 1), (16384, 1), (1 << 36, 23), ((1 << 36) + 1, 24)]
)
def test_a_service_time_is_in_the_first_bucket_that_holds_it(value_ns: int, number: int) -> None:
    assert bucket(value_ns) == number


def test_the_counters_of_a_study_are_those_of_its_journal(tmp_path: Path) -> None:
    study = make_study_directory(tmp_path / "study", blocks=2)
    samples = _of(kept(DirectorySource(study.path)))
    of = (("study", "study"),)
    assert samples["linerate_study_runs_total", (("state", "complete"), *of)] == len(study.steps)
    assert samples["linerate_study_runs_counted", of] == len(study.measured)
    assert samples["linerate_study_blocks_planned", of] == study.study.repeat.blocks_max


def test_the_page_of_an_array_has_volumes_of_all_kinds_with_their_targets() -> None:
    memory = '[[targets.volumes]]\nlun = 1\nname = "fast"\nsize = "1m"\n'
    (update, *_) = ArraySource(_Client(f"{FILE}{memory}")).poll()
    shown = [(one["name"], one["where"], one["target"], one["lun"]) for one in update.data["volumes"]]
    assert shown == [("v1", "pool p0", IQN, 0), ("fast", "memory", IQN, 1)]
    assert update.data["volumes"][1]["used_bytes"] is None


def test_the_counters_of_an_array_are_those_of_its_report() -> None:
    source = ArraySource(_Client())
    first, *others = source.report.storage.disks
    counted = first.model_copy(update={"reads": 7, "read_bytes": 4096, "busy_ns": 2_500_000_000})
    storage = source.report.storage.model_copy(update={"disks": (counted, *others)})
    source.report = source.report.model_copy(update={"storage": storage})
    samples = _of(source)
    labels = (("array", "lab"), ("disk", "d0"), ("raid_set", "r0"))
    assert samples["linerate_array_disk_reads_total", labels] == 7
    assert samples["linerate_array_disk_read_bytes_total", labels] == 4096
    assert samples["linerate_array_disk_busy_seconds_total", labels] == 2.5
    pool = storage.pools[0]
    used = samples["linerate_array_pool_used_bytes", (("array", "lab"), ("pool", pool.name))]
    assert used == pool.used_bytes > 0


def test_the_control_api_of_an_array_gives_the_metrics_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    array, config, service = pretend()
    array.task = {"kind": "scrub", "done": 0.5}
    with ControlServer(service, config) as server:
        place = urlsplit(server.url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {find(None).token}"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    assert _samples(text) == _of(ArraySource(_Client()))


def test_the_dashboard_asks_only_for_what_is_exported(path_run: RunDirectory, tmp_path: Path) -> None:
    dashboard = json.loads((Path(watch.__file__).parent / "grafana.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"linerate_\w+", target["expr"])
    }
    study = make_study_directory(tmp_path / "study", blocks=1)
    sources: list[watch.Source] = [kept(DirectorySource(path_run.path)), kept(DirectorySource(study.path))]
    exported = {name for source in sources for name, _ in _of(source)}
    exported |= {name for name, _ in _of(ArraySource(_Client()))}
    assert len(asked) > 15
    assert asked <= exported
    assert all(target["legendFormat"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
    assert not [name for name in exported if re.search("percentile|p99|quantile|rate$", name)]
