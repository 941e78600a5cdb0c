"""Forms that job files of other projects have, and what fio 3.33 makes of them."""

from __future__ import annotations

import pytest
from linerate.workload.spec import SizeMix

from .conftest import ReadFio, only_run, refusal

TIMED = "[a]\nfilename=x\ntime_based\nruntime=9\n"


def test_time_based_alone_has_no_effect(fio: ReadFio) -> None:
    plan = fio("[a]\nfilename=x\nrw=write\nsize=1m\ntime_based=1\n")
    assert only_run(plan).streams[0].stop_at_end
    said = "time_based=1: no effect without runtime=, as in fio: the job ends by its size"
    assert said in [notice.message for notice in plan.warnings]


@pytest.mark.parametrize(("value", "elapsed_s"), [("30", 9), ("0", 360_000)])
def test_any_number_turns_a_keyword_on_that_may_be_alone(fio: ReadFio, value: str, elapsed_s: float) -> None:
    spec = only_run(fio(f"[a]\nfilename=x\nrw=write\nsize=1m\ntime_based={value}\nruntime=9\n"))
    assert (spec.streams[0].stop_at_end, spec.elapsed_s) == (value == "0", 9)
    refused = refusal(fio, f"{TIMED}direct=2\n").message
    assert refused == "w.fio:5: direct=2: neither 0 nor 1"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4k-64k", (4096, 65_536)),
        ("4k:64k", (4096, 65_536)),
        ("4k,64k-1m", (4096, 65_536)),
        ("4k:64k:1m", (4096, 65_536)),
        ("8k-", (8192, 4096)),
        ("-8k", None),
    ],
)
def test_sizes_by_direction_have_other_marks_than_a_comma(
    fio: ReadFio, text: str, sizes: tuple[int, int] | None
) -> None:
    job = f"{TIMED}rw=randrw\nbs={text}\n"
    if sizes is None:
        assert refusal(fio, job).message.startswith(f"w.fio:6: bs={text}: ")
        return
    (stream,) = only_run(fio(job)).streams
    assert (stream.sizes, stream.write_sizes) == (SizeMix.one(sizes[0]), SizeMix.one(sizes[1]))


def test_numbers_have_suffixes(fio: ReadFio) -> None:
    spec = only_run(fio(f"{TIMED}rw=randread\nioengine=libaio\niodepth=1k\nnumjobs=0x2\n"))
    assert spec.volumes[0].outstanding == 2048
    assert refusal(fio, f"{TIMED}numjobs=2x\n").message == "w.fio:5: numjobs=2x: not a whole number"


def test_a_percentage_may_have_two_signs(fio: ReadFio) -> None:
    spec = only_run(fio("[a]\nfilename=x\nrw=write\nsize=50%%\n"))
    assert spec.streams[0].range is not None
    assert (spec.streams[0].range.start, spec.streams[0].range.end) == (0, 50)


def test_of_several_sizes_with_colons_the_last_counts(fio: ReadFio) -> None:
    spec = only_run(fio("[a]\nfilename=x\nrw=randread\nsize=1m:3m:2m\noffset=4m:1m\n"))
    assert (spec.volumes[0].first_byte, spec.volumes[0].size_bytes) == (1 << 20, 2 << 20)
    assert refusal(fio, "[a]\nfilename=x\nsize=z:1m\n").message.startswith("w.fio:3: size=z:1m: not a number")


@pytest.mark.parametrize("engine", ["linuxaio", "aio"])
def test_other_names_of_libaio(fio: ReadFio, engine: str) -> None:
    assert only_run(fio(f"{TIMED}ioengine={engine}\niodepth=8\n")).volumes[0].outstanding == 8


def test_an_engine_from_outside_of_fio_is_named(fio: ReadFio) -> None:
    message = refusal(fio, f"{TIMED}ioengine=spdk_bdev\nspdk_json_conf=bdev.json\n").message
    assert "w.fio:5: ioengine=spdk_bdev: is not supported: Linerate has no client for it" in message
    assert "w.fio:6: spdk_json_conf=bdev.json: is not supported: it belongs to an engine" in message


@pytest.mark.parametrize(
    ("lines", "percent"),
    [
        ("rw=randwrite", 100),
        ("rw=write\nloops=2", 200),
        ("rw=randread\nloops=3\nnumjobs=2", 600),
        ("rw=randread\nsize=10%", 100),
    ],
)
def test_the_size_of_a_device_says_how_much_is_moved(fio: ReadFio, lines: str, percent: float) -> None:
    (stream,) = only_run(fio(f"[a]\nfilename=/dev/sdx\n{lines}\n")).streams
    assert (stream.stop_after_percent, stream.stop_after_bytes, stream.stop_at_end) == (percent, None, False)


def test_a_mix_with_rates_divides_the_size_of_a_device(fio: ReadFio) -> None:
    reads, writes = only_run(fio("[a]\nfilename=/dev/sdx\nrw=randrw\nrate_iops=300,100\n")).streams
    assert (reads.stop_after_percent, writes.stop_after_percent) == (75, 25)


def test_comments_in_other_encodings_do_not_matter(fio: ReadFio) -> None:
    text = TIMED.encode() + b"bs=8k ; gr\xfc\xdfe\ndescription=caf\xe9\n"
    assert only_run(fio(text)).streams[0].sizes == SizeMix.one(8192)
    assert only_run(fio(f"{TIMED}bs=8k\r\n".encode("utf-16"))).streams[0].sizes == SizeMix.one(8192)
