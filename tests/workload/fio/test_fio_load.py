"""What a job does to its files: rates by direction, numbers behind rw=, pauses, and checks of data."""

from __future__ import annotations

import pytest
from linerate._core import Run
from linerate.workload.spec import ByteSpan, OpenArrival, PlaceDistribution, RunSpec, SizeMix, ThinkTime

from .conftest import ReadFio, only_run, refusal

TIMED = "time_based\nruntime=9\n"
BASE = f"[global]\nfilename=x\n{TIMED}"
AMOUNT = "[a]\nfilename=x\nsize=64k\n"


def accepted(spec: RunSpec) -> RunSpec:
    """The same, after the data plane has accepted it."""
    Run.prepare(spec.seam_json()).discard()
    return spec


def test_a_rate_of_a_mix_is_one_of_each_direction(fio: ReadFio) -> None:
    plan = fio(f"{BASE}[a]\nrw=randrw\nrwmixread=90\nrate_iops=400,100\nnumjobs=2\nbs=4k,8k\n")
    run = plan.next(None)
    assert run is not None
    assert run.spec.arrival == OpenArrival(process="deterministic", rate_iops=1000)
    assert [(s.name, s.read_percent, s.share_percent, s.sizes) for s in run.spec.streams] == [
        ("a.read", 100, 80, SizeMix.one(4096)),
        ("a.write", 0, 20, SizeMix.one(8192)),
    ]
    accepted(run.spec)


def test_one_rate_holds_for_both_directions(fio: ReadFio) -> None:
    run = fio(f"{BASE}[a]\nrw=rw\nrwmixread=90\nrate=4m\nbs=4k\n").next(None)
    assert run is not None
    assert run.spec.arrival == OpenArrival(process="deterministic", rate_iops=2048)
    assert [stream.share_percent for stream in run.spec.streams] == [50, 50]


@pytest.mark.parametrize(
    ("rate", "rates"), [(",100", [None, 100]), ("100,", [100, None]), ("100,0", [100, None])]
)
def test_one_direction_may_be_without_a_rate(fio: ReadFio, rate: str, rates: list[float | None]) -> None:
    spec = only_run(fio(f"{BASE}[a]\nrw=randrw\nrate_iops={rate}\n"))
    assert [stream.rate_iops for stream in spec.streams] == rates
    assert accepted(spec).arrival.kind == "closed"


def test_the_rate_of_the_other_direction_does_not_matter(fio: ReadFio) -> None:
    run = fio(f"{BASE}[a]\nrw=randwrite\nrate_iops=400,100\n").next(None)
    assert run is not None
    assert run.spec.arrival == OpenArrival(process="deterministic", rate_iops=100)


def test_a_rate_in_bytes_needs_one_size(fio: ReadFio) -> None:
    error = refusal(fio, f"{BASE}[a]\nrw=randread\nbssplit=4k/50:8k/50\nrate=1m\n")
    assert error.message == "w.fio:8: rate=1m: is not supported: a rate in bytes needs one I/O size"


def test_a_sequential_mix_has_a_place_for_each_direction(fio: ReadFio) -> None:
    (stream,) = accepted(only_run(fio(f"{BASE}[a]\nrw=rw\n"))).streams
    assert (stream.separate_directions, stream.random_percent) == (True, 0)
    assert not only_run(fio(f"{BASE}[a]\nrw=randrw\n")).streams[0].separate_directions
    # Both directions together move the size, so the end of the file is not the end of the run.
    spec = only_run(fio(f"{AMOUNT}rw=rw\n"))
    assert (spec.streams[0].stop_after_bytes, spec.streams[0].stop_at_end) == (64 << 10, False)


