"""`linerate run` on an array with fewer or smaller LUNs than a workload expects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.results import RunDirectory

from tests.cli.conftest import linerate

SHORT = ("--elapsed", "1", "--warmup", "0", "--interval", "0.5", "--no-report")


@pytest.fixture(scope="module")
def two() -> Iterator[EmbeddedArray]:
    """Two LUNs of 48 MiB: less than the 8 LUNs of 100 GiB that the preset expects."""
    volumes = tuple(VolumeConfig(lun=lun, name=f"v{lun}", size_bytes=48 << 20) for lun in range(2))
    target = TargetConfig(name="iqn.2026-11.lab:two", volumes=volumes)
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=(target,))) as array:
        yield array


@pytest.mark.long
def test_a_preset_runs_on_the_luns_that_there_are(two: EmbeddedArray, tmp_path: Path) -> None:
    words = ("run", "--preset", "dell-nic", "--target", two.url("{n-1}"), *SHORT)
    done = linerate(*words, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert (
        "note: dell-nic: uses 2 of 8 volumes (sd1, sd2), because of sd3: the target has no such LUN; "
        "10 I/Os in flight, not 40\n" in done.stdout
    )
    assert "note: 8k-random: uses 48m of each volume, not 100g" in done.stdout
    steps = RunDirectory.open(tmp_path / "run").manifest.steps
    assert [step.state for step in steps] == ["complete"] * 3
    assert [[v["size_bytes"] for v in step.spec["volumes"]] for step in steps] == [
        [48 << 20] * 2,
        [30 << 20] * 2,
        [30 << 20] * 2,
    ]
    dry = linerate(*words, "--dry-run").stdout
    assert "uses 2 of 8 volumes" in dry
    assert "sd3 " not in dry


@pytest.mark.long
def test_as_json_the_notes_are_events(two: EmbeddedArray, tmp_path: Path) -> None:
    words = ("run", "--preset", "dell-nic", "--target", two.url("{n-1}"), *SHORT)
    events = [json.loads(line) for line in linerate(*words, "--json", cwd=tmp_path).stdout.splitlines()]
    notes = [event["message"] for event in events if event["type"] == "notice"]
    assert notes[0].startswith("dell-nic: uses 2 of 8 volumes")
    assert events[0]["type"] == "run_started"


def test_fewer_targets_than_volumes_of_a_preset(two: EmbeddedArray) -> None:
    done = linerate(
        "run", "--preset", "dell-nic", "--target", two.url(0), "--target", two.url(1), "--dry-run"
    )
    assert done.returncode == 0, done.stderr
    assert "uses 2 of 8 volumes (sd1, sd2); 10 I/Os in flight, not 40" in done.stdout


@pytest.mark.long
def test_volumes_says_how_many_are_used(two: EmbeddedArray, tmp_path: Path) -> None:
    file = tmp_path / "eight.vdb"
    sds = "".join(f"sd=sd{number},lun=/dev/none{number},size=1m\n" for number in range(1, 9))
    file.write_text(f"{sds}wd=wd1,sd=sd*,xfersize=4k\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n")
    for maps in (
        ("--target", two.url("{n-1}")),
        ("--target", two.url(0), "--target", two.url(1)),
        ("--map", f"sd1={two.url(0)}", "--map", f"sd2={two.url(1)}"),
    ):
        done = linerate("run", file, *maps, "--volumes", "2", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert "uses 2 of 8 volumes (sd1, sd2); 16 I/Os in flight, not 64" in done.stdout
        assert "sd3" not in done.stdout
    done = linerate("run", file, "--target", two.url(0), "--target", two.url(1), "--dry-run")
    assert done.returncode == 2
    assert "2 targets for 8 volumes" in done.stderr
    assert "--volumes 2 uses the first 2 only" in done.stderr
    done = linerate("run", file, "--target", two.url(0), "--volumes", "9")
    assert (done.returncode, "has 8 volumes" in done.stderr) == (2, True)


def test_a_file_of_the_user_is_not_changed_unasked(two: EmbeddedArray, tmp_path: Path) -> None:
    file = tmp_path / "large.vdb"
    file.write_text(
        "sd=sd1,lun=x,size=1g\nwd=wd1,sd=sd1,rdpct=100\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n"
    )
    done = linerate("run", file, "--target", two.url(0), cwd=tmp_path)
    assert done.returncode == 2
    assert "--size" in done.stderr
    assert "size_bytes" not in done.stderr
    assert "i/o rate" not in done.stdout, "no table of zeros"


def test_a_preset_whose_first_lun_is_not_there_says_so(two: EmbeddedArray, tmp_path: Path) -> None:
    done = linerate("run", "--preset", "dell-nic", "--target", two.url("{n+3}"), *SHORT, cwd=tmp_path)
    assert done.returncode == 2
    assert "sd1" in done.stderr
    assert "no such LUN" in done.stderr


@pytest.mark.long
def test_a_preset_fits_an_array_file_in_virtual_time(tmp_path: Path) -> None:
    file = tmp_path / "drives.toml"
    file.write_text(linerate("array", "examples", "drives").stdout)
    words = ("run", "--preset", "dell-nic", "--virtual-time", file, *SHORT)
    done = linerate(*words, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "uses 2 of 8 volumes (sd1, sd2)" in done.stdout
    assert "of each volume, not 100g" in done.stdout


@pytest.mark.long
def test_a_dry_run_names_the_volume_that_is_not_there_and_looks_at_the_others(
    two: EmbeddedArray, tmp_path: Path
) -> None:
    file = tmp_path / "three.vdb"
    sds = "".join(f"sd=sd{number},lun=x,size=1m\n" for number in range(1, 4))
    file.write_text(f"{sds}wd=wd1,sd=sd*\nrd=rd1,wd=wd1,iorate=max,elapsed=2,interval=1\n")
    lines = linerate("run", file, "--target", two.url("{n-1}"), "--dry-run").stdout.splitlines()
    found = {line.split()[0]: line for line in lines if line.strip().startswith("sd")}
    assert "in memory" in found["sd1"]
    assert "in memory" in found["sd2"]
    assert "no such LUN" in found["sd3"]
