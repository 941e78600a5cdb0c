"""Files with known answers: the published Appendix C, the expansions of vdbench's guide, curves, shares,
windows."""

from __future__ import annotations

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, StepResult, load_workload
from linerate.workload.plan import curve_target_iops
from linerate.workload.spec import OpenArrival

from .conftest import Read

ARRAY = Overrides(luns=LunMap({"*": "iscsi://127.0.0.1:3260/iqn.2026-11.lab:demo/{n-1}"}))
BASE = "sd=sd1,lun=x,size=1g\nwd=wd1,sd=sd1\n"


def test_appendix_c_gives_three_runs_of_eight_volumes_with_five_outstanding() -> None:
    plan = load_workload("dell-nic", overrides=ARRAY)
    runs = list(plan.steps())
    assert [run.label for run in runs] == ["8k-random", "256k-seq-read", "256k-seq-write"]
    for run in runs:
        assert [volume.name for volume in run.spec.volumes] == [f"sd{n}" for n in range(1, 9)]
        assert {volume.outstanding for volume in run.spec.volumes} == {5}
        assert [volume.url[-2:] for volume in run.spec.volumes] == [f"/{n}" for n in range(8)]
        assert (run.spec.warmup_s, run.spec.elapsed_s, run.spec.interval_s) == (5, 1195, 5)
        assert run.average_label == "avg_2-240"
        assert all(stream.skip_first_block for stream in run.spec.streams)
    random, read, write = (run.spec for run in runs)
    assert [(s.share_percent, s.read_percent, s.random_percent) for s in random.streams] == [
        (67, 100, 100),
        (33, 0, 100),
    ]
    assert random.streams[0].sizes.model_dump()["parts"] == ((8192, 100.0),)
    assert random.shares == "controlled"
    assert runs[0].banner == "Starting RD=8k-random; I/O rate: Controlled MAX; elapsed=1200; For loops: None"
    for spec, percent in ((read, 100), (write, 0)):
        (stream,) = spec.streams
        assert (stream.read_percent, stream.random_percent, stream.share_percent) == (percent, 0, None)
        assert stream.sizes.model_dump()["parts"] == ((262144, 100.0),)
        assert spec.shares == "uncontrolled"
        assert spec.volumes[0].size_bytes == 30 << 20


def test_appendix_c_says_where_it_was_read_leniently() -> None:
    plan = load_workload("dell-nic", overrides=ARRAY)
    first = str(plan.warnings[0])
    assert "8k-random.vdb:4: kept 'system=localhost' after a blank; vdbench would drop it" in first


def test_strict_vdbench_would_not_run_appendix_c_as_printed(read: Read) -> None:
    text = "sd=sd1,lun=x\nsd=sd2,lun=x\nwd=wd1, sd=(sd1-sd2), rdpct=100\n\nrd=rd1, wd=wd*, elapsed=1200\n"
    with pytest.raises(UserError):
        read(text, lenient=False)
    assert len(read(text)) == 1


