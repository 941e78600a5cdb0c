"""The TOML workload file: what it makes of a run, errors with line and key, the schema."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
from linerate.errors import UserError
from linerate.toml_lines import key_lines, line_of
from linerate.workload import LunMap, Overrides, RunPlan, StepResult
from linerate.workload.schema import run_schema, workload_schema
from linerate.workload.spec import HitArea, OpenArrival, SessionSpec, SizeMix, SizeRange, VolumeRegion
from linerate.workload.toml_file import parse_toml

VOLUME = '[[volume]]\nname = "v1"\ntarget = "null:8g"\n'
STREAM = '[[stream]]\nname = "s1"\n'


def load(text: str, overrides: Overrides | None = None) -> RunPlan:
    return parse_toml(text, "w.toml", name="w", overrides=overrides)


def fails(text: str) -> UserError:
    with pytest.raises(UserError) as caught:
        load(text)
    return caught.value


def test_defaults() -> None:
    run = next(load(VOLUME + STREAM).steps())
    assert run.label == "w"
    spec = run.spec
    assert (spec.warmup_s, spec.elapsed_s, spec.interval_s, spec.shares) == (5, 30, 1, "uncontrolled")
    assert (spec.volumes[0].outstanding, spec.volumes[0].direct) == (8, True)
    assert (spec.streams[0].read_percent, spec.streams[0].random_percent) == (100, 100)


def test_a_full_file() -> None:
    text = """
name = "oltp"
elapsed = "2m"
warm_up = 10
outstanding = 4
iscsi = { nodelay = true, header_digest = "none" }

[[volume]]
name = "v"
count = 3
target = "iscsi://bob%s3cret@10.0.0.5/iqn.2026-11.lab:disks/{n-1}"
size = "1g"
iscsi = { header_digest = "crc32c" }

[[stream]]
name = "reads"
volumes = "v*"
size = [{ size = "4k", percent = 60 }, { size = "8k", percent = 40 }]
share = 67
range = { percent = [0, 50] }
hit_area = { size = "2m", read = 20 }

[[stream]]
name = "writes"
volumes = ["v1", "v3"]
size = { min = "4k", max = "64k", align = "4k" }
read = 0
random = 0
"""
    spec = next(load(text).steps()).spec
    assert [v.name for v in spec.volumes] == ["v1", "v2", "v3"]
    assert spec.volumes[2].url == "iscsi://10.0.0.5:3260/iqn.2026-11.lab:disks/2"
    assert spec.volumes[0].iscsi == SessionSpec(nodelay=True, header_digest="crc32c")
    assert "s3cret" not in spec.model_dump_json()
    reads, writes = spec.streams
    assert reads.sizes == SizeMix(parts=((4096, 60), (8192, 40)))
    assert (reads.range, reads.hit_area) == (
        VolumeRegion(unit="percent", start=0, end=50),
        HitArea(bytes=2 << 20, read_percent=20),
    )
    assert writes.sizes == SizeRange(min_bytes=4096, max_bytes=65536, align_bytes=4096)
    assert (writes.volumes, writes.share_percent) == (("v1", "v3"), 33)
    assert (spec.shares, spec.elapsed_s, spec.warmup_s) == ("total", 120, 10)
    assert {v.outstanding for v in spec.volumes} == {4}


def test_sweeps_nest_in_the_order_given_and_rates_are_innermost() -> None:
    text = 'rate = [100, "max"]\n' + VOLUME + STREAM + '[sweep]\nsize = ["4k", "8k"]\noutstanding = [1, 2]\n'
    runs = list(load(text).steps())
    assert [run.label for run in runs][:3] == [
        "w size=4k outstanding=1 rate=100",
        "w size=4k outstanding=1 rate=max",
        "w size=4k outstanding=2 rate=100",
    ]
    assert len(runs) == 8
    assert runs[4].spec.streams[0].sizes == SizeMix.one(8192)
    first = load(text).next(None)
    assert first is not None
    assert first.spec.arrival == OpenArrival(rate_iops=100)


def test_runs_pick_streams_and_change_settings() -> None:
    text = "elapsed = 10\n" + VOLUME + STREAM + '[[stream]]\nname = "s2"\nread = 0\n'
    text += '[[run]]\nname = "a"\nstreams = "s1"\noutstanding = 2\n'
    text += '[[run]]\nname = "b"\nelapsed = 90\nlimit = { written = "1g" }\n'
    one, two = load(text).steps()
    assert [s.name for s in one.spec.streams] == ["s1"]
    assert one.spec.volumes[0].outstanding == 2
    assert (one.spec.elapsed_s, two.spec.elapsed_s) == (10, 90)
    assert two.spec.limits.written_bytes == 1 << 30
    assert [s.share_percent for s in two.spec.streams] == [None, None]


def test_a_curve() -> None:
    plan = load('rate = "curve"\ncurve = [10, 100]\nstop_curve_ms = 20\n' + VOLUME + STREAM)
    names = []
    run = plan.next(None)
    while run is not None:
        names.append((run.name, run.rate_text))
        run = plan.next(StepResult(iops=20_000, response_ms_mean=5))
    assert names == [("w", "Uncontrolled curve"), ("w_(10%)", "2000"), ("w_(100%)", "20000")]


def test_a_volume_without_target_is_mapped() -> None:
    text = '[[volume]]\nname = "v1"\n' + STREAM
    assert "w.toml:1: volume v1: no target" in fails(text).message
    plan = load(text, Overrides(luns=LunMap({"v*": "null:{n}g"})))
    assert next(plan.steps()).spec.volumes[0].url == "null:1073741824"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("elapsed = 5 5\n", "w.toml:1: "),
        ("elapsed = -1\n" + VOLUME + STREAM, "w.toml:1: elapsed: not a time"),
        ("elapsed = 0\n" + VOLUME + STREAM, "w.toml:1: elapsed: a time above 0"),
        (VOLUME + STREAM + 'size = "8x"\n', "w.toml:6: stream[0].size: '8x' is not a size"),
        (VOLUME + STREAM + "size = 1000\n", "w.toml:6: stream[0].size: an I/O size is a multiple of 512"),
        (VOLUME + STREAM + "reed = 50\n", "w.toml:6: stream[0].reed: no such key"),
        (VOLUME + STREAM + "read = 150\n", "w.toml:6: stream[0].read: "),
        (VOLUME + STREAM + 'volumes = "x"\n', "w.toml:6: 'x': there is no such volume"),
        (VOLUME + STREAM + "range = [1, 2]\n", "w.toml:6: stream[0].range: write { percent = [10, 20] }"),
        (VOLUME + "[[stream]]\nsize = 512\n", "w.toml:4: stream[0].name: missing"),
        (VOLUME, "w.toml: stream: missing"),
        (STREAM, "w.toml: volume: missing"),
        (VOLUME + VOLUME + STREAM, "w.toml:1: volume v1: the name is used twice"),
        (VOLUME + STREAM + "share = 50\n", "the shares of the streams add up to 50, not 100"),
        (
            VOLUME + STREAM + '[[run]]\nname = "r"\nrate = "50%"\n',
            "w.toml:8: rate: a percentage needs an earlier run",
        ),
        (VOLUME + STREAM + '[[run]]\nname = "r"\nrate = "fast"\n', "w.toml:8: run[0].rate: not a rate"),
        (VOLUME + STREAM + '[[run]]\nname = "r"\n[run.sweep]\nsize = []\n', "w.toml:9: run[0].sweep.size: "),
        (
            '[[volume]]\nname = "v"\ntarget = "iscsi://h"\n' + STREAM,
            "w.toml:3: volume v: iscsi://h: the target's name",
        ),
        ("[iscsi]\nnodelai = true\n" + VOLUME + STREAM, "w.toml:2: iscsi.nodelai: no such key"),
    ],
)
def test_errors_name_file_line_and_key(text: str, message: str) -> None:
    assert message in fails(text).message


def test_the_nearest_key_is_suggested_and_all_errors_are_told() -> None:
    assert fails(VOLUME + STREAM + "reed = 50\n").hint == "did you mean read?"
    told = fails(VOLUME + "outstandin = 2\n" + STREAM + "read = -1\n").message.split("\n")
    assert [line.split(": ")[:2] for line in told] == [
        ["w.toml:4", "volume[0].outstandin"],
        ["w.toml:7", "stream[0].read"],
    ]


def test_lines_of_keys() -> None:
    text = '''a = """