def test_ios_at_each_random_place(fio: ReadFio) -> None:
    (stream,) = accepted(only_run(fio(f"{BASE}[a]\nrw=randread:8\n"))).streams
    assert (stream.ios_per_place, stream.random_percent) == (8, 100)
    assert only_run(fio(f"{BASE}[a]\nrw=randread:1\nrw_sequencer=identical\n")).streams[0].ios_per_place == 1


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("rw=randread:8\nrw_sequencer=identical", "w.fio:7: rw_sequencer=identical: is not supported"),
        ("rw=randrw:8", "w.fio:6: rw=randrw:8: is not supported"),
        ("rw=randread:8\npercentage_random=50", "w.fio:7: percentage_random=50: is not supported"),
        ("rw=read:-4k", "w.fio:6: rw=read:-4k: is not supported: sequential I/Os go forward only"),
        ("rw=randread:x", "w.fio:6: rw=randread:x: not a whole number"),
        ("rw=randread:0", "w.fio:6: rw=randread:0: I/Os at each random place: 1 to"),
    ],
)
def test_numbers_behind_rw_that_are_refused(fio: ReadFio, lines: str, what: str) -> None:
    assert refusal(fio, f"{BASE}[a]\n{lines}\n").message.startswith(what)


def test_bytes_are_left_out_between_sequential_ios(fio: ReadFio) -> None:
    (stream,) = accepted(only_run(fio(f"{BASE}[a]\nrw=write:6k\nbs=4k\n"))).streams
    assert stream.stride == ByteSpan(min_bytes=6144, max_bytes=6144)
    assert (stream.align_bytes, stream.random_percent) == (2048, 100)


@pytest.mark.parametrize(
    ("lines", "moved"),
    [
        ("rw=read:4k", 64 << 10),
        ("rw=read:2k", 44 << 10),
        ("rw=write:8k", 24 << 10),
    ],
)
def test_how_much_is_moved_with_bytes_left_out(fio: ReadFio, lines: str, moved: int) -> None:
    # Counted in logs of fio: it begins again, unless the last I/O reaches the end.
    (stream,) = accepted(only_run(fio(f"{AMOUNT}{lines}\nbs=4k\n"))).streams
    assert stream.stop_after_bytes == moved


def test_pauses(fio: ReadFio) -> None:
    spec = accepted(only_run(fio(f"{BASE}[a]\nrw=randread\nthinktime=500\nnumjobs=4\n")))
    assert spec.streams[0].think_time == ThinkTime(pause_s=500e-6)
    assert spec.volumes[0].outstanding == 4
    (stream,) = only_run(fio(f"{BASE}[a]\nthinktime=2ms\nthinktime_blocks=16\nthinktime_spin=1ms\n")).streams
    assert stream.think_time == ThinkTime(pause_s=2e-3, after_ios=16)
    assert only_run(fio(f"{BASE}[a]\nthinktime=0\nthinktime_blocks=16\n")).streams[0].think_time is None


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (
            "ioengine=libaio\niodepth=4\nthinktime=1",
            "w.fio:8: thinktime=1: is not supported: with several I/Os",
        ),
        ("rate_iops=9\nthinktime=1", "w.fio:7: thinktime=1: is not supported: a rate fixes"),
        ("thinktime=1\nthinktime_iotime=5s", "w.fio:7: thinktime_iotime=5s: is not supported: pauses come"),
        ("thinktime=soon", "w.fio:6: thinktime=soon: not a number of seconds"),
    ],
)
def test_pauses_that_are_refused(fio: ReadFio, lines: str, what: str) -> None:
    assert refusal(fio, f"{BASE}[a]\n{lines}\n").message.startswith(what)


