"""Results as diskspd's XML: the run's figures under diskspd's names, with their units."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from linerate.analysis import summarise
from linerate.report import write_diskspd_xml
from linerate.results import RunDirectory, RunWriter, WorkloadSource

from tests.support.samples.synthetic import Load, make_run, spec_of

MIXED = Load(name="rd1", intervals=8, warmup=2, volumes=3, points=40, outstanding=7)
READS = Load(name="rd2", intervals=5, warmup=0, volumes=2, read_percent=100, size_bytes=262144, iops=4000)
PACED = Load(name="rd3", volumes=2, spec={"arrival": {"kind": "open", "rate_iops": 2500.0}})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("diskspd") / "run", [MIXED, READS, PACED])


@pytest.fixture(scope="module")
def document(run: RunDirectory) -> Element:
    path = run.path.parent / "deep" / "out.xml"
    write_diskspd_xml(run, path)
    text = path.read_text()
    assert text.startswith("<Results>\n  <System>\n"), "readers look at the first line"
    return ElementTree.fromstring(text)


def number(element: Element, path: str) -> float:
    text = element.findtext(path)
    assert text is not None, path
    return float(text)


def test_the_document_has_diskspds_parts(document: Element) -> None:
    assert [part.tag for part in document] == ["System", "Profile", *["TimeSpan"] * 3]
    assert document.findtext("System/ComputerName") == "loadhost1"
    assert str(document.findtext("System/Tool/Version")).startswith("2.2.0 (Linerate ")
    assert document.findtext("System/RunTime") == "2026/11/21 09:30:00 UTC"
    span = document.find("TimeSpan")
    assert span is not None
    assert [part.tag for part in span] == [
        *("TestTimeSeconds", "ThreadCount", "RequestCount", "ProcCount", "CpuUtilization", "Latency", "Iops"),
        *["Thread"] * 3,
    ]
    target = span.find("Thread/Target")
    assert target is not None
    assert [part.tag for part in target] == [
        *("Path", "BytesCount", "FileSize", "IOCount", "ReadBytes", "ReadCount", "WriteBytes", "WriteCount"),
        *("AverageReadLatencyMilliseconds", "ReadLatencyStdev", "AverageWriteLatencyMilliseconds"),
        *("WriteLatencyStdev", "AverageLatencyMilliseconds", "LatencyStdev", "Iops"),
    ]


def test_the_profile_says_what_was_asked_for(document: Element) -> None:
    spans = document.findall("Profile/TimeSpans/TimeSpan")
    mixed, reads, paced = (span.find("Targets/Target") for span in spans)
    assert mixed is not None
    assert reads is not None
    assert paced is not None
    found = {name: number(mixed, name) for name in ("BlockSize", "Random", "RequestCount", "WriteRatio")}
    assert found == {"BlockSize": 8192, "Random": 8192, "RequestCount": 7, "WriteRatio": 33}
    assert [mixed.findtext(name) for name in ("Throughput", "ThreadsPerFile", "RandomRatio")] == [
        "0",
        "1",
        None,
    ]
    assert number(reads, "WriteRatio") == 0
    throughput = paced.find("Throughput")
    assert throughput is not None
    assert (throughput.text, throughput.get("unit")) == ("1250", "IOPS")
    assert [len(span.findall("Targets/Target")) for span in spans] == [3, 2, 2]


def test_figures_are_those_of_the_run(run: RunDirectory, document: Element) -> None:
    for summary, span in zip(summarise(run), document.findall("TimeSpan"), strict=True):
        seconds = number(span, "TestTimeSeconds")
        targets = span.findall("Thread/Target")
        for what in ("Count", "Bytes"):
            reads = sum(number(target, f"Read{what}") for target in targets)
            writes = sum(number(target, f"Write{what}") for target in targets)
            both = sum(number(target, "IOCount" if what == "Count" else "BytesCount") for target in targets)
            assert reads + writes == both
        ios = sum(number(target, "IOCount") for target in targets)
        assert ios / seconds == pytest.approx(summary.total.iops, rel=1e-3)
        buckets = span.findall("Iops/Bucket")
        rates = [float(bucket.get("Total", "")) for bucket in buckets]
        assert sum(rates) / len(rates) == pytest.approx(summary.total.iops, rel=1e-3)
        assert [bucket.get("SampleMillisecond") for bucket in buckets[:2]] == ["1000", "2000"]
        for bucket in buckets:
            mean, most = (float(bucket.get(f"Read{kind}LatencyMilliseconds", "")) for kind in ("Avg", "Max"))
            assert 0 < mean <= most
        cpu = {name: number(span, f"CpuUtilization/Average/{name}Percent") for name in ("Usage", "Idle")}
        assert sum(cpu.values()) == pytest.approx(100, abs=0.02)


def test_percentiles_are_those_of_the_histograms(run: RunDirectory, document: Element) -> None:
    for step, span in zip(run.manifest.steps, document.findall("TimeSpan"), strict=True):
        service = run.latency(step.key)
        assert service is not None
        buckets = {bucket.findtext("Percentile"): bucket for bucket in span.findall("Latency/Bucket")}
        assert len(buckets) == 108
        for name, expected in (("0", service.min), ("50", service.quantile(0.5)), ("100", service.max)):
            assert number(buckets[name], "TotalMilliseconds") == pytest.approx(expected / 1e6, abs=1e-3)
        times = [number(bucket, "TotalMilliseconds") for bucket in buckets.values()]
        assert times == sorted(times)
        assert number(span, "Latency/AverageTotalMilliseconds") == pytest.approx(service.mean / 1e6, abs=1e-3)


def test_what_does_not_occur_has_no_element(document: Element) -> None:
    span = document.findall("TimeSpan")[1]
    assert span.find("Latency/AverageWriteMilliseconds") is None
    assert span.find("Latency/Bucket/WriteMilliseconds") is None
    assert span.find("Iops/WriteIopsStdDev") is None
    assert number(span, "Iops/ReadIopsStdDev") == pytest.approx(number(span, "Iops/IopsStdDev"))


def test_a_step_without_results_says_so(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run", name="w", workload=WorkloadSource(name="w")) as writer:
        writer.begin_step("x", spec=spec_of(Load(name="x", volumes=1)), facts={})
    write_diskspd_xml(RunDirectory.open(tmp_path / "run"), tmp_path / "out.xml")
    document = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert "no results" in str(document.findtext("TimeSpan/Error"))
