"""`linerate run` of a trace: what it shows, and that it does what the trace says."""

from __future__ import annotations

from pathlib import Path

from linerate.results import RunDirectory

from tests.cli.conftest import linerate

_BLOCK = 4096


def _iolog(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(["fio version 3 iolog", "0 /dev/sdz add", *lines, ""]))
    return path


def test_a_dry_run_counts_the_trace(tmp_path: Path) -> None:
    lines = [
        f"{nth * 1000} /dev/sdz {'write' if nth % 4 == 0 else 'read'} {nth * _BLOCK} 4096"
        for nth in range(100)
    ]
    trace = _iolog(tmp_path / "log", lines)
    done = linerate("run", trace, "--target", "null:128k", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["d1", "/dev/sdz", "read", "75", "307,200", "4,096", "409,600"] in rows, done.stdout
    assert ["d1", "/dev/sdz", "write", "25", "102,400", "0", "397,312"] in rows, done.stdout
    assert "recorded: 100 I/Os in 0.099 s" in done.stdout
    assert "68 of 100 I/Os are beyond the end" in done.stdout


def test_a_replay_does_what_the_trace_says(tmp_path: Path) -> None:
    disk = tmp_path / "disk.img"
    disk.write_bytes(bytes(1 << 20))
    writes = [3, 77, 200]
    lines = [f"{nth * 20_000} /dev/sdz write {block * _BLOCK} 4096" for nth, block in enumerate(writes)]
    lines += [f"{nth * 1000} /dev/sdz read {nth * 8192} 8192" for nth in range(1, 50)]
    trace = _iolog(tmp_path / "log", lines)
    words = ("run", trace, "--map", f"/dev/sdz={disk}", "--time-scale", "2", "--output", tmp_path / "out")
    done = linerate(*words, "--overwrite", "all", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    data = disk.read_bytes()
    assert [at for at in range(256) if any(data[at * _BLOCK : (at + 1) * _BLOCK])] == writes
    run = RunDirectory.open(tmp_path / "out")
    assert int(run.intervals["ios"].sum()) == 52
    assert int(run.intervals["bytes"].sum()) == 3 * 4096 + 49 * 8192