@pytest.mark.parametrize(
    ("lines", "back"),
    [
        ("rw=write\nverify=crc32c", True),
        ("rw=write\nverify=md5\nnumjobs=2", True),
        ("rw=write\nverify=crc32c\nramp_time=1", True),
        ("rw=randwrite\nverify=crc32c\nloops=2\nnumjobs=2", True),
        ("rw=write\nverify=crc32c\ndo_verify=0", False),
        ("rw=randwrite\nverify=crc32c\ndo_verify=0", False),
        (f"rw=randwrite\nverify=meta\n{TIMED}", False),
        (f"rw=randrw\nverify=sha1\n{TIMED}", False),
    ],
)
def test_data_is_checked_where_fio_does_the_same(fio: ReadFio, lines: str, back: bool) -> None:
    spec = accepted(only_run(fio(f"{AMOUNT}{lines}\n")))
    assert spec.verify == "on"
    assert {stream.read_back for stream in spec.streams} == {back}
    if back:
        assert all(stream.stop_at_end or stream.stop_after_bytes for stream in spec.streams)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (
            "rw=read\nverify=crc32c",
            "5: verify=crc32c: is not supported: a run does not know what an earlier one",
        ),
        ("rw=randrw\nverify=crc32c", "5: verify=crc32c: is not supported: fio reads all that the job wrote"),
        ("rw=write\nverify=pattern", "5: verify=pattern: is not supported: the data pattern"),
        ("rw=write\nverify=null", "5: verify=null: is not supported: fio reads back without comparing"),
        ("rw=write\nverify=crc99", "5: verify=crc99: is not supported: no method that fio has"),
        ("rw=write\nverify=md5\nverify_pattern=0xff", "6: verify_pattern=0xff: is not supported"),
        ("rw=write\nverify=md5\nverify_backlog=8", "6: verify_backlog=8: is not supported"),
        ("rw=write\nverify=md5\nverify_state_load=1", "6: verify_state_load=1: is not supported"),
        (
            "rw=write\nverify=md5\n[b]\nfilename=y\nrw=write\nsize=1m",
            "6: jobs a and b run at the same time and differ",
        ),
        (
            "rw=write\nverify=md5\n[b]\nfilename=x\nrw=write\nbs=8k\nsize=1m\nverify=md5",
            "6: [b]: x is used by other",
        ),
    ],
)
def test_checks_that_are_refused(fio: ReadFio, lines: str, what: str) -> None:
    assert refusal(fio, f"{AMOUNT}{lines}\n").message.startswith(f"w.fio:{what}")


def test_jobs_end_each_after_its_own_amount(fio: ReadFio) -> None:
    text = "[global]\nfilename=x\n[a]\nrw=randread\nsize=1m\nloops=2\nnumjobs=3\n[b]\nrw=write\nsize=4m\n"
    spec = accepted(
        only_run(
            fio(f"{text}[c]\nrw=randwrite\nfilename=y:z\nioengine=libaio\niodepth=2\nsize=8m\nio_size=1m\n")
        )
    )
    ends = {stream.name: (stream.stop_after_bytes, stream.stop_at_end) for stream in spec.streams}
    assert ends == {"a": (6 << 20, False), "b": (None, True), "c": (512 << 10, False)}
    assert spec.limits.bytes is None


@pytest.mark.parametrize(
    ("lines", "ios"),
    [("", 10), ("numjobs=2", 20), ("loops=3", 30), ("io_size=16k", 4), ("time_based\nruntime=1", None)],
)
def test_a_number_of_ios(fio: ReadFio, lines: str, ios: int | None) -> None:
    # As many as fio made.
    (stream,) = only_run(
        fio(f"[a]\nfilename=x\nrw=randread\nsize=1m\nbs=4k\nnumber_ios=10\n{lines}\n")
    ).streams
    assert stream.stop_after_bytes == (None if ios is None else ios * 4096)


def test_a_mix_with_rates_divides_its_amount(fio: ReadFio) -> None:
    run = fio(f"{AMOUNT}rw=randrw\nrate_iops=300,100\nbs=4k,8k\n").next(None)
    assert run is not None
    amounts = [stream.stop_after_bytes for stream in run.spec.streams]
    assert sum(amounts) == pytest.approx(64 << 10, abs=2)  # type: ignore[arg-type]
    assert amounts[0] / amounts[1] == pytest.approx(1.5, rel=1e-3)  # type: ignore[operator]
    error = refusal(fio, f"{AMOUNT}rw=randrw\nrate_iops=300,\n")
    assert error.message == "w.fio:1: [a]: with a rate for one direction, how much each moves is not known"


def test_what_a_warm_up_moves_is_part_of_the_amount(fio: ReadFio) -> None:
    text = f"{AMOUNT}rw=randread\nramp_time=2\nnumjobs=2\n[b]\nfilename=y\nrw=write\nsize=1m\nramp_time=2\n"
    spec = accepted(only_run(fio(text)))
    assert (spec.warmup_s, spec.limits.bytes) == (2, None)
    assert [(one.stop_after_bytes, one.stop_at_end) for one in spec.streams] == [
        (128 << 10, False),
        (None, True),
    ]


