"""Delayed acknowledgements: stalls of single sizes, as figures, and planted by a relay between host and array."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from linerate.probe import Diagnosis, SizeTimes, judge
from linerate.probe.sizes import SIZES_BYTES, sizes_in_blocks, sizes_spec
from linerate.workload.spec import VolumeSpec

from tests.cli.conftest import linerate
from tests.probe.evidence import evidence
from tests.probe.relay import relay
from tests.support.serving import serving

LIMIT = "delayed acknowledgement"
ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab.linerate:stalls"
volumes = [{ lun = 0, name = "v1", kind = "memory", size = "16m" }]
"""


def of(*late: SizeTimes, busy_percent: float = 20.0) -> Diagnosis:
    seen = evidence({"floor": {"host_busy_percent": busy_percent}})
    replaced = {(one.size_bytes, one.is_write) for one in late}
    kept = [one for one in seen.sizes if (one.size_bytes, one.is_write) not in replaced]
    return judge(replace(seen, sizes=(*kept, *late)))


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (
            [SizeTimes(4608, False, 100, 40.9, 41.0)],
            ["reads of 4608 bytes", "41 ms at the median", "The array"],
        ),
        ([SizeTimes(8192, True, 100, 40.9, 41.0)], ["writes of 8192 bytes", "others 0.25 ms", "This host"]),
        (
            [SizeTimes(1536, False, 9, 200.4, 200.9), SizeTimes(9216, False, 9, 201.0, 203.0)],
            ["reads of 1536 and 9216 bytes", "201 ms"],
        ),
        ([SizeTimes(4608, False, 100, 0.3, 43.0)], ["reads of 4608 bytes", "43 ms at the 95th percentile"]),
    ],
)
def test_a_size_that_waits_is_named(late: Sequence[SizeTimes], words: list[str]) -> None:
    found = of(*late)
    assert found.limit == LIMIT
    assert all(word in found.sentence for word in words), found.sentence
    assert {hint.setting for hint in found.hints} == {"nagle=off", "delayed_ack=off"}


@pytest.mark.parametrize(
    "late",
    [
        [SizeTimes(4608, False, 100, 30.0, 30.0)],
        [SizeTimes(4608, False, 100, 90.0, 90.0)],
        [SizeTimes(4608, False, 20, 0.3, 43.0)],  # one I/O of a few
        [SizeTimes(size, True, 100, 41.0, 60.0) for size in SIZES_BYTES],  # slow disks
    ],
)
def test_other_times_are_no_delayed_acknowledgement(late: Sequence[SizeTimes]) -> None:
    assert of(*late).limit == "round trip"


def test_on_a_host_without_cpu_only_the_median_tells() -> None:
    assert of(SizeTimes(4608, False, 100, 0.3, 43.0), busy_percent=99.0).limit == "round trip"
    assert of(SizeTimes(4608, False, 100, 40.3, 43.0), busy_percent=99.0).limit == LIMIT
    late_at_times = {"p99_ms": 43.0, "host_busy_percent": 99.0}
    assert judge(evidence({"floor": late_at_times})).limit == "round trip"


def test_a_large_read_may_take_the_time_of_its_bytes() -> None:
    """16896 bytes at 0.42 MB/s take 40 ms."""
    slow = {name: {"mb_s": 0.42} for name in ("large", "sessions", "connections")}
    seen = evidence(slow)  # type: ignore[arg-type]
    sizes = [one for one in seen.sizes if (one.size_bytes, one.is_write) != (16_896, False)]
    slow_line = replace(seen, sizes=(*sizes, SizeTimes(16_896, False, 100, 40.4, 41.0)))
    assert judge(slow_line).limit != LIMIT


def test_sizes_are_whole_blocks() -> None:
    assert sizes_in_blocks(512) == SIZES_BYTES
    assert sizes_in_blocks(4096) == (4096, 8192, 12_288, 20_480)


def test_each_size_is_a_stream_of_one_run_at_depth_1() -> None:
    volume = VolumeSpec(name="volume", url="iscsi://10.0.0.5/iqn.2026-11.lab:disks/0", outstanding=8)
    spec = sizes_spec(volume, 4096, 2.0, is_write=True)
    assert [stream.name for stream in spec.streams] == ["4096", "8192", "12288", "20480"]
    assert {stream.read_percent for stream in spec.streams} == {0.0}
    assert [one.outstanding for one in spec.volumes] == [1]
    assert spec.warmup_s + spec.elapsed_s == 2.0


@pytest.mark.long
def test_planted_stalls(tmp_path: Path) -> None:
    """The relay's 40 ms are found at the sizes that it holds back, and at no other."""
    with serving(tmp_path, ARRAY) as portal:
        host, _, port = portal.rpartition(":")
        with relay((host, int(port)), reads=4608, writes=12_288) as through:
            url = f"iscsi://127.0.0.1:{through}/iqn.2026-11.lab.linerate:stalls/0"
            done = linerate("probe", url, "--seconds", "10", "--write", "--overwrite", "all", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    late = {(one["size_bytes"], one["is_write"]) for one in found["sizes"] if one["p50_ms"] > 38}
    assert late == {(4608, False), (12_288, True)}, found["sizes"]
    assert found["limit"] == LIMIT, found
    assert "reads of 4608 bytes at depth 1" in found["sentence"]
