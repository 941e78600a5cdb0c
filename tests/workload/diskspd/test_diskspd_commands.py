"""What commands of diskspd and sqlio become: sizes, mixes, depths, places, times."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.analysis.summary import outstanding_asked
from linerate.errors import UserError
from linerate.workload import Overrides, load_workload
from linerate.workload.diskspd.documentation import page
from linerate.workload.diskspd.tables import OPTIONS, OptionEffect, find_option

from .conftest import command, only_run, refusal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def test_the_page_is_made_from_the_tables() -> None:
    shown = Path(__file__).parents[3] / "docs" / "diskspd.md"
    assert shown.read_text() == page(), (
        "run: python -m linerate.workload.diskspd.documentation > docs/diskspd.md"
    )


def test_options_are_there_once_and_the_longest_letters_win() -> None:
    letters = [(row.tool, row.letters) for row in OPTIONS]
    assert len(letters) == len(set(letters))
    for text, expected in (("r4K", "r"), ("rs50", "rs"), ("si64K", "si"), ("Zr", "Zr"), ("Z1M", "Z")):
        row = find_option("diskspd", text)
        assert row is not None
        assert row.letters == expected


def test_defaults_are_those_of_diskspd() -> None:
    spec = only_run(command("diskspd x.dat"))
    (volume,), (stream,) = spec.volumes, spec.streams
    assert (spec.elapsed_s, spec.warmup_s) == (10, 5)
    assert stream.sizes.model_dump()["parts"] == ((64 * KIB, 100.0),)
    assert (stream.read_percent, stream.random_percent, volume.outstanding) == (100, 0, 2)
    assert (volume.direct, volume.durable_writes, volume.first_byte, volume.size_bytes) == (
        False,
        False,
        0,
        None,
    )


def test_a_warm_up_without_a_number_is_none() -> None:
    assert only_run(command("diskspd -d5 -W x")).warmup_s == 0


def test_a_random_load_has_threads_times_depth_in_one_queue() -> None:
    spec = only_run(command(r"diskspd.exe -b8K -d60 -W15 -o32 -t4 -r -w30 -Sh -L -c20G -Z1G E:\io.dat"))
    (volume,), (stream,) = spec.volumes, spec.streams
    assert (volume.outstanding, volume.size_bytes, volume.direct, volume.durable_writes) == (
        128,
        20 * GIB,
        True,
        True,
    )
    assert (stream.read_percent, stream.random_percent, stream.align_bytes) == (70, 100, 8 * KIB)
    assert stream.compression_ratio is None
    assert (spec.elapsed_s, spec.warmup_s) == (60, 15)


def test_threads_in_order_have_positions_of_their_own() -> None:
    plan = command("diskspd -b64K -t3 -o4 -T1G -c4G a b")
    spec = only_run(plan)
    found = [(one.name, one.outstanding, one.first_byte, one.size_bytes) for one in spec.volumes]
    a = [(f"disk1.t{n + 1}", 4, n * GIB, (4 - n) * GIB) for n in range(3)]
    b = [(f"disk2.t{n + 1}", 4, n * GIB, (4 - n) * GIB) for n in range(3)]
    assert found == a + b
    assert all(one.shares_device for one in spec.volumes)
    assert not any("same blocks" in notice.message for notice in plan.warnings)
    assert any("at its own first byte" in notice.message for notice in plan.warnings)
    again = command("diskspd -b64K -t3 a")
    assert any("same blocks" in notice.message for notice in again.warnings)


def test_interlocked_threads_share_a_position() -> None:
    (volume,) = only_run(command("diskspd -si -t4 -o8 x")).volumes
    assert (volume.name, volume.outstanding, volume.shares_device) == ("disk1", 32, False)


@pytest.mark.parametrize(
    ("options", "between_bytes", "align_bytes"),
    [("-b8K -s8b", 57344, 8192), ("-b64K -s1M", 983040, 65536), ("-b8K -s12K", 4096, 4096),
     ("-b8K -si64K -t4", 57344, 8192)],
)  # fmt: skip
def test_a_stride_is_the_way_from_one_begin_to_the_next(
    options: str, between_bytes: int, align_bytes: int
) -> None:
    spec = only_run(command(f"diskspd {options} x"))
    (stream,) = spec.streams
    assert stream.stride is not None
    assert (stream.stride.min_bytes, stream.stride.max_bytes) == (between_bytes, between_bytes)
    assert (stream.random_percent, stream.align_bytes) == (100.0, align_bytes)
    assert len(spec.volumes) == 1


@pytest.mark.parametrize("options", ["-b8K -s", "-b8K -s8K", "-b8K -s1b", "-b8K -si", "-b8K"])
def test_without_a_longer_stride_the_ios_follow_each_other(options: str) -> None:
    (stream,) = only_run(command(f"diskspd {options} x")).streams
    assert (stream.stride, stream.random_percent, stream.align_bytes) == (None, 0.0, None)


@pytest.mark.parametrize(
    ("option", "expected"),
    [("-Sb", (False, False)), ("-Su", (True, False)), ("-S", (True, False)), ("-Sw", (False, True)),
     ("-Suw", (True, True)), ("-S -Sw", (True, True)), ("-Sh", (True, True)),
     ("-h", (True, True)), ("-Sr", (True, False))],
)  # fmt: skip
def test_caching(option: str, expected: tuple[bool, bool]) -> None:
    (volume,) = only_run(command(f"diskspd {option} x")).volumes
    assert (volume.direct, volume.durable_writes) == expected


def test_threads_in_all_have_ios_on_every_target() -> None:
    spec = only_run(command("diskspd -F3 -o4 -r a b"))
    assert [(one.name, one.outstanding) for one in spec.volumes] == [("disk1", 12), ("disk2", 12)]


def test_threads_with_a_queue_for_all_targets() -> None:
    plan = command("diskspd -F3 -O4 -o9 -r a b")
    spec = only_run(plan)
    found = [(one.name, one.outstanding, one.queue and one.queue.name) for one in spec.volumes]
    assert found == [("disk1", 12, "all"), ("disk2", 12, "all")]
    assert outstanding_asked(spec.model_dump(mode="json")) == 12
    # Threads with positions of their own have a queue each.
    spec = only_run(command("diskspd -F2 -O4 a b"))
    found = [(one.name, one.outstanding, one.queue and one.queue.name) for one in spec.volumes]
    assert found == [
        ("disk1.t1", 4, "t1"),
        ("disk1.t2", 4, "t2"),
        ("disk2.t1", 4, "t1"),
        ("disk2.t2", 4, "t2"),
    ]
    assert outstanding_asked(spec.model_dump(mode="json")) == 8


def test_a_queue_of_one_target_is_its_own() -> None:
    (volume,) = only_run(command("diskspd -F3 -O4 -r a")).volumes
    assert (volume.outstanding, volume.queue) == (12, None)
    alone = command("diskspd -O7 -o3 -t2 -r a")
    assert only_run(alone).volumes[0].outstanding == 6
    assert any("-O has no effect without -F" in notice.message for notice in alone.warnings)


@pytest.mark.parametrize(
    ("options", "unit", "parts"),
    [
        ("-rdpct90/10:0/10:5/20", "percent", ((90, 10), (0, 10), (5, 20), (5, 60))),
        ("-rdpct60/50:40/50", "percent", ((60, 50), (40, 50))),
        ("-rdpct95/5:4/10", "percent", ((95, 5), (4, 10), (1, 85))),
        ("-rdabs90/10G:0/10G:5/20G", "bytes", ((90, 10 * GIB), (0, 10 * GIB), (5, 20 * GIB), (5, 0))),
        ("-rdabs100/1024b", "bytes", ((100, 4 * MIB),)),
    ],
)
def test_uneven_random_places(options: str, unit: str, parts: tuple[tuple[int, int], ...]) -> None:
    for line in (f"diskspd -b4K -r {options} x", f"diskspd {options} -rs20 -w100 -b4K x"):
        (stream,) = only_run(command(line)).streams
        assert stream.distribution is not None
        assert (stream.distribution.unit, stream.distribution.parts) == (unit, parts)


def test_a_rate_counts_per_thread_and_target() -> None:
    for option in ("-g1000i", "-g8192"):  # 8192 bytes per ms are 1000 I/Os of 8 KiB per second
        (step,) = command(f"diskspd -b8K -r {option} -t2 a b").plain_steps
        assert (step.rate.kind, step.rate.value) == ("fixed", 4000)


def test_the_used_part() -> None:
    (volume,) = only_run(command("diskspd -b4K -r -B1M:1M x")).volumes
    assert (volume.first_byte, volume.size_bytes) == (MIB, MIB)
    (volume,) = only_run(command("diskspd -b4K -r -B4b -f2M x")).volumes
    assert (volume.first_byte, volume.size_bytes) == (16 * KIB, 2 * MIB - 16 * KIB)


@pytest.mark.parametrize(
    ("options", "ios"), [("-t1 -i10", 10), ("-t4 -i10", 2), ("-F5 -i10", 2), ("-t20 -i10", 1)]
)
def test_the_ios_of_a_burst_are_divided_among_the_threads(options: str, ios: int) -> None:
    (stream,) = only_run(command(f"diskspd -o1 {options} -r -j50 x")).streams
    assert stream.think_time is not None
    assert (stream.think_time.pause_s, stream.think_time.after_ios) == (0.05, ios)


def test_a_time_of_ten_digits() -> None:
    assert only_run(command("diskspd -d2000000000 -r x")).elapsed_s == 2_000_000_000


def test_a_mix_of_random_and_sequential() -> None:
    (stream,) = only_run(command("diskspd -rs30 -b4K x")).streams
    assert stream.random_percent == 30


def test_the_last_of_two_values_counts() -> None:
    plan = command("diskspd -d100 -d30 x")
    assert only_run(plan).elapsed_s == 30
    assert any("given twice" in notice.message for notice in plan.warnings)


def test_sqlio() -> None:
    spec = only_run(command(r"sqlio -kW -t8 -s360 -o8 -frandom -b4 -BH -LS d:\TestFile.DAT"))
    (volume,), (stream,) = spec.volumes, spec.streams
    assert (volume.outstanding, volume.direct, volume.durable_writes) == (64, True, False)
    assert (stream.read_percent, stream.random_percent, spec.elapsed_s, spec.warmup_s) == (0, 100, 360, 0)
    assert stream.sizes.model_dump()["parts"] == ((4 * KIB, 100.0),)
    assert only_run(command("sqlio -kR -f1 -i2000000 -R2")).streams[0].random_percent == 0
    spec = only_run(command("sqlio -T67 -frandom -dEF x.dat"))
    assert [one.name for one in spec.volumes] == ["disk1", "disk2"]
    assert spec.streams[0].read_percent == 67


def test_a_parameter_file_of_sqlio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("param.txt").write_text("null:1g 2 0x0 100\n# a comment\n\nnull:2g 4 0x0 50\n")
    spec = only_run(load_workload(["sqlio", "-kR", "-frandom", "-o8", "-Fparam.txt"], overrides=Overrides()))
    found = [(one.url, one.outstanding, one.size_bytes) for one in spec.volumes]
    assert found == [("null:1073741824", 16, 100 * MIB), ("null:2147483648", 32, 50 * MIB)]


def test_a_path_of_this_machine_is_no_option(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(MIB))
    spec = only_run(load_workload(["diskspd", "/b8K", str(disk)], overrides=Overrides()))
    assert spec.volumes[0].url == f"file:{disk}"
    assert spec.streams[0].sizes.model_dump()["parts"] == ((8 * KIB, 100.0),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("diskspd -q3 x", "-q3: diskspd has no such option"),
        ("diskspd -r -rd90/10 x", "-rd90/10: no distribution"),
        ("diskspd -rdpct90/10 x", "-rdpct90/10 without random I/O"),
        ("diskspd -r -rdpct90 x", "-rd: 90: no part"),
        ("diskspd -r -rdpct101/10 x", "-rd: 101/10: no part"),
        ("diskspd -r -rdpct90/0 x", "-rd: 90/0: no part"),
        ("diskspd -r -rdpct50/10: x", "-rd: : no part"),
        ("diskspd -r -rdpct60/10:60/10 x", "120 % of the I/Os, which diskspd refuses"),
        ("diskspd -r -rdpct90/60:5/40 x", "95 % of the I/Os in 100 % of the target"),
        ("diskspd -r -rdpct100/60 x", "100 % of the I/Os in 60 % of the target"),
        ("diskspd -r -rdpct50/60:50/60 x", "100 % of the I/Os in 120 % of the target"),
        ("diskspd -b64K -r4K -rdabs50/16K x", "a part of 16,384 bytes is less than an I/O"),
        ("diskspd -b4K -r -rdabs50/10000 x", "a part of 10,000 bytes, on a grid of 4,096"),
        ("diskspd -b4K -r -rdabs50/0 x", "-rd: 50/0: no part"),
        ("diskspd -Xmissing.xml", "-Xmissing.xml: missing.xml: No such file"),
        ("diskspd -Xp.xml -b8K", "-b8K with -X, which diskspd refuses"),
        ("diskspd -b8K -Xp.xml x", "-b8K with -X, which diskspd refuses"),
        ("diskspd -Xp.xml -Xq.xml", "-X twice, which diskspd refuses"),
        ("diskspd -Rpxml -Xp.xml", "makes no load"),
        ("diskspd -Xp.xml x -d5", "an option behind a target"),
        ("diskspd -F2 -O0 a b", "-O0: I/Os in flight 0"),
        ("diskspd -F2 -O4 -r -g100 a b", "-O with -g, which diskspd refuses"),
        ("diskspd -F2 -O1 -i2 -j5 a b", "-O with -j, which diskspd refuses"),
        ("diskspd -s4K x", "less than an I/O, so that they overlap"),
        ("diskspd -s100000 x", "not a multiple of 512"),
        ("diskspd -Zabc x", "'abc': no size"),
        ("diskspd -p x", "-p is not supported"),
        ("diskspd -Sm x", "memory-mapped"),
        ("diskspd -b1000 x", "not a multiple of 512"),
        ("diskspd -b x", "-b: no value"),
        ("diskspd -b8X x", "'8X': no size"),
        ("diskspd -b0 x", "size 0: zero"),
        ("diskspd -r0 x", "random grid 0: zero"),
        ("diskspd -b8K -w50 -Z4096 x", "less than an I/O"),
        ("diskspd -w101 x", "write percent 101"),
        ("diskspd -t0 x", "threads 0"),
        ("diskspd -d1e9 x", "no whole number"),
        ("diskspd -r100 x", "not a multiple of 512"),
        ("diskspd -si -r x", "-si with -r"),
        ("diskspd -rs50 -si x", "-si with -rs"),
        ("diskspd -r -s x", "-s with -r"),
        ("diskspd -r -T1M -t2 x", "-T with -r"),
        ("diskspd -T1M x", "-T with one thread"),
        ("diskspd -t2 -F4 x", "-F with -t"),
        ("diskspd -rs0 x", "-rs0"),
        ("diskspd -rs50 -w50 x", "each sequential part one direction"),
        ("diskspd -B1M:1M -f4M x", "-f with a length in -B"),
        ("diskspd -i10 x", "-i and -j go together"),
        ("diskspd -Sbu x", "-Sbu: these exclude each other"),
        ("diskspd -Sh -Sw x", "-Shw: these exclude each other"),
        ("diskspd -b8K x -r", "-r: an option behind a target"),
        ("diskspd -r x X", "X: a target twice"),
        ("diskspd -c4K x", "no room for an I/O"),
        ("diskspd -c1G #1", "#1 is a drive"),
        ("diskspd -c1G x e:", "e: is a drive"),
        ("diskspd -t4 -T1G -c2G x", "thread 3 begins at byte"),
        ("diskspd -t9999 x", "9,999 threads with 2 I/Os each"),
        ("diskspd -o2 -i10 -j50 x", "a thread pauses as a whole"),
        ("diskspd -Z1M,file.bin x", "write data from a file"),
        ("diskspd -Zabc x", "data 'abc': no size"),
        ("diskspd -b8K -Z4K x", "-Z4K: less than an I/O"),
        ("diskspd -f1G -f2G x", "-f twice"),
        ("diskspd -r4K -r8K x", "-r twice"),
        ("diskspd -rs50 -rs60 x", "-rs twice"),
        ("diskspd -n -a0,1 x", "-n with -a"),
        ("diskspd -I9 x", "-I9, which diskspd refuses"),
        ("diskspd -fx x", "end 'x': no size"),
        ("diskspd -frq x", "-frq, which diskspd refuses"),
        ("diskspd -g0 x", "-g0: rate 0"),
        ("diskspd -o1 -i0 -j0 x", "-j0: pause 0"),
        ("diskspd -t2 -T0 x", "-T0: distance of the threads 0"),
        ("diskspd -vx x", "-vx, which diskspd refuses"),
        ("diskspd -R x", "-R, which diskspd refuses"),
        ("diskspd -e x", "-e, which diskspd refuses"),
        ("diskspd -aq x", "-aq, which diskspd refuses"),
        ("diskspd -d0 x", "duration 0: no load is made"),
        ("diskspd -d3000000000 x", "duration s '3000000000': more than 2,147,483,647"),
        ("diskspd -dlong x", "duration s 'long': no whole number"),
        ("diskspd \u2013b8K x", "\u2013b8K: begins with a long dash, which diskspd takes for a file"),
        ("sqlio -kR -frandom -v1.1.1 x", "blocks as in version 1.1.1 are not made"),
        ("diskspd -b8K", "command line: diskspd: no file or drive"),
        ("diskspd", "no file or drive"),
        ("sqlio -kR -f64 -t5 x", "-f64 with 5 threads and -i64"),
        ("sqlio -kR -f1 -t2 x", "-f1 with 2 threads and -i64"),
        ("sqlio -kR -f0 x", "-f0 with 1 threads"),
        ("sqlio -kR -fstripes x", "order 'stripes': no whole number"),
        ("sqlio -kX -frandom x", "-kX"),
        ("sqlio -kW -T60 -frandom x", "-k with -T"),
        ("sqlio -kW -frandom -Fmissing.txt x", "x beside -F"),
        ("diskspd -b8K -Rpxml x", "makes no load"),
        ("sqlio -kR -frandom -Fmissing.txt", "missing.txt: No such file"),
    ],
)
def test_refusals_have_their_reason(
    line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refusal(line).message


def test_what_diskspd_takes_is_taken() -> None:
    line = "diskspd -n -ag -frs -I3 -vs -Rxml -eNETWORK -es -x -C0 -D500 -rs100 -rs50 -r8K -Z64K x"
    assert only_run(command(line)).streams[0].random_percent == 50


def test_every_refused_option_says_why() -> None:
    for row in OPTIONS:
        if row.effect is OptionEffect.REFUSED:
            assert row.meaning in refusal(f"{row.tool} -{row.letters} x").message


def test_a_target_of_windows_needs_a_map() -> None:
    with pytest.raises(UserError) as caught:
        load_workload(["diskspd", "-b8K", r"E:\io.dat"])
    assert "--map disk1=TARGET" in str(caught.value.hint)