[not.a.table]
b = 1
"""
[x.y]
"q k" = [
  1, # ]
  2,
]
z.w = {
  i = 1 }
[[t]]
a = 1
[[t]]
a = "x # [[t]]"
[t.u]
k = \'\'\'
c = 1\'\'\'
[[t.v]]
m = 1
'''
    lines = key_lines(text)
    assert line_of(lines, ("a",)) == 1
    assert ("not",) not in lines
    assert line_of(lines, ("x", "y", "q k")) == 6
    assert line_of(lines, ("x", "y", "q k", 1)) == 8
    assert line_of(lines, ("x", "y", "z", "w", "i")) == 10
    assert line_of(lines, ("x", "other")) == 5
    assert line_of(lines, ("t", 0, "a")) == 13
    assert line_of(lines, ("t", 1, "a")) == 15
    assert line_of(lines, ("t", 1, "u", "k")) == 17
    assert line_of(lines, ("t", 1, "v", 0, "m")) == 20
    assert line_of(lines, ("t", 1, "missing")) == 14
    assert line_of(lines, ("nothing",)) == 0


def test_lines_of_entries_of_lists() -> None:
    text = '''a = [1, 2,
  [
    "x,", # 0, 1
    """
    y]""", { k = [
      1] },
  ], 3,
]
b.c = [
  5 ]
'''
    lines = key_lines(text)
    entries = {key: line for key, line in lines.items() if isinstance(key[-1], int)}
    assert entries == {
        ("a", 0): 1,
        ("a", 1): 1,
        ("a", 2): 2,
        ("a", 2, 0): 3,
        ("a", 2, 1): 4,
        ("a", 2, 2): 5,
        ("a", 3): 7,
        ("b", "c", 0): 10,
    }


def test_the_schemas_name_every_key() -> None:
    schema = workload_schema()
    assert schema["additionalProperties"] is False
    assert {"volume", "stream", "run", "sweep", "iscsi", "elapsed"} <= schema["properties"].keys()
    assert schema["$defs"]["StreamTable"]["properties"]["size"]["anyOf"]
    assert "description" in schema["$defs"]["VolumeTable"]["properties"]["outstanding"]
    assert {"volumes", "streams", "arrival"} <= run_schema()["properties"].keys()


def test_the_examples_of_the_page_are_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "workload.md").read_text()
    blocks = (dedent(part).strip() for part in re.findall(r"```toml\n(.*?)```", page, re.DOTALL))
    whole, sweep, run, several_paths = blocks
    runs = list(load(f"{whole}\n\n{sweep}\n\n{run}\n").steps())
    assert len(runs) == 3 * 3 * 2
    assert {run.spec.limits.written_bytes for run in runs} == {1 << 30}
    volume = next(load(f"{several_paths}\n{STREAM}").steps()).spec.volumes[0]
    assert (len(volume.paths), volume.multipath.failback) == (2, 10.0)
