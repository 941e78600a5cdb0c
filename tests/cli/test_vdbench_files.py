"""What a vdbench file asks for besides load: commands before and after, a limit on errors, its own histogram."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.report import vdbench_parser as parser

LOAD = """\
sd=sd1,lun=x,threads=4
wd=wd1,sd=sd1,xfersize=4k,rdpct=0,seekpct=100
rd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1
"""
SPORADIC = LOAD.replace("rdpct=0", "rdpct=90")
"""On a read-only volume one I/O in ten fails, and those between them do not."""


@pytest.fixture
def read_only() -> Iterator[str]:
    """URL of a volume that refuses writes."""
    volume = VolumeConfig(lun=0, name="v", size_bytes=16 << 20, read_only=True)
    target = TargetConfig(name="iqn.2026-11.lab.linerate:readonly", volumes=(volume,))
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=(target,))) as array:
        yield array.url(0)


def _run(tmp_path: Path, text: str, *words: str, target: str = "null:64m") -> Done:
    (tmp_path / "a.vdb").write_text(text, "ascii")
    told = ("--target", target, "--elapsed", "0.3", "--interval", "0.1", "--no-report")
    return linerate("run", "a.vdb", *told, "--output", "run", *words, cwd=tmp_path)


def test_commands_run_around_the_file_and_each_run(tmp_path: Path) -> None:
    text = (
        'startcmd="echo file starts >> log"\nendcmd="echo file ends >> log"\n'
        + LOAD.replace(
            "interval=1", 'interval=1,startcmd="echo run starts >> log",endcmd="echo run ends >> log"'
        )
        + "rd=rd2,wd=wd1,iorate=max,elapsed=2,interval=1\n"
    )
    done = _run(tmp_path, text)
    assert done.returncode == 0, done.stderr
    told = (tmp_path / "log").read_text().splitlines()
    assert told == ["file starts", "run starts", "run ends", "file ends"]


def test_a_curve_that_stops_says_on_what(tmp_path: Path) -> None:
    curve = "iorate=curve,curve=(1,50,100),stopcurve=0.000001"
    done = _run(tmp_path, LOAD.replace("iorate=max", curve))
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "stopcurve" in line]
    assert line.startswith("note: stopcurve=1e-06: rd1_(1%) had a mean response time of ")
    assert line.endswith(" ms, so the other 2 runs are left out")
    assert len(RunDirectory.open(tmp_path / "run").manifest.steps) == 2


@pytest.mark.parametrize("place", ["file", "run"])
def test_a_command_that_fails_ends_the_run(tmp_path: Path, place: str) -> None:
    text = 'startcmd="exit 7"\n' + LOAD if place == "file" else LOAD[:-1] + ',startcmd="exit 7"\n'
    done = _run(tmp_path, text)
    assert done.returncode == 2
    assert "the command 'exit 7' ended with code 7" in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "failed"
    assert "exit 7" in run.manifest.reason


def test_data_errors_end_the_run(read_only: str, tmp_path: Path) -> None:
    done = _run(tmp_path, "data_errors=5\n" + SPORADIC, "--elapsed", "30", target=read_only)
    assert done.returncode == 1, done.stderr
    assert "rd1: " in done.stderr
    assert "the workload ends at 5" in done.stderr
    assert "data_errors=" in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert (run.manifest.state, run.manifest.steps[0].state) == ("failed", "failed")
    assert run.intervals["errors"].sum() >= 5
    assert run.usage["end_s"].max() < 10
    assert {event.volume for event in run.events} == {"sd1"}


@pytest.mark.long
def test_errors_below_the_limit_only_taint_the_result(read_only: str, tmp_path: Path) -> None:
    done = _run(tmp_path, "data_errors=1000000000\n" + SPORADIC, target=read_only)
    assert done.returncode == 0, done.stderr
    assert "io-errors" in done.stdout
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "complete"
    assert run.intervals["errors"].sum() > 0


def test_histogram_limits_reach_the_report(tmp_path: Path) -> None:
    done = _run(tmp_path, "histogram=(5,1m)\n" + LOAD, "--vdbench-output", "out")
    assert done.returncode == 0, done.stderr
    assert RunDirectory.open(tmp_path / "run").manifest.steps[0].histogram_us == (5, 1000)
    (buckets,) = parser.histogram(tmp_path / "out" / "histogram.html").values()
    assert [(low, high) for low, high, _ in buckets] == [(0.0, 0.005), (0.005, 1.0), (1.0, float("inf"))]