@pytest.mark.parametrize(
    ("lines", "percent", "at_end"),
    [("rw=randrw", 100, False), ("rw=write", None, True), ("rw=write\nloops=2\ntime_based", 200, False)],
)
def test_a_device_without_a_size_behind_a_warm_up(
    fio: ReadFio, lines: str, percent: float | None, at_end: bool
) -> None:
    (stream,) = accepted(only_run(fio(f"[a]\nfilename=/dev/sdx\nramp_time=10\n{lines}\n"))).streams
    assert (stream.stop_after_percent, stream.stop_at_end) == (percent, at_end)


@pytest.mark.parametrize(
    ("value", "unit", "parts"),
    [
        ("zoned:50/5:30/15:20/", "percent", ((50, 5), (30, 15), (20, 80))),
        ("zoned:60/10:40/40", "percent", ((60, 10), (40, 40), (0, 50))),
        ("zoned:10:90", "percent", ((10, 50), (90, 50))),
        ("zoned:0/10:100/90", "percent", ((0, 10), (100, 90))),
        ("zoned_abs:60/4m:40/16m", "bytes", ((60, 4 << 20), (40, 16 << 20))),
    ],
)
def test_areas_of_random_places(
    fio: ReadFio, value: str, unit: str, parts: tuple[tuple[float, float], ...]
) -> None:
    job = f"[a]\nfilename=x\n{TIMED}rw=randrw\nrandom_distribution={value}\n"
    (stream,) = accepted(only_run(fio(job))).streams
    assert stream.distribution == PlaceDistribution.model_validate({"unit": unit, "parts": parts})
    (sequential,) = only_run(fio(job.replace("randrw", "rw"))).streams
    assert sequential.distribution is None


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("zipf:1.2", "is not supported: random places are even, or have areas"),
        ("pareto:0.2", "is not supported: random places are even, or have areas"),
        ("zoned:50/5:50/,100/", "is not supported: reads and writes have the same areas"),
        ("zoned:50/5:30/15", "the shares add up to 80, not 100"),
        ("zoned:50/60:50/60", "the lengths add up to 120 percent, more than 100"),
        ("zoned:50/100:50/", "an area without length has a share"),
        ("zoned_abs:50/4m:50/", "each area of zoned_abs: has a length above 0"),
        ("zoned:x/5:50/", "not a whole number"),
        ("zoned:" + ":".join(["0/0"] * 257), "256 areas at most"),
    ],
)
def test_other_distributions_are_refused(fio: ReadFio, value: str, what: str) -> None:
    error = refusal(fio, f"[a]\nfilename=x\n{TIMED}rw=randread\nrandom_distribution={value}\n")
    assert error.message.startswith("w.fio:6: random_distribution=")
    assert what in error.message


def test_areas_fit_into_the_used_part(fio: ReadFio) -> None:
    job = f"[a]\nfilename=x\n{TIMED}rw=randread\nsize=8m\nrandom_distribution=zoned_abs:50/4m:50/"
    only_run(fio(f"{job}4m\n"))
    what = (
        "w.fio:1: [a]: the areas of zoned_abs: have 12582912 bytes, and the used part of a file has 8388608"
    )
    assert refusal(fio, f"{job}8m\n").message == what


def test_jobs_are_kept_with_their_options_and_streams(fio: ReadFio) -> None:
    (run,) = fio(f"{BASE}thread\n[a]\nrw=randrw\nrate_iops=10\n[b]\nfilename=y\nrw=read\nnumjobs=2\n").steps()
    assert [(job.name, job.streams) for job in run.jobs] == [
        ("a", ("a.read", "a.write")),
        ("b", ("b.1", "b.2")),
    ]
    options = run.jobs[1].options
    assert options["filename"] == "y"
    assert (options["thread"], options["bs"], options["numjobs"]) == ("1", "4096", "2")
