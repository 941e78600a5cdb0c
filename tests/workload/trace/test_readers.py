"""Each form of trace, in the form that its tool writes, and what is wrong in it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, PlannedRun, RunPlan, load_workload

IOLOG_3 = """\
fio version 3 iolog
0 /dev/sdz add
155 /dev/sdz open
159 /dev/sdz read 61440 4096
1729 /dev/sdz write 774144 8192
2000 /dev/sdz sync 0 0
50183 /dev/sdz trim 0 4096
50190 /dev/sdz close
"""
IOLOG_2 = """\
fio version 2 iolog
a add
b add
a open
b open
a read 0 4096
a wait 20 0
b write 8192 512
a close
"""
BLKPARSE = """\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000000829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000009000   697  P   N [kjournald]
  8,0    3        4     0.000011000   697  U   N [kjournald] 1
  8,0    3        5     0.000013000   697  D   W 223490 + 8 [kjournald]
  8,16   1        1     0.000012000   698  D  RA 2048 + 16 [dd]
  8,0    3        6     0.000400000   697  D FWS [kjournald]
  8,0    3        7     0.000500000   697  D   D 0 + 1024 [fstrim]
  8,0    3        8     0.000900000     0  C   W 223490 + 8 [0]
CPU3 (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB
"""
SNIA = """\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,0,Write,1317441536,8192,1963
128166372013061629,web,1,Read,512,1024,5
"""


def plan(path: Path, text: str | bytes, **changes: float) -> RunPlan:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_workload(path, overrides=Overrides(luns=LunMap({"*": "null:8g"}), **changes))  # type: ignore[arg-type]


def records(run: PlannedRun) -> list[tuple[str, int, int, int, int]]:
    """Device, time in ns, offset, length and 1 for a write, from the compiled file."""
    assert run.trace is not None
    run.trace.file.seek(0)
    fields = np.dtype([("at", "<u8"), ("offset", "<u8"), ("bytes", "<u4"), ("write", "<u4")])
    every = np.frombuffer(run.trace.file.read(), fields).tolist()
    names = [device.name for device in run.trace.devices for _ in range(device.ios)]
    return [(name, *record) for name, record in zip(names, every, strict=True)]


def test_iolog_3(tmp_path: Path) -> None:
    read = plan(tmp_path / "log", IOLOG_3)
    run = next(read.steps())
    assert records(run) == [
        ("/dev/sdz", 0, 61440, 4096, 0),
        ("/dev/sdz", 1_570_000, 774144, 8192, 1),
    ]
    said = "\n".join(map(str, read.warnings))
    assert "1 flushes (sync) are left out" in said
    assert "1 trims are left out" in said
    assert run.spec.volumes[0].url == "null:8589934592", "the name in the trace is no target"


def test_iolog_2_waits_from_the_start(tmp_path: Path) -> None:
    run = next(plan(tmp_path / "log", IOLOG_2).steps())
    assert records(run) == [("a", 0, 0, 4096, 0), ("b", 20_000_000, 8192, 512, 1)]


def test_blkparse_counts_what_was_issued(tmp_path: Path) -> None:
    read = plan(tmp_path / "b.txt", BLKPARSE)
    assert records(next(read.steps())) == [
        ("8,0", 1000, 223490 * 512, 4096, 1),
        ("8,16", 0, 2048 * 512, 8192, 0),
    ]
    said = "\n".join(map(str, read.warnings))
    assert "1 flushes are left out" in said
    assert "1 discards are left out" in said
    assert "sorted by time" in said


def test_blkparse_without_issued_events_uses_queued_ones(tmp_path: Path) -> None:
    queued = "\n".join(line for line in BLKPARSE.splitlines() if "  Q  " in line)
    read = plan(tmp_path / "b.txt", queued.replace(" ", "\t") + "\r\n")
    assert records(next(read.steps())) == [("8,0", 0, 223490 * 512, 4096, 1)]
    assert any("Q events" in notice.message for notice in read.warnings)


@pytest.mark.parametrize("packed", [False, True])
def test_snia(tmp_path: Path, *, packed: bool) -> None:
    text = SNIA.replace("\n", "\r\n").encode()
    read = plan(tmp_path / "usr.csv", gzip.compress(text) if packed else text, trace_time_scale=0.5)
    run = next(read.steps())
    assert records(run) == [
        ("usr.0", 0, 7014609920, 24576, 0),
        ("usr.0", 1_332_052_600, 1317441536, 8192, 1),
        ("web.1", 1_000_000_000, 512, 1024, 0),
    ]
    assert [stream.trace.time_scale for stream in run.spec.streams if stream.trace] == [0.5, 0.5]
    assert [volume.name for volume in run.spec.volumes] == ["d1", "d2"]
    assert run.trace is not None
    assert (run.trace.ios, run.trace.peak_ios) == (3, 2)
    assert run.spec.streams[0].rate_iops == pytest.approx(2 / 0.6660263, rel=1e-6)
    assert any("1 I/Os are no whole blocks of 4096" in notice.message for notice in read.warnings)


def test_columns_may_be_named(tmp_path: Path) -> None:
    head = "Type,Timestamp,Hostname,DiskNumber,Offset,Size\n"
    run = next(plan(tmp_path / "a.csv", head + "Write,1280000,h,3,4096,512\n").steps())
    assert records(run) == [("h.3", 0, 4096, 512, 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fio version 1 iolog\nx 0 4096\n", ":1: version 1 of fio's iolog is not read"),
        (IOLOG_3 + "60000 /dev/sdz rea\n", ":9: 2 words"),
        (IOLOG_3 + "60000 /dev/sdz erase 0 1\n", ":9: erase: no action"),
        (IOLOG_3 + "60000 /dev/sdz read -4096 4096\n", ":9: offset '-4096'"),
        (IOLOG_3 + "60000 /dev/sdz read 0 0\n", ":9: length 0"),
        (IOLOG_3 + "6\n", ":9: 0 words"),
        ("fio version 3 iolog\n0 a add\n1 a sync 0 0\n", "no read or write in the trace, only 1 flushes"),
        (BLKPARSE[:74] + "\n8,0 1 2 0.1 3 Q", ":2: '8,0 1 2 0.1 3 Q' is no event"),
        (BLKPARSE[:74] + "\n  8,0 3 2 0.000000829 697 Y W 1 + 8 [x]", ":2: action Y"),
        (BLKPARSE[:74] + "\n  8,0 3 2 -0.000000829 697 D W 1 + 8 [x]", ":2: time -0.000000829"),
        (SNIA + "128166372003061629,usr,0,Re", ":4: 4 fields"),
        (SNIA + "128166372003061629,usr,0,Erase,0,512,1\n", ":4: type 'erase'"),
        (SNIA + "128166372003061629,usr,0,Read,-512,512,1\n", ":4: offset '-512'"),
        (SNIA.encode() + b"\xff\xfe\n", ":4: byte 0xff is not UTF-8"),
        (SNIA.encode() + b"1" * 10_000_000, ":4: a line of more than 65,536 bytes"),
        (gzip.compress(SNIA.encode(), mtime=0)[:-12], "the archive is damaged or cut off"),
        (gzip.compress(b"nothing", mtime=0), "the archive holds no trace"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(tmp_path / "t.gz", text)
    assert said in caught.value.message, caught.value.message


def test_every_device_needs_a_target(tmp_path: Path) -> None:
    path = tmp_path / "usr.csv"
    path.write_text(SNIA)
    with pytest.raises(UserError, match=r"device web\.1 \(d2\) with 1 I/Os has no target"):
        load_workload(path, overrides=Overrides(luns=LunMap({"usr.0": "null:8g"})))


def test_a_time_scale_is_for_traces(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--time-scale"):
        load_workload("dell-nic", overrides=Overrides(luns=LunMap({"*": "null:8g"}), trace_time_scale=0.5))


@pytest.mark.parametrize("packed", [False, True])
def test_the_reading_of_a_long_trace_is_told(tmp_path: Path, packed: bool) -> None:
    text = "".join(f"128166372003061629,usr,0,Read,{4096 * at},4096,9\n" for at in range(120_000)).encode()
    path = tmp_path / "long.csv"
    path.write_bytes(gzip.compress(text) if packed else text)
    told: list[float] = []
    overrides = Overrides(luns=LunMap({"*": "null:8g"}))
    (run,) = load_workload(path, overrides=overrides, tell=told.append).steps()
    assert run.trace is not None
    assert run.trace.ios == 120_000
    assert len(told) == 2
    assert 0 < told[0] < told[1] <= 1
    assert told[0] == pytest.approx(50 / 120, abs=0.1)
    load_workload(path, overrides=overrides, tell=told.append)
    assert len(told) == 2, "a trace that was read is kept"
