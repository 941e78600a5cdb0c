"""The latency log: HdrHistogram's own format, tags that survive any name."""

from __future__ import annotations

import base64
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from linerate import _core
from linerate.results import hlog
from linerate.results.histogram import EncodedHistogram, merged
from linerate.results.hlog import Tag
from linerate.results.sample import LatencySample

from tests.support.samples.hdr import PlainHistogram, bounds_of, index_of
from tests.support.samples.synthetic import START

names = st.text(max_size=30)


@given(names, names, names)
def test_a_tag_survives_any_name(step: str, stream: str, volume: str) -> None:
    tag = Tag(step, stream, volume, "read", "service")
    text = tag.encode()
    assert Tag.decode(text) == tag
    assert text.isascii()
    assert not set(text) & set(", \t\r\n")


@given(st.lists(st.tuples(st.integers(1, 3_600_000_000_000), st.integers(1, 10**9)), min_size=1, max_size=50))
def test_what_is_logged_is_read_back(values: list[tuple[int, int]]) -> None:
    histogram = PlainHistogram()
    for value, count in values:
        histogram.record(value, count)
    line = hlog.log_line(
        "rd1", LatencySample(op="read", kind="service", histogram=histogram, stream="wd1"), 1.0, 2.0
    )
    payload = base64.b64decode(line.rstrip().split(",")[-1])
    for data in (payload, hlog.uncompressed(payload), hlog.compressed(hlog.uncompressed(payload))):
        assert PlainHistogram.decode(data).buckets() == histogram.buckets()


@given(st.integers(1, 3_600_000_000_000))
def test_a_bucket_is_within_a_thousandth(value: int) -> None:
    low, high = bounds_of(index_of(value))
    assert low <= value <= high
    assert high - low <= value / 1000


def test_a_log_opens_like_any_histogram_log(tmp_path: Path) -> None:
    histogram = PlainHistogram()
    histogram.record(2_000_000, 10)
    latency = LatencySample(op="write", kind="response", histogram=histogram, volume="sd 1")
    path = tmp_path / "latency.hlog"
    path.write_text(hlog.header(START) + hlog.log_line("rd1", latency, 12.5, 1.0))
    lines = path.read_text().splitlines()
    assert lines[1] == "#[Histogram log format version 1.3]"
    assert lines[4] == '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    assert lines[5].startswith("Tag=rd1/-/sd%201/write/response,12.500,1.000,2.001,HISTFAAAA")
    (line,) = hlog.read_log(path)
    assert (line.tag.volume, line.tag.stream, line.start_s, line.length_s) == ("sd 1", "", 12.5, 1.0)


def test_an_encoded_histogram_answers_as_the_one_that_it_encodes() -> None:
    whole, other = _core.Histogram(), _core.Histogram()
    for value_ns in (1_000, 2_000, 900_000):
        whole.record(value_ns, 7)
    other.record(5_000_000)
    arrived = EncodedHistogram(whole.encode(), whole.count)
    assert arrived.encode() == whole.encode()
    assert (arrived.count, arrived.min, arrived.max, arrived.mean) == (21, whole.min, whole.max, whole.mean)
    assert arrived.quantile(0.5) == whole.quantile(0.5)
    assert arrived.buckets() == whole.buckets()
    total = merged([arrived, EncodedHistogram(other.encode(), other.count), other])
    assert total is not None
    assert (total.count, total.max) == (23, other.max)
    assert arrived.count == 21, "the arguments stay as they are"
    arrived.merge(EncodedHistogram(other.encode(), other.count))
    assert (arrived.count, arrived.max) == (22, other.max)
