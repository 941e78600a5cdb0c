"""`linerate backup-load` on a file, a share and a LUN: what it says, what it keeps, and what it does not overwrite."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from linerate.array import EmbeddedArray, eight_volumes
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate
from tests.support import need
from tests.support.samba import PASSWORD, samba

SMALL = (
    "--size",
    "12m",
    "--used",
    "60",
    "--changed",
    "30",
    "--block",
    "1m",
    "--transfer",
    "256k",
    "--buffered",
)
PHASES = ["create", "full", "incremental 1", "incremental 2", "restore"]


def _load(folder: Path, url: str, *more: str, **env: str) -> dict[str, Any]:
    """The result of a backup that must succeed."""
    words = (
        "backup-load",
        url,
        *SMALL,
        "--incrementals",
        "2",
        "--json",
        "--output",
        str(folder / "run"),
        *more,
    )
    done = linerate(*words, **env)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _check(image: Path, kind: str) -> None:
    """QEMU and libvhdi accept the image."""
    words = (need.tool("qemu-img"), "check", "-f", "vhdx", str(image))
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert "No errors were found" in done.stdout, done.stdout + done.stderr
    told = subprocess.run(
        (need.tool("vhdiinfo"), str(image)), capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert kind in told.stdout.lower(), told.stdout


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fixed", "dynamic"])
def test_a_backup_on_a_file_is_verified_and_kept_as_a_run(tmp_path: Path, kind: str) -> None:
    image = tmp_path / "image.vhdx"
    result = _load(tmp_path, str(image), "--kind", kind)
    assert (result["state"], result["error"], result["kind"]) == ("complete", None, kind)
    phases = {phase["phase"]: phase for phase in result["phases"]}
    assert list(phases) == PHASES
    full, restore = phases["full"], phases["restore"]
    assert phases["create"]["data_bytes"] == (12 << 20 if kind == "fixed" else 0)
    assert restore["totals"]["verified_bytes"] == restore["data_bytes"] == full["data_bytes"] > 2 << 20
    assert full["gb_per_hour"] == pytest.approx(full["data_mbit_s"] * 3600 / 8000)
    _check(image, kind)
    run = RunDirectory.open(tmp_path / "run")
    assert (run.manifest.state, [step.key for step in run.manifest.steps]) == ("complete", PHASES)
    rows = run.intervals
    assert (
        rows.filter((rows["step"] == "full") & (rows["stream"] == "write_data"))["bytes"].sum()
        == full["data_bytes"]
    )
    assert "password" not in (tmp_path / "run" / "manifest.json").read_text("utf-8")
    report = linerate("report", tmp_path / "run")
    assert report.returncode == 0, report.stderr


def test_in_a_pipe_there_is_a_line_for_each_phase_and_a_table(tmp_path: Path) -> None:
    words = (
        "backup-load",
        tmp_path / "image.vhdx",
        *SMALL,
        "--output",
        tmp_path / "run",
        "--kind",
        "dynamic",
    )
    done = linerate(*words)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        "create",
        "full",
        "incremental 1",
        "restore",
    ]
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["phase", "data", "seconds"]
    assert rows[1].startswith("full ")
    assert any(line.startswith("verified: ") for line in rows)
    assert rows[-1] == f"run directory: {tmp_path / 'run'}"


def test_an_image_that_exists_is_not_overwritten_unasked(tmp_path: Path) -> None:
    image = tmp_path / "image.vhdx"
    image.write_bytes(b"not to be lost")
    words = ("backup-load", image, *SMALL, "--no-full", "--incrementals", "0", "--no-restore")
    done = linerate(*words, "--output", tmp_path / "run")
    assert done.returncode == 2
    assert "this run would overwrite" in done.stderr
    assert "--overwrite" in done.stderr
    assert image.read_bytes() == b"not to be lost"
    assert not (tmp_path / "run").exists()
    done = linerate(*words, "--output", tmp_path / "run", "--overwrite", "image")
    assert done.returncode == 0, done.stderr
    assert image.read_bytes().startswith(b"vhdxfile")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--size", "100k"), "--size 100k"),
        (("--size", "12m", "--transfer", "5k"), "--transfer 5k"),
        (("--size", "12m", "--block", "3m"), "--block 3m"),
        (("--size", "12m", "--used", "0"), "--used 0"),
        (("--size", "12m", "--no-full"), "--no-full"),
        (("--size", "12m", "--source", "no-such.vmdk"), "--source no-such.vmdk: there is no such file"),
        (("--size", "12m", "--overwrite", "other"), "--overwrite other"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = linerate("backup-load", tmp_path / "image.vhdx", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_null_volume_keeps_no_image() -> None:
    done = linerate("backup-load", "null:1g", "--size", "12m")
    assert done.returncode == 2
    assert "no image can be kept there" in done.stderr


def test_a_source_and_a_target_are_read_and_written(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for path in (source, target):
        path.write_bytes(bytes(12 << 20))
    more = ("--source", str(source), "--restore-to", str(target))
    done = linerate("backup-load", tmp_path / "image.vhdx", *SMALL, *more, "--output", tmp_path / "run")
    assert done.returncode == 2
    assert "target" in done.stderr
    result = _load(tmp_path, str(tmp_path / "image.vhdx"), *more, "--overwrite", "target")
    rows = RunDirectory.open(Path(result["directory"])).intervals
    bytes_of = {
        stream: rows.filter(rows["stream"] == stream)["bytes"].sum() for stream in set(rows["stream"])
    }
    assert bytes_of["read_source"] == bytes_of["write_data"]
    assert bytes_of["write_target"] == bytes_of["read_image"]
    assert any(target.read_bytes())
    assert not any(source.read_bytes())


@pytest.mark.parametrize("kind", ["fixed", "dynamic"])
def test_a_backup_on_a_lun(tmp_path: Path, kind: str) -> None:
    with EmbeddedArray(eight_volumes(16 << 20)) as array:
        result = _load(tmp_path, array.url(0), "--kind", kind, "--size", "8m")
    full = result["phases"][1]
    assert full["wire_bytes"] > full["data_bytes"]
    assert full["totals"]["flushes"] > 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fixed", "dynamic"])
def test_a_backup_on_a_share(tmp_path: Path, kind: str) -> None:
    with samba(tmp_path) as server:
        url, env = server.url("image.vhdx"), {"LINERATE_SMB_PASSWORD": PASSWORD}
        result = _load(tmp_path, url, "--kind", kind, "--set", "smb.signing=on", **env)
        _check(server.path("image.vhdx"), kind)
        grown = result["phases"][1]["totals"]["length_changes"]
        assert grown == 0 if kind == "fixed" else grown > 4
        for file in (tmp_path / "run").iterdir():
            assert PASSWORD.encode() not in file.read_bytes(), file
        # It is there now.
        done = linerate("backup-load", url, *SMALL, "--output", tmp_path / "again", **env)
        assert done.returncode == 2
        assert "this run would overwrite" in done.stderr


@pytest.mark.long
def test_ctrl_c_ends_it_at_once_with_a_closed_run(tmp_path: Path) -> None:
    words = ("backup-load", str(tmp_path / "image.vhdx"), "--size", "1t", "--kind", "dynamic", "--buffered")
    process = subprocess.Popen(
        [*COMMAND, *words, "--output", str(tmp_path / "run")],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        spool = tmp_path / "run" / "intervals.spool"
        until = time.monotonic() + TIMEOUT_S
        while not (spool.exists() and '"full"' in spool.read_text("utf-8")):
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert "interrupted; what was measured is kept" in said
    assert "its last phase is not complete" in said
    manifest = RunDirectory.open(tmp_path / "run").manifest
    assert [(step.key, step.state) for step in manifest.steps] == [
        ("create", "complete"),
        ("full", "interrupted"),
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--size", "65t", "--kind", "dynamic"), "at most 64t"),
        (("--size", "12m", "--outstanding", "0"), "--outstanding 0: out of range"),
    ],
)
def test_what_no_image_can_have_is_refused_before_a_file_is_made(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    done = linerate("backup-load", tmp_path / "image.vhdx", *words, "--output", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_backup_of_nothing_says_so(tmp_path: Path) -> None:
    words = ("--size", "3m", "--block", "1m", "--buffered", "--output", tmp_path / "run")
    done = linerate("backup-load", tmp_path / "image.vhdx", *words)
    assert done.returncode == 0, done.stderr
    assert "nothing on the disk was in use" in done.stdout
    assert "verified" not in done.stdout


def test_a_narrow_terminal_gets_the_columns_that_fit(tmp_path: Path) -> None:
    words = ("backup-load", str(tmp_path / "image.vhdx"), *SMALL, "--output", str(tmp_path / "run"))
    keeper, terminal = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        env=environment(COLUMNS="72"),
    ) as running:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(keeper, 4096):
                shown += part
        os.close(keeper)
        assert running.wait(TIMEOUT_S) == 0
    lines = shown.decode().splitlines()
    head = next(line for line in lines if line.startswith("phase"))
    assert "GB/h" in head
    assert "CPU s" not in head
    assert all(len(line) <= 72 or "/" in line for line in lines)
