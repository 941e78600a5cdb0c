"""Pictures of an array: all disks on a small terminal, one picture after the other in a pipe, any encoding."""

from __future__ import annotations

import io
import json
import signal
import subprocess
from pathlib import Path

import pytest
from linerate.array.control import ControlClient, find
from linerate.array.control.report import ArrayReport, FileSystemReport, TaskReport
from linerate.array.control.server import ControlServer
from linerate.cli.array.layout import PictureLayout, fitted, text_lines
from linerate.cli.array.picture import picture
from rich.console import Console

from tests.array.fake import PretendArray
from tests.cli.conftest import COMMAND, TIMEOUT_S, environment

Served = tuple[PretendArray, ControlServer]


def _drawn(report: ArrayReport, width: int, height: int) -> list[str]:
    out = Console(width=width, height=height, force_terminal=True, color_system=None, file=io.StringIO())

    def draw(layout: PictureLayout) -> object:
        return picture(report, report, 1.0, layout)

    with out.capture() as captured:
        out.print(fitted(draw, out))  # type: ignore[arg-type]
    return captured.get().splitlines()


def _report() -> ArrayReport:
    return ControlClient.at(find(None)).report()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 40), (132, 50), (60, 24), (40, 20)])
def test_all_disks_fit(served: Served, width: int, height: int) -> None:
    served[0].states["d3"] = "failed"
    lines = _drawn(_report(), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for number in range(9):
        assert f"d{number}" in text
    for said in ("d3 failed", "degraded", "used (12%)", "10 GiB provisioned", "v1"):
        assert said in text
    assert "\u2026" not in text, "cut off"


def test_as_much_is_shown_as_there_is_room_for(served: Served) -> None:
    wide, narrow = _drawn(_report(), 100, 40), _drawn(_report(), 40, 40)
    assert any("queue" in line and "service" in line for line in wide)
    assert any("MB/s" in line and "service" not in line for line in narrow)
    many = _report()
    disks = many.storage.disks
    more = tuple(disks[0].model_copy(update={"name": f"m{number}"}) for number in range(60))
    many = many.model_copy(update={"storage": many.storage.model_copy(update={"disks": (*more, disks[3])})})
    lines = _drawn(many, 100, 40)
    assert len(lines) < 40
    assert "m59" in "\n".join(lines), "several disks in a row"


def test_a_shortage_of_space_is_shown(served: Served) -> None:
    report = _report()
    file_system = FileSystemReport(
        folder="/data", disks=("d0",), free_bytes=3 << 30, unallocated_bytes=9 << 30
    )
    raid = report.storage.raid_sets[0]
    task = TaskReport(kind="rebuild", done=0.5, lacks_space=True)
    storage = report.storage.model_copy(
        update={
            "file_systems": (file_system,),
            "raid_sets": (raid.model_copy(update={"task": task}),),
            "disks": (
                report.storage.disks[0].model_copy(update={"lacks_space": True}),
                *report.storage.disks[1:],
            ),
        }
    )
    text = "\n".join(text_lines(picture(report, report.model_copy(update={"storage": storage}), 1.0)))
    assert "/data: 3 GiB free, and sparse disks may still need 9 GiB" in text
    assert "waits for space" in text
    assert "no space left" in text


def test_memory_that_is_still_to_be_touched_is_told(served: Served) -> None:
    report = _report()
    assert "touching memory" not in "\n".join(text_lines(picture(report, report, 1.0)))
    report = report.model_copy(update={"untouched_bytes": 3 << 30})
    assert "touching memory: 3 GiB left" in "\n".join(text_lines(picture(report, report, 1.0)))


def _command(*words: str, **env: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "array", "show", "--seconds", "0.1", *words]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=environment(**env))


@pytest.mark.parametrize("words", [("--watch",), ("--watch", "--json")])
def test_a_watch_in_a_pipe_prints_one_picture_after_the_other(served: Served, words: tuple[str, ...]) -> None:
    with _command(*words) as process:
        assert process.stdout is not None
        seen = []
        while sum('"name": "lab"' in line or line.startswith("array lab") for line in seen) < 3:
            line = process.stdout.readline()
            assert line, seen
            seen.append(line)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    if "--json" in words:
        assert json.loads(seen[0])["schema"] == "linerate.array-status/1"
    else:
        assert any("[d7]  spare [d8]" in line for line in seen)


def test_a_pipe_that_is_closed_ends_a_watch(served: Served) -> None:
    with _command("--watch") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(TIMEOUT_S)


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp437", "utf-8"])
def test_any_encoding_will_do(served: Served, encoding: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        command = [*COMMAND, "array", "show", "--seconds", "0.1"]
        env = environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, env=env, timeout=TIMEOUT_S, check=False
        )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out").read_text(encoding)
    bar = "\u2588" if encoding in ("cp437", "utf-8") else "#"
    assert bar * 2 in text
