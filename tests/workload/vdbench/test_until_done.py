"""Runs that their work ends, beside long runs of a known length."""

from __future__ import annotations

from pathlib import Path

from linerate.workload import LunMap, Overrides, RunPlan, load_workload

NULL = LunMap({"*": "null:1g"})
FILE = (
    "{general}sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1,rdpct=100\n"
    "rd=rd1,wd=wd1,iorate=max,elapsed={elapsed},interval=1,warmup=1\n"
)


def _plan(
    tmp_path: Path,
    *,
    general: str = "",
    elapsed: str = "10",
    elapsed_s: float | None = None,
    time_scale: float | None = None,
) -> RunPlan:
    path = tmp_path / "w.txt"
    path.write_text(FILE.format(general=general, elapsed=elapsed))
    return load_workload(path, overrides=Overrides(luns=NULL, elapsed_s=elapsed_s, time_scale=time_scale))


def test_a_long_time_of_the_user_is_a_known_length(tmp_path: Path) -> None:
    for elapsed in ("100h", "360000", "6000m"):
        plan = _plan(tmp_path, elapsed=elapsed)
        (run,) = plan.steps()
        assert not run.ends_when_done
        assert plan.seconds == 360_001


def test_the_fill_of_volumes_ends_when_they_are_full(tmp_path: Path) -> None:
    filling, measuring = _plan(tmp_path, general="formatsds=yes\n").steps()
    assert (filling.ends_when_done, measuring.ends_when_done) == (True, False)
    assert "until every volume is full" in filling.banner


def test_only_a_time_of_the_user_ends_the_fill_earlier(tmp_path: Path) -> None:
    scaled, _ = _plan(tmp_path, general="formatsds=yes\n", time_scale=0.1).steps()
    assert scaled.ends_when_done
    assert scaled.spec.elapsed_s == 360_000
    timed, _ = _plan(tmp_path, general="formatsds=yes\n", elapsed_s=5).steps()
    assert not timed.ends_when_done
    assert "elapsed=5;" in timed.banner
