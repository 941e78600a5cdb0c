"""What SDs, WDs and RDs become: volumes, streams and limits, and the values that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, PlannedRun, RunSpec, StreamSpec
from linerate.workload.spec import ByteSpan, HitArea, SizeMix, SizeRange, VolumeRegion

from .conftest import Read


def sd(read: Read, keys: str, *, overrides: Overrides | None = None) -> RunSpec:
    return next(
        read(f"sd=sd1,lun=x,{keys}\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n", overrides=overrides).steps()
    ).spec


def wd(read: Read, keys: str) -> StreamSpec:
    return next(read(f"sd=sd1,lun=x,size=1g\nwd=wd1,sd=sd1,{keys}\nrd=rd1,wd=wd1\n").steps()).spec.streams[0]


def rd(read: Read, keys: str, general: str = "") -> list[PlannedRun]:
    return list(read(f"{general}\nsd=sd1,lun=x,size=1g\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,{keys}\n").steps())


def test_sd_size_offset_threads(read: Read) -> None:
    volume = sd(read, "size=(8g,4),offset=1m,threads=(32,4)").volumes[0]
    assert (volume.size_bytes, volume.first_byte, volume.outstanding) == (2 << 30, 1 << 20, 8)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("range=(10,20)", VolumeRegion(unit="percent", start=10, end=20)),
        ("range=(90,110)", VolumeRegion(unit="percent", start=90, end=110)),
        ("range=(1m,2m)", VolumeRegion(unit="bytes", start=1 << 20, end=2 << 20)),
    ],
)
def test_ranges_are_percent_up_to_200_and_bytes_beyond(read: Read, text: str, region: VolumeRegion) -> None:
    assert sd(read, text).streams[0].range == region
    assert wd(read, text).range == region
    assert wd(read, text.replace("range", "hotband")).hotband == region


def test_a_wd_range_overrides_that_of_its_sds(read: Read) -> None:
    text = "sd=sd1,lun=x,range=(0,10)\nsd=sd2,lun=x\nwd=wd1,sd=sd*{}\nrd=rd1,wd=wd1\n"
    assert next(read(text.format(",range=(5,6)")).steps()).spec.streams[0].range == VolumeRegion(
        unit="percent", start=5, end=6
    )


def test_sds_of_a_wd_keep_their_ranges_and_an_equal_part_of_its_skew(read: Read) -> None:
    """vdbench divides the skew of a WD over its SDs, each of which has the range of its own."""
    luns = "sd=sd1,lun=x,range=(0,10)\nsd=sd2,lun=y,range=(20,30)\nsd=sd3,lun=z,range=(0,10)\n"
    text = luns + "wd=wd1,sd=sd*,skew=60,rdpct=70\nwd=wd2,sd=sd1\nrd=rd1,wd=wd*\n"
    spec = next(read(text).steps()).spec
    assert [
        (one.name, one.volumes, one.share_percent, one.range.end if one.range else None)
        for one in spec.streams
    ] == [
        ("wd1.1", ("sd1", "sd3"), 40, 10),
        ("wd1.2", ("sd2",), 20, 30),
        ("wd2", ("sd1",), 40, 10),
    ]
    assert {one.read_percent for one in spec.streams} == {70, 100}


@pytest.mark.parametrize(
    ("hd", "extra", "what"),
    [
        ("", ",iorate=100,priority=1", "iorate= and priority= with SDs that differ in range="),
        ("hd=h1,system=a\nhd=h2,system=b\n", "", "SDs that differ in range= are not supported on several"),
    ],
)
def test_what_ranges_that_differ_do_not_go_with(read: Read, hd: str, extra: str, what: str) -> None:
    text = f"{hd}sd=sd1,lun=x,range=(0,10)\nsd=sd2,lun=y\nwd=wd1,sd=sd*{extra}\nrd=rd1,wd=wd1\n"
    with pytest.raises(UserError, match=what):
        read(text)


@pytest.mark.parametrize(
    ("flags", "direct", "durable"),
    [
        ("o_direct", True, False),
        ("directio", True, False),
        ("(o_direct,o_dsync)", True, True),
        ("o_sync", False, True),
    ],
)
def test_openflags(read: Read, tmp_path: Path, flags: str, direct: bool, durable: bool) -> None:
    here = Overrides(luns=LunMap({"*": "./disk.img"}))
    volume = sd(read, f"size=1g,openflags={flags}", overrides=here).volumes[0]
    assert (volume.direct, volume.durable_writes, volume.create) == (direct, durable, True)
    assert volume.url == f"file:{tmp_path}/disk.img"


def test_files_are_buffered_without_openflags_and_devices_are_not(read: Read) -> None:
    assert not sd(read, "size=1g", overrides=Overrides(luns=LunMap({"*": "./disk.img"}))).volumes[0].direct
    assert sd(read, "size=1g").volumes[0].direct


def test_a_missing_file_needs_a_size(read: Read) -> None:
    with pytest.raises(UserError, match=r"w\.vdb:1: sd=sd1: \./none\.img does not exist"):
        sd(read, "threads=1", overrides=Overrides(luns=LunMap({"*": "./none.img"})))


def test_a_missing_lun_and_a_windows_device_ask_for_a_map(read: Read) -> None:
    tail = "\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n"
    with pytest.raises(UserError, match="sd=sd1: no lun="):
        read("sd=sd1" + tail, overrides=Overrides())
    with pytest.raises(UserError, match=r"sd=sd1: \\\\\.\\PhysicalDrive1: a Windows device") as caught:
        read("sd=sd1,lun=\\\\.\\PhysicalDrive1" + tail, overrides=Overrides())
    assert "--map" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("xf=8k", SizeMix.one(8192)),
        ("xfersize=(8k)", SizeMix.one(8192)),
        ("xfersize=(4k,60,8k,40)", SizeMix(parts=((4096, 60), (8192, 40)))),
        ("xfersize=(4k,64k,4k)", SizeRange(min_bytes=4096, max_bytes=65536, align_bytes=4096)),
    ],
)
def test_transfer_sizes(read: Read, text: str, sizes: SizeMix | SizeRange) -> None:
    assert wd(read, text).sizes == sizes


def test_decimal_percentages_that_round_to_100_are_scaled_to_100(read: Read) -> None:
    mix = wd(read, "xfersize=(512,0.1,1k,0.2,4k,49.5,8k,50)").sizes
    assert isinstance(mix, SizeMix)
    assert sum(percent for _, percent in mix.parts) == pytest.approx(100)


@pytest.mark.parametrize(
    ("text", "random", "to_end"),
    [("seekpct=seq", 0, False), ("seekpct=sequential", 0, False), ("seekpct=rand", 100, False),
     ("seekpct=80", 80, False), ("seekpct=eof", 0, True), ("seekpct=-1", 0, True), ("rdpct=100", 100, False)],
)  # fmt: skip
def test_seekpct(read: Read, text: str, random: float, to_end: bool) -> None:
    stream = wd(read, text)
    assert (stream.random_percent, stream.stop_at_end) == (random, to_end)


def test_hits_stride_streams_and_write_percent(read: Read) -> None:
    assert wd(read, "rhpct=50,whpct=10").hit_area == HitArea(bytes=1 << 20, read_percent=50, write_percent=10)
    assert wd(read, "stride=(4k,1m)").stride == ByteSpan(min_bytes=4096, max_bytes=1 << 20)
    assert wd(read, "streams=4,seekpct=seq").cursors == 4
    assert wd(read, "wrpct=30").read_percent == 70


def test_rated_wds_with_priorities(read: Read) -> None:
    text = "sd=sd1,lun=x\nwd=wd1,sd=sd1,iorate=100,priority=1\nwd=wd2,sd=sd1,priority=2\nrd=rd1,wd=wd*\n"
    spec = next(read(text).steps()).spec
    assert [(s.rate_iops, s.priority, s.share_percent) for s in spec.streams] == [
        (100, 1, None),
        (None, 2, 100),
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("xfersize=1000", "a size is a multiple of 512"),
        ("xfersize=(4k,60,8k,50)", "add up to 110, not 100"),
        ("xfersize=(4k,1,2k,3,1k)", "not a size, pairs, or"),
        ("xfersize=(8k,4k,4k)", "no size is between"),
        ("rdpct=101", "out of range, 0 to 100"),
        ("seekpct=poisson", "'poisson' is no seek percentage that is supported"),
        ("seekpct=seqnz", "'seqnz' is no seek percentage that is supported"),
        ("stride=5", "not a stride"),
        ("range=(20,10)", "not a range"),
        ("range=(50,160)", "stays below 100 % in all"),
        ("openflags=hex", "no support for 'hex'"),
        ("streams=3,seekpct=seq", "threads=8 of sd=sd1 is not a multiple of streams=3"),
        ("streams=2,seekpct=50", "streams= are sequential"),
        ("iorate=100", "iorate without priority"),
        ("priority=2", "priorities 2 for 1 WDs"),
        ("host=h9", "no hd=h9"),
        ("sd=(sd1,sd1)", "sd=sd1 is used twice"),
        ("sd=sd9", "sd=sd9: there is no such sd"),
        ("rhpct=10,xfersize=2m", "hitarea is smaller than xfersize=2097152"),
        ("sd=s*1", "a \\* may be at the end only"),
    ],
)
def test_wrong_wd_values(read: Read, keys: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        wd(read, keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("elapsed=1", "less than two intervals"),
        ("elapsed=0", "elapsed=0: out of range, 1 s to 366 days"),
        ("elapsed=15,interval=10", "elapsed=15: not a multiple of interval=10"),
        ("warmup=3,interval=2,elapsed=10", "warmup=3: not a multiple"),
        ("iorate=0", "a rate must be above 0"),
        ("iorate=fast", "'fast' is not a number"),
        ("distribution=variable", "not a distribution that is supported"),
        ("forxfersize=1000", "a value of xfersize is out of range"),
        ("forthreads=0", "a value of threads is out of range"),
        ("wd=wd1", "given twice"),
    ],
)
def test_wrong_rd_values(read: Read, keys: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rd(read, keys)


def test_maxdata_below_100_counts_all_sds(read: Read) -> None:
    assert rd(read, "maxdata=2")[0].spec.limits.bytes == 2 << 30
    assert rd(read, "maxdatawritten=100g")[0].spec.limits.written_bytes == 100 << 30
    with pytest.raises(UserError, match="maxdataread=1 times all SDs, but not all have a size"):
        read("sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,maxdataread=1\n")


def test_loops_replace_what_the_wds_say(read: Read) -> None:
    keys = (
        "forrdpct=20,forseekpct=(seq,30),forrhpct=40,forwhpct=10,forhitarea=2m,forcompratio=4,forxfersize=64k"
    )
    first, second = rd(read, keys)
    (stream,) = first.spec.streams
    assert (stream.read_percent, stream.random_percent, stream.compression_ratio) == (20, 0, 4)
    assert stream.hit_area == HitArea(bytes=2 << 20, read_percent=40, write_percent=10)
    assert stream.sizes == SizeMix.one(65536)
    assert second.spec.streams[0].random_percent == 30
    assert "seekpct=30 rhpct=40 whpct=10 hitarea=2m" in second.label


def test_pause_and_commands(read: Read) -> None:
    (run,) = rd(read, 'pause=1m,startcmd=("sync",cons),endcmd="echo done"')
    assert (run.pause_s, run.start_commands, run.end_commands) == (60, ("sync",), ("echo done",))
    plan = read("startcmd=sync\nsd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1\n")
    assert plan.start_commands == ("sync",)
    assert next(plan.steps()).start_commands == ()


def test_general_parameters(read: Read) -> None:
    general = "compratio=3\nvalidate=yes\ndata_errors=7\nhistogram=(default,50,1m,2s)"
    (run,) = rd(read, "elapsed=10", general)
    assert run.spec.verify == "on"
    assert run.spec.streams[0].compression_ratio == 3
    assert (run.error_limit, run.histogram_us) == (7, (50, 1000, 2_000_000))


@pytest.mark.parametrize(
    "text", ["validate=read_after_write", "data_errors=remove", "histogram=(9,5)", "histogram=abc"]
)
def test_wrong_general_values(read: Read, text: str) -> None:
    with pytest.raises(UserError, match=r"w\.vdb:1: "):
        rd(read, "elapsed=10", text)


def test_formatsds_fills_every_volume_first(read: Read) -> None:
    first, _ = rd(read, "elapsed=10", "formatsds=yes,formatxfersize=256k")
    (stream,) = first.spec.streams
    assert first.label == "format"
    assert (stream.read_percent, stream.stop_at_end, stream.sizes) == (0, True, SizeMix.one(262144))


def test_defaults_are_cloned_into_later_instances_only(read: Read) -> None:
    text = "sd=sd1,lun=x\nsd=default,threads=3\nsd=sd2,lun=x\nsd=default,size=1g\nsd=sd3,lun=x\n"
    spec = next(read(text + "wd=wd1,sd=sd*\nrd=rd1,wd=wd1\n").steps()).spec
    assert [(v.outstanding, v.size_bytes) for v in spec.volumes] == [(8, None), (3, None), (3, 1 << 30)]
    with pytest.raises(UserError, match=r"w\.vdb:1: lun=x: not in sd=default"):
        read("sd=default,lun=x\n" + text + "wd=wd1,sd=sd*\nrd=rd1,wd=wd1\n")


@pytest.mark.parametrize(
    ("name", "lun", "names", "luns"),
    [("sd", "x", ("sd3", "sd4"), ("x3", "x4")), ("sd*a", "x*y", ("sd3a", "sd4a"), ("x3y", "x4y")),
     ("sd%04d", "/d%d", ("sd0003", "sd0004"), ("/d3", "/d4"))],
)  # fmt: skip
def test_count_numbers_names_and_luns(
    read: Read, name: str, lun: str, names: tuple[str, ...], luns: tuple[str, ...]
) -> None:
    text = f"sd={name},lun={lun},count=(3,2)\nwd=wd1,sd=sd*\nrd=rd1,wd=wd1\n"
    mapped = {old: f"null:{index}k" for index, old in enumerate(luns, 1)}
    spec = next(read(text, overrides=Overrides(luns=LunMap(mapped))).steps()).spec
    assert [(v.name, v.url) for v in spec.volumes] == [(names[0], "null:1024"), (names[1], "null:2048")]


def test_host_labels_repeat_sds(read: Read) -> None:
    text = "hd=h1,system=localhost\nhd=h2,system=localhost\n"
    text += "sd=sd_$host,lun=x#host,host=$host\nwd=wd1,sd=sd_*\nrd=rd1,wd=wd1\n"
    spec = next(read(text).steps()).spec
    assert [volume.name for volume in spec.volumes] == ["sd_h1", "sd_h2"]


@pytest.mark.parametrize(
    ("sds", "sets"),
    [("single", [["sd1"], ["sd2"], ["sd3"]]), ("range", [["sd1"], ["sd1", "sd2"], ["sd1", "sd2", "sd3"]]),
     ("setsof2", [["sd1", "sd2"], ["sd3"]]), ("(sd1,sd3)", [["sd1", "sd3"]])],
)  # fmt: skip
def test_an_rd_chooses_its_sds(read: Read, sds: str, sets: list[list[str]]) -> None:
    text = f"sd=sd,lun=x,count=(1,3)\nwd=wd1,sd=sd*\nrd=rd1,wd=wd1,sd={sds}\n"
    runs = list(read(text).steps())
    assert [[v.name for v in run.spec.volumes] for run in runs] == sets
    assert len({run.label for run in runs}) == len(runs)


def test_an_rd_without_wd_uses_the_wd_defaults(read: Read) -> None:
    text = "sd=sd1,lun=x\nwd=default,rdpct=40\nrd=rd1,sd=sd1,xfersize=8k\n"
    (stream,) = next(read(text).steps()).spec.streams
    assert (stream.name, stream.read_percent) == ("rd1", 40)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sd=sd1,lun=x\nsd=sd1,lun=y\n", r"w\.vdb:2: sd=sd1: named twice, first at w\.vdb:1"),
        ("sd=sd1,lun=x,lun=y\n", "2 lun= and 0 host="),
        ("sd=concat,lun=x\n", "a name that vdbench keeps for itself"),
        ("", "no sd= in the file"),
        ("sd=sd1,lun=x\n", "no rd= in the file"),
        ("sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1\n", "rd=rd1: no workload"),
        ("sd=sd1,lun=x\nwd=wd1\nrd=rd1,wd=wd1\n", "wd=wd1: no sd="),
        ("sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=w2\n", "wd=w2: there is no such wd"),
    ],
)
def test_files_that_are_not_whole(read: Read, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(text)
