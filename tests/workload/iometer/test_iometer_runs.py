"""Workers, targets and access specifications as runs: volumes, queues, streams, order, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap
from linerate.workload.spec import SizeMix, ThinkTime

from .conftest import ReadIcf, only_run, refusal, specs_of
from .writer import Icf, Spec, Work

SEQ = Spec("seq", ((65536, 100, 100, 0, 0, 1, 0, 0),))
RANDOM = Spec("random", ((4096, 100, 0, 100, 0, 1, 4096, 0),))


def one(*lines: tuple[int, ...], **worker: object) -> Icf:
    """A worker with one specification of these lines."""
    return Icf(specs=(Spec(lines=lines),), workers=(Work(**worker),))  # type: ignore[arg-type]


def test_each_assigned_specification_is_a_run_with_its_warm_up(icf: ReadIcf) -> None:
    plan = icf(
        Icf(specs=(SEQ, RANDOM, Spec()), workers=(Work(specs=("random", "SEQ")),), run_s=3725, ramp_s=30)
    )
    runs = list(plan.steps())
    assert [run.label for run in runs] == ["random", "seq"]
    assert [(run.spec.elapsed_s, run.spec.warmup_s, run.spec.interval_s) for run in runs] == [
        (3725, 30, 1)
    ] * 2
    first, second = (run.spec.streams[0] for run in runs)
    assert (first.sizes, first.read_percent, first.random_percent, first.align_bytes) == (
        SizeMix.one(4096),
        0,
        100,
        4096,
    )
    assert (second.sizes, second.read_percent, second.random_percent, second.align_bytes) == (
        SizeMix.one(65536),
        100,
        0,
        None,
    )


def test_the_same_specification_twice_is_two_runs_with_labels_of_their_own(icf: ReadIcf) -> None:
    plan = icf(Icf(workers=(Work(specs=("4k", "4k")),)))
    assert [run.label for run in plan.steps()] == ["4k", "4k #2"]


def test_workers_run_their_nth_specifications_together_and_idle_ones_pause(icf: ReadIcf) -> None:
    workers = (
        Work("a", ("seq", "random", "idle"), ("x",)),
        Work("b", ("Idle", "seq", "Idle"), ("y",)),
        Work("c", ("seq",), ()),
    )
    plan = icf(Icf(specs=(SEQ, RANDOM), workers=workers))
    runs = list(plan.steps())
    assert [run.label for run in runs] == ["seq", "random+1"]
    assert [[stream.name for stream in run.spec.streams] for run in runs] == [["a"], ["a", "b"]]
    assert [[volume.name for volume in run.spec.volumes] for run in runs] == [["disk1"], ["disk1", "disk2"]]
    told = [notice.message for notice in plan.warnings]
    assert "1 worker without targets: no load, as in Iometer" in told
    assert "run 3: all workers are idle: left out; Iometer waits for 10 s" in told


def test_outstanding_is_per_worker_and_target_and_like_workers_share_a_queue(icf: ReadIcf) -> None:
    workers = [Work(f"Worker {n}", ("random",), ("x", "y"), outstanding=16) for n in range(1, 5)]
    spec = only_run(icf(Icf(specs=(RANDOM,), workers=workers)))
    assert [(volume.name, volume.outstanding, volume.shares_device) for volume in spec.volumes] == [
        ("disk1", 64, False),
        ("disk2", 64, False),
    ]
    assert [stream.name for stream in spec.streams] == ["Worker 1", "Worker 2", "Worker 3", "Worker 4"]
    assert {stream.volumes for stream in spec.streams} == {("disk1", "disk2")}
    assert spec.shares == "uncontrolled"


@pytest.mark.parametrize(
    "other",
    [
        Work("b", ("seq",), ("x",)),
        Work("b", ("random",), ("x",), outstanding=9),
        Work("b", ("random",), ("x",), sectors=4096),
        Work("b", ("random",), ("x",), start=8),
        Work("b", ("random",), ("x",), pattern=0),
    ],
)
def test_workers_that_differ_on_a_target_have_a_volume_each(icf: ReadIcf, other: Work) -> None:
    spec = only_run(icf(Icf(specs=(SEQ, RANDOM), workers=(Work("a", ("random",), ("x",)), other))))
    assert [(volume.name, volume.shares_device) for volume in spec.volumes] == [
        ("disk1.w1", True),
        ("disk1.w2", True),
    ]
    assert [stream.volumes for stream in spec.streams] == [("disk1.w1",), ("disk1.w2",)]


def test_sequential_workers_on_one_target_each_have_a_position(icf: ReadIcf) -> None:
    plan = icf(Icf(specs=(SEQ,), workers=[Work(name, ("seq",), ("x",)) for name in "ab"]))
    assert [stream.cursors for stream in only_run(plan).streams] == [1, 1]
    assert any("2 workers go through disk1, each from a position of its own" in str(n) for n in plan.warnings)


def test_workers_of_the_same_name_are_told_apart(icf: ReadIcf) -> None:
    spec = only_run(icf(Icf(workers=[Work(targets=(name,)) for name in "xyz"])))
    assert [stream.name for stream in spec.streams] == ["Worker 1", "Worker 1 2", "Worker 1 3"]


def test_of_a_drive_with_a_label_the_drive_alone_counts(icf: ReadIcf) -> None:
    workers = (Work("a", targets=('C: "System"',)), Work("b", targets=("c:", 'D: "Data"')))
    spec = only_run(icf(Icf(workers=workers)))
    assert [volume.name for volume in spec.volumes] == ["disk1", "disk2"]


def test_lines_are_one_stream_with_sizes_by_direction(icf: ReadIcf) -> None:
    spec = only_run(icf(one((512, 20, 100, 100, 0, 1, 0, 0), (4096, 80, 25, 100, 0, 1, 0, 0), (0,) * 8)))
    (stream,) = spec.streams
    assert stream.read_percent == pytest.approx(40)
    assert isinstance(stream.sizes, SizeMix)
    assert dict(stream.sizes.parts) == pytest.approx({512: 50, 4096: 50})
    assert stream.write_sizes == SizeMix.one(4096)
    assert stream.align_bytes == 512


def test_lines_with_the_same_share_of_reads_have_the_same_sizes_in_both_directions(icf: ReadIcf) -> None:
    (stream,) = only_run(icf(one((512, 10, 80, 100, 0, 1, 0, 0), (4096, 90, 80, 100, 0, 1, 0, 0)))).streams
    assert (stream.read_percent, stream.write_sizes) == (80, None)
    assert stream.sizes == SizeMix(parts=((512, 10.0), (4096, 90.0)))


def test_data_patterns_and_seeds(icf: ReadIcf) -> None:
    for pattern, ratio in ((0, 512), (1, None), (2, None)):
        plan = icf(Icf(specs=(RANDOM,), workers=(Work(specs=("random",), pattern=pattern, seed=77),)))
        assert (only_run(plan).streams[0].compression_ratio, only_run(plan).seed) == (ratio, 77)
        assert any("writes repeat one byte" in str(notice) for notice in plan.warnings) == (pattern == 0)
    assert only_run(icf(Icf(specs=(SEQ,), workers=(Work(specs=("seq",), pattern=0),)))).seed == 1


def test_places_are_on_the_grid_of_the_disk_and_not_of_the_used_part(icf: ReadIcf) -> None:
    volume = only_run(icf(one((8192, 100, 100, 100, 0, 1, 8192, 0), start=3, sectors=100))).volumes[0]
    assert (volume.first_byte, volume.size_bytes) == (8192, 100 * 512 - (8192 - 3 * 512))


def test_align_0_is_sectors_and_a_notice_says_so(icf: ReadIcf) -> None:
    plan = icf(one((4096, 100, 100, 50, 0, 1, 0, 0)))
    assert only_run(plan).streams[0].align_bytes == 512
    assert any(
        "align 0: random places are on sectors of 512 bytes" in str(notice) for notice in plan.warnings
    )


def test_sequential_ios_that_do_not_fill_the_grid_leave_the_rest_out(icf: ReadIcf) -> None:
    assert only_run(icf(one((512, 100, 100, 0, 0, 1, 4096, 0)))).streams[0].align_bytes == 4096


def test_lines_have_random_places_and_grids_of_their_own(icf: ReadIcf) -> None:
    # Three lines of the kind of Iometer's `All in one`, which has 24 of them.
    lines = (
        (512, 50, 100, 0, 0, 1, 0, 0),
        (4096, 30, 75, 100, 0, 1, 4096, 0),
        (32768, 20, 0, 50, 0, 1, 0, 0),
    )
    plan = icf(one(*lines))
    (stream,) = only_run(plan).streams
    found = [
        (part.size_bytes, part.share_percent, part.read_percent, part.random_percent, part.align_bytes)
        for part in stream.mix
    ]
    assert found == [(512, 50, 100, 0, 512), (4096, 30, 75, 100, 4096), (32768, 20, 0, 50, 512)]
    assert (stream.read_percent, stream.random_percent, stream.align_bytes) == (72.5, 40, 4096)
    sizes = (stream.sizes, stream.write_sizes)
    assert all(isinstance(one, SizeMix) for one in sizes)
    assert {size for one in sizes if isinstance(one, SizeMix) for size, _ in one.parts} == {512, 4096, 32768}
    assert any("random places are on sectors" in str(notice) for notice in plan.warnings)


def test_lines_with_one_kind_of_places_are_one_kind_of_io(icf: ReadIcf) -> None:
    for lines in (
        (PLAIN, (8192, 50, 0, 100, 0, 1, 4096, 0)),
        ((4096, 50, 100, 0, 0, 1, 0, 0), (8192, 50, 100, 0, 0, 1, 4096, 0)),  # whole I/Os follow each other
    ):
        assert only_run(icf(one(*lines))).streams[0].mix == ()


@pytest.mark.parametrize(("burst", "after_ios"), [(0, 1), (1, 1), (4, 4)])
def test_a_delay_is_a_pause_of_the_one_io_in_flight(icf: ReadIcf, burst: int, after_ios: int) -> None:
    (stream,) = only_run(icf(one((4096, 100, 100, 100, 10, burst, 4096, 0)))).streams
    assert stream.think_time == ThinkTime(pause_s=0.01, after_ios=after_ios)


PLAIN = (4096, 50, 100, 100, 0, 1, 4096, 0)
REFUSED = {
    "a delay of some lines": (one(PLAIN, (4096, 50, 100, 100, 5, 1, 4096, 0)), "delay 5 is not supported"),
    "bursts of several lines": (one(PLAIN, (4096, 50, 100, 100, 0, 4, 4096, 0)), "burst 4 is not supported"),
    "a reply": (one((4096, 100, 100, 100, 0, 1, 4096, 512)), "reply 512 is not supported"),
    "a delay with several I/Os": (
        one((4096, 100, 100, 100, 5, 1, 4096, 0), outstanding=2),
        "delay 5 of Worker 1 with 2 I/Os in flight is not supported",
    ),
    "a delay with several targets": (
        one((4096, 100, 100, 100, 5, 1, 4096, 0), targets=("x", "y")),
        "delay 5 of Worker 1 with 2 I/Os in flight is not supported",
    ),
    "a network worker": (
        Icf(workers=(Work(kind="NETWORK,TCP"),)),
        "worker Worker 1: NETWORK is not supported",
    ),
    "connections without a transaction": (
        Icf(workers=(Work(transactions=0),)),
        "0 transactions per connection are not supported",
    ),
    "a part that holds no I/O": (
        one((65536, 100, 100, 100, 0, 1, 0, 0), sectors=8),
        "8 sectors do not hold an I/O",
    ),
    "too many I/Os": (
        Icf(workers=[Work(outstanding=60000), Work("b", outstanding=60000)]),
        "120,000 I/Os in flight",
    ),
    "nothing to do": (Icf(workers=(Work(specs=()),)), "no worker has both targets and access specifications"),
    "nowhere to do it": (Icf(workers=(Work(targets=()),)), "no worker has both targets and access"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_changes_the_load_is_refused_by_name_with_line_and_reason(icf: ReadIcf, name: str) -> None:
    text, expected = REFUSED[name]
    error = refusal(icf, text)
    assert expected in error.message
    assert error.message.startswith("w.icf:")
    assert error.hint


def test_managers_without_targets_are_no_hosts(icf: ReadIcf) -> None:
    assert len(icf(Icf(more_managers=((Work(targets=()),), ())))) == 1


def test_targets_are_mapped_by_name_text_or_pattern(icf: ReadIcf) -> None:
    config = Icf(workers=(Work(targets=("PHYSICALDRIVE:1", 'E: "x"', "/tmp/no-such-file-1")),))
    luns = LunMap({"disk1": "null:1g", 'E: "x"': "null:2g", "/tmp/*": "null:{n}g"})
    assert [volume.url for volume in only_run(icf(config, luns=luns)).volumes] == [
        f"null:{size << 30}" for size in (1, 2, 3)
    ]
    with pytest.raises(UserError, match="--map disk4: no volume has this name or lun"):
        icf(config, luns=LunMap({"*": "null:1g", "disk4": "null:1g"}))


def test_volumes_of_single_workers_can_be_mapped_too(icf: ReadIcf) -> None:
    config = Icf(specs=(SEQ, RANDOM), workers=(Work("a", ("random",)), Work("b", ("seq",))))
    luns = LunMap({"disk1": "null:1g", "disk1.w2": "null:2g"})
    assert [volume.url for volume in only_run(icf(config, luns=luns)).volumes] == [
        f"null:{size << 30}" for size in (1, 2)
    ]


def test_a_target_of_iometers_host_must_be_mapped(icf: ReadIcf) -> None:
    with pytest.raises(UserError) as caught:
        icf(Icf(), luns=LunMap({}))
    assert caught.value.message.endswith("target PHYSICALDRIVE:1: a disk of the host where Iometer ran")
    assert caught.value.hint == "say where it is: --map disk1=TARGET, or --target"


def test_files_are_made_where_their_size_is_known(icf: ReadIcf) -> None:
    luns = LunMap({"disk1": "new.img"})
    plan = icf(Icf(workers=(Work(sectors=2048),)), luns=luns)
    (volume,) = only_run(plan).volumes
    assert (volume.create, volume.size_bytes, volume.direct) == (True, 1 << 20, True)
    assert any("is made unwritten" in str(notice) for notice in plan.warnings)
    with pytest.raises(UserError, match="does not exist"):
        icf(Icf(), luns=luns)
    with pytest.raises(UserError, match="no such device"):
        icf(Icf(workers=(Work(sectors=2048),)), luns=LunMap({"disk1": "/dev/no-such-device-1"}))
    assert not Path("new.img").exists()


def test_a_later_specification_of_the_same_name_replaces_the_first(icf: ReadIcf) -> None:
    plan = icf(Icf(specs=(Spec("x", SEQ.lines), Spec("X", RANDOM.lines)), workers=(Work(specs=("x",)),)))
    assert only_run(plan).streams[0].random_percent == 100
    assert any("replaces that of line" in str(notice) for notice in plan.warnings)


def test_what_no_worker_has_assigned_does_not_matter(icf: ReadIcf) -> None:
    strange = Spec("strange", ((1000, 100, 67, 100, 5, 1, 77, 512),))
    assert specs_of(icf(Icf(specs=(Spec(), strange)))) == specs_of(icf(Icf()))