def test_seven_rates_by_seven_sizes_are_49_runs(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=(100-700,100),forxfersize=(1k-64k,d)\n")
    labels = [run.label for run in plan.steps()]
    assert len(labels) == len(set(labels)) == 49
    assert labels[0] == "rd1 xfersize=1k iorate=100"
    assert labels[1] == "rd1 xfersize=1k iorate=200"
    assert labels[7] == "rd1 xfersize=2k iorate=100"


def test_seven_rates_by_seven_sizes_by_seven_threads_are_343_runs(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=(100-700,100),forthreads=(1-64,d),forxfersize=(1k-64k,d)\n")
    runs = list(plan.steps())
    assert len({run.label for run in runs}) == len(runs) == 343
    assert runs[7].loops == (("threads", "1"), ("xfersize", "2k"))
    assert runs[49].loops == (("threads", "2"), ("xfersize", "1k"))
    assert runs[-1].spec.volumes[0].outstanding == 64


def test_loops_nest_in_their_order_of_appearance(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,rdpct=(0,100),th=(1,2)\nrd=rd2,wd=wd1,forth=(1,2),forrdpct=(0,100)\n")
    loops = [run.loops for run in plan.steps()]
    assert loops[1] == (("rdpct", "0"), ("threads", "2"))
    assert loops[5] == (("threads", "1"), ("rdpct", "100"))


def test_a_loop_that_an_rd_repeats_moves_behind_those_of_the_default(read: Read) -> None:
    plan = read(BASE + "rd=default,forxfersize=(4k,8k),forthreads=(1,2)\nrd=rd1,wd=wd1,forxfersize=(4k,8k)\n")
    loops = [run.loops for run in plan.steps()]
    assert loops[1] == (("threads", "1"), ("xfersize", "8k"))
    assert loops[2] == (("threads", "2"), ("xfersize", "4k"))


def test_the_banner_of_a_long_run_shows_whole_seconds(read: Read) -> None:
    (run,) = read(BASE + "rd=rd1,wd=wd1,elapsed=2600000,interval=10\n").steps()
    assert "elapsed=2600000;" in run.banner


def test_a_dedup_ratio_of_one_has_no_effect(read: Read) -> None:
    plan = read("dedupratio=1\n" + BASE + "rd=rd1,wd=wd1\n")
    assert any("dedupratio=1: no effect" in str(notice) for notice in plan.warnings)


@pytest.mark.parametrize(
    ("max_iops", "percent", "target"),
    [(780.4, 1, 10), (780.4, 5, 40), (780.4, 10, 80), (780.4, 100, 790), (50_000, 10, 5000), (50_010, 10, 5100),
     (1000, 100, 1000), (1001, 100, 1100), (0, 50, None)],
)  # fmt: skip
def test_curve_points_are_rounded_up_as_in_vdbench(
    max_iops: float, percent: float, target: float | None
) -> None:
    assert curve_target_iops(max_iops, percent) == target


def test_a_curve_runs_at_its_maximum_first(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=curve,curve=(1,5,10)\n")
    run = plan.next(None)
    assert run is not None
    assert (run.name, run.rate_text, run.spec.arrival.kind) == ("rd1", "Uncontrolled curve", "closed")
    seen = []
    while (run := plan.next(StepResult(iops=780.4, response_ms_mean=1.0))) is not None:
        assert isinstance(run.spec.arrival, OpenArrival)
        seen.append((run.name, run.rate_text, run.spec.arrival.rate_iops))
        if len(seen) == 1:
            assert run.spec.arrival.process == "poisson"
    assert seen == [("rd1_(1%)", "10", 10), ("rd1_(5%)", "40", 40), ("rd1_(10%)", "80", 80)]


def test_curve_points_refer_to_the_maximum_and_not_to_each_other(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=curve,curve=(50,100)\n")
    plan.next(None)
    first = plan.next(StepResult(10_000, 1.0))
    second = plan.next(StepResult(5_000, 1.0))
    assert first is not None
    assert second is not None
    assert [r.rate_text for r in (first, second)] == ["5000", "10000"]


def test_the_points_of_a_curve_whose_maximum_failed_are_left_out(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=max\nrd=rd2,wd=wd1,iorate=curve,curve=(50)\nrd=rd3,wd=wd1\n")
    names = [run.name for run in (plan.next(None), plan.next(StepResult(900, 1.0)), plan.next(None)) if run]
    assert names == ["rd1", "rd2", "rd3"]


def test_a_curve_without_skew_keeps_the_shares_of_its_maximum(read: Read) -> None:
    text = "sd=sd1,lun=x\nwd=wd1,sd=sd1\nwd=wd2,sd=sd1,rdpct=0\nrd=rd1,wd=wd*,iorate=curve,curve=(50)\n"
    plan = read(text)
    first = plan.next(None)
    assert first is not None
    assert [s.share_percent for s in first.spec.streams] == [None, None]
    point = plan.next(StepResult(4000, 1.0, {"wd1": 3000, "wd2": 1000}))
    assert point is not None
    assert [s.share_percent for s in point.spec.streams] == [75, 25]
    assert point.spec.shares == "controlled"


def test_stopcurve_ends_everything_after_a_slow_point(read: Read) -> None:
    text = BASE + "rd=rd1,wd=wd1,iorate=curve,curve=(10,50,100),stopcurve=20\nrd=rd2,wd=wd1\n"
    plan = read(text)
    plan.next(None)
    assert plan.next(StepResult(1000, 500.0)) is not None, "the maximum itself may be slow"
    assert plan.next(StepResult(100, 19.0)) is not None
    assert plan.stopped == ""
    assert plan.next(StepResult(500, 21.0)) is None
    assert plan.stopped == (
        "stopcurve=20: rd1_(50%) had a mean response time of 21 ms, so the other 2 runs are left out"
    )
    plan.rewind()
    assert plan.stopped == ""


def test_a_rate_in_percent_is_of_the_last_maximum(read: Read) -> None:
    plan = read(BASE + "rd=rd1,wd=wd1,iorate=(max,50%)\n")
    assert [run.rate_is_pending for run in plan.steps()] == [False, True]
    plan.next(None)
    run = plan.next(StepResult(900, 1.0))
    assert run is not None
    assert (run.rate_text, run.label) == ("450", "rd1 iorate=50%")
    with pytest.raises(UserError, match="iorate=50% needs an earlier run"):
        read(BASE + "rd=rd1,wd=wd1,iorate=50%\n")


def test_skew_of_67_and_33_over_eight_sds(read: Read) -> None:
    text = "sd=sd,lun=disk,count=(1,8)\nwd=wd1,sd=sd*,skew=67\nwd=wd2,sd=(sd1-sd8),skew=33\nrd=rd1,wd=wd*\n"
    spec = next(read(text).steps()).spec
    per_volume = [s.share_percent / len(s.volumes) for s in spec.streams if s.share_percent]
    assert per_volume == [8.375, 4.125]


@pytest.mark.parametrize(
    ("skews", "shares"),
    [((50, None, None), (50, 25, 25)), ((None, None), (None, None)), ((33.33334, 33.33333, 33.33333), None)],
)
def test_wds_without_skew_share_what_is_left(
    read: Read, skews: tuple[float | None, ...], shares: tuple[float | None, ...] | None
) -> None:
    wds = "".join(f"wd=wd{n},sd=sd1{f',skew={s}' if s else ''}\n" for n, s in enumerate(skews))
    spec = next(read(f"sd=sd1,lun=x\n{wds}rd=rd1,wd=wd*\n").steps()).spec
    assert tuple(s.share_percent for s in spec.streams) == (shares or skews)
    assert spec.shares == ("controlled" if any(skews) else "uncontrolled")


@pytest.mark.parametrize(
    ("skews", "message"),
    [((60, 30), "add up to 90, not 100"), ((60, 50), "add up to 110"), ((100, None), "leave nothing")],
)
def test_skews_that_do_not_fit_are_errors(read: Read, skews: tuple[float | None, ...], message: str) -> None:
    wds = "".join(f"wd=wd{n},sd=sd1{f',skew={s}' if s else ''}\n" for n, s in enumerate(skews))
    with pytest.raises(UserError, match=message):
        read(f"sd=sd1,lun=x\n{wds}rd=rd1,wd=wd*\n")


def test_a_fixed_rate_shares_evenly_and_is_open(read: Read) -> None:
    spec = read("sd=sd1,lun=x\nwd=wd1,sd=sd1\nwd=wd2,sd=sd1\nrd=rd1,wd=wd*,iorate=500,dist=det\n").next(None)
    assert spec is not None
    assert [s.share_percent for s in spec.spec.streams] == [50, 50]
    assert spec.spec.arrival == OpenArrival(process="deterministic", rate_iops=500)


@pytest.mark.parametrize(
    ("times", "window", "spec_times"),
    [
        ("elapsed=3,interval=1", "avg_2-3", (1, 2)),
        ("elapsed=60,interval=1,warmup=15", "avg_16-75", (15, 60)),
        ("elapsed=20m,interval=5", "avg_2-240", (5, 1195)),
        ("elapsed=1h,interval=60,warmup=2m", "avg_3-62", (120, 3600)),
    ],
)
def test_averaging_windows(read: Read, times: str, window: str, spec_times: tuple[float, float]) -> None:
    run = next(read(BASE + f"rd=rd1,wd=wd1,{times}\n").steps())
    assert run.average_label == window
    assert (run.spec.warmup_s, run.spec.elapsed_s) == spec_times


def test_prefill_runs_to_the_end_of_the_volumes(read: Read) -> None:
    text = "sd=sd1,lun=x\nwd=fill,sd=sd1,rdpct=0,seekpct=eof,xfersize=1m\nrd=rd1,wd=fill,elapsed=100h,interval=10\n"
    (stream,) = next(read(text).steps()).spec.streams
    assert (stream.stop_at_end, stream.random_percent, stream.read_percent) == (True, 0, 0)
