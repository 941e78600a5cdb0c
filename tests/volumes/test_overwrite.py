"""`linerate run` asks before it writes over anything: what is refused, what is asked, what --overwrite gives free."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.errors import UserError
from linerate.results import RunDirectory
from linerate.run import Execution, carry_out
from linerate.volumes import Consent, RefusedError, columns
from linerate.workload import LunMap, Overrides, load_workload

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate
from tests.support import need
from tests.support.loop import block_device
from tests.volumes.test_look import make, make_ext4, mounted

MIB = 1 << 20
SIZE = 64 * MIB
WORKLOAD = """\
warm_up = "0s"
elapsed = "0.2s"
interval = "0.1s"
volume = [{ name = "v1", outstanding = 2 }, { name = "v2", outstanding = 4, size = "8m" }]
stream = [{ name = "mixed", size = "8k", read = READ }]
"""
TARGET = "iqn.2026-11.lab.linerate:overwrite"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Two volumes, half of the I/Os write."""
    path = tmp_path / "two.toml"
    path.write_text(WORKLOAD.replace("READ", "50"), "ascii")
    return path


def _run(workload: Path, one: Path | str, two: Path | str, *words: str) -> Done:
    place = workload.parent / "run"
    return linerate(
        "run", workload, "--target", one, "--target", two, "--output", place, "--no-report", *words
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _assert_refused(done: Done, workload: Path, *words: str) -> None:
    assert done.returncode == 2, done.stdout
    assert "this run would overwrite" in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not (workload.parent / "run").exists()


@pytest.mark.long
def test_a_mounted_file_system_is_refused_unless_it_is_named(workload: Path, tmp_path: Path) -> None:
    with block_device(tmp_path / "image", SIZE) as device:
        make_ext4(device)
        with mounted(device, tmp_path / "place") as place:
            (place / "precious.txt").write_text("precious")
            os.sync()
            for words in ((), ("--overwrite", "all"), ("--overwrite", "v2")):
                done = _run(workload, device, "null:1g", *words)
                _assert_refused(
                    done, workload, f"v1  {device}  64 MiB  mounted on {place} (ext4)", "--overwrite v1"
                )
        check = [need.tool("e2fsck"), "-f", "-n", device]
        assert subprocess.run(check, capture_output=True, check=False).returncode == 0
        for name in ("v1", str(device)):
            done = _run(workload, device, "null:1g", "--overwrite", name)
            assert done.returncode == 0, done.stderr
            assert str(device) in done.stdout
            (workload.parent / "run").rename(tmp_path / name.replace("/", "-"))


@pytest.mark.parametrize("kind", ["file", "LUN"])
def test_a_file_system_is_refused_unless_it_is_named(workload: Path, tmp_path: Path, kind: str) -> None:
    image = make(tmp_path / "image", SIZE)
    make_ext4(image)
    before = _digest(image)
    volume = VolumeConfig(lun=0, name="image", kind="file", path=str(image), size_bytes=SIZE)
    config = ArrayConfig(portals=("127.0.0.1:0",), targets=(TargetConfig(name=TARGET, volumes=(volume,)),))
    with EmbeddedArray(config) as array:
        target = str(image) if kind == "file" else array.url(0)
        # The array holds its file, so only the array can load it.
        other = str(tmp_path / "copy") if kind == "file" else ""
        if other:
            Path(other).write_bytes(image.read_bytes())
            target = other
        for words in ((), ("--overwrite", "all")):
            done = _run(workload, target, "null:1g", *words)
            _assert_refused(done, workload, f"v1  {target}  64 MiB  ext4 file system", "--overwrite v1")
        assert _digest(image) == before
        done = _run(workload, target, "null:1g", "--overwrite", target)
        assert done.returncode == 0, done.stderr
    assert _digest(Path(other) if other else image) != before, "what was named was not written to"


@pytest.mark.long
def test_data_of_unknown_kind_need_all_or_the_name(workload: Path, tmp_path: Path) -> None:
    data = make(tmp_path / "data", SIZE)
    data.write_bytes(b"precious" * 1000)
    os.truncate(data, SIZE)
    before = _digest(data)
    done = _run(workload, data, make(tmp_path / "blank", SIZE))
    _assert_refused(
        done, workload, "data of unknown kind", "v2", "blank", "--overwrite all", "--overwrite v1"
    )
    _assert_refused(_run(workload, data, tmp_path / "blank", "--overwrite", "v1"), workload, "v2")
    assert _digest(data) == before
    done = _run(workload, data, tmp_path / "blank", "--overwrite", "all")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    listed = lines.index("writes to")
    assert lines[listed + 1].split() == ["v1", str(data), "64", "MiB", "data", "of", "unknown", "kind"]
    assert listed < next(number for number, line in enumerate(lines) if line.startswith("Starting RD"))


def test_names_that_no_volume_has_are_refused(workload: Path, tmp_path: Path) -> None:
    done = _run(workload, "null:1g", "null:1g", "--overwrite", "v3")
    assert done.returncode == 2
    assert "--overwrite v3: no volume has this name, path or URL" in done.stderr
    assert "v1, v2" in done.stderr


def test_no_secret_is_shown(workload: Path) -> None:
    secret = f"iscsi://joe%HIDDEN@10.0.0.5/{TARGET}/0"
    for words in (("--overwrite", secret), ("--map", f"v9={secret}"), ("--map", f"{secret}=")):
        done = _run(workload, "null:1g", "null:1g", *words)
        assert done.returncode == 2
        assert "HIDDEN" not in done.stderr + done.stdout


def test_a_name_cannot_command_the_terminal() -> None:
    (line,) = columns([("v1", "/dev/sdx", "1 GiB", "mounted on /mnt/\x1b[2J\n\u202e (ext4)")])
    assert line == "  v1  /dev/sdx  1 GiB  mounted on /mnt/?[2J?? (ext4)"


def test_memory_and_new_files_never_ask(workload: Path, tmp_path: Path) -> None:
    volume = VolumeConfig(lun=0, name="memory", size_bytes=SIZE)
    config = ArrayConfig(portals=("127.0.0.1:0",), targets=(TargetConfig(name=TARGET, volumes=(volume,)),))
    with EmbeddedArray(config) as array:
        done = _run(workload, array.url(0), tmp_path / "new", "--create", "--size", "8m")
    assert done.returncode == 0, done.stderr
    assert "in memory" in done.stdout
    assert "new file" in done.stdout


def test_a_workload_that_only_reads_never_asks(workload: Path, tmp_path: Path) -> None:
    workload.write_text(WORKLOAD.replace("READ", "100"), "ascii")
    with block_device(tmp_path / "image", SIZE) as device:
        make_ext4(device)
        with mounted(device, tmp_path / "place"):
            done = _run(workload, device, make(tmp_path / "data", SIZE))
    assert done.returncode == 0, done.stderr
    assert "writes to" not in done.stdout


def test_a_file_that_would_be_lengthened_is_asked_about(workload: Path, tmp_path: Path) -> None:
    workload.write_text(WORKLOAD.replace("READ", "100"), "ascii")
    letter = tmp_path / "letter"
    letter.write_bytes(b"precious" * 1000)
    words = ("--create", "--size", "8m")
    _assert_refused(_run(workload, letter, "null:1g", *words), workload, "data of unknown kind")
    assert letter.stat().st_size == 8000


def test_a_program_reads_what_was_found(workload: Path, tmp_path: Path) -> None:
    data = make(tmp_path / "data", SIZE)
    done = _run(workload, data, "null:1g", "--overwrite", "all", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (found,) = [event for event in events if event["type"] == "volumes"]
    assert [volume["state"] for volume in found["volumes"]] == ["blank", "memory"]
    kinds = [event["type"] for event in events]
    assert kinds.index("run_started") < kinds.index("volumes") < kinds.index("step_started")


def _on_a_terminal(words: list[str], answer: str) -> tuple[int, str]:
    """Exit code, and what a command writes to a terminal where somebody answers its question."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], stdin=follower, stdout=follower, stderr=follower, env=environment()
    ) as process:
        os.close(follower)
        shown, answered = "", False
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 0.1)[0]:
                try:
                    shown += os.read(leader, 65536).decode()
                except OSError:  # the terminal's other side is closed
                    break
            if "[y/N]" in shown and not answered:
                answered = True
                os.write(leader, answer.encode())
        os.close(leader)
        code = process.wait(TIMEOUT_S)
    assert answered, shown
    return code, shown


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("\n", 2), ("\x04", 2)])
def test_a_terminal_is_asked(workload: Path, tmp_path: Path, answer: str, code: int) -> None:
    data = make(tmp_path / "data", SIZE)
    words = ["run", str(workload), "--target", str(data), "--target", "null:1g", "--no-report"]
    found, shown = _on_a_terminal([*words, "--output", str(tmp_path / "run")], answer)
    assert found == code, shown
    question = shown.index("[y/N]")
    assert f"v1  {data}" in shown[:question]
    assert (tmp_path / "run").exists() == (code == 0)
    assert any(data.read_bytes()) == (code == 0)
    if code == 0:
        assert shown.count(str(data)) == 1, "the list is not shown again"


def test_a_dry_run_shows_the_volumes(workload: Path, tmp_path: Path) -> None:
    image = make(tmp_path / "image", SIZE)
    make_ext4(image)
    url = f"iscsi://127.0.0.1:1/{TARGET}/0"
    words = ("--target", image, "--target", url, "--dry-run", "--set", "iscsi.login_timeout_s=0.3")
    done = linerate("run", workload, *words)
    assert done.returncode == 0, done.stderr
    cells = [line.split(maxsplit=2) for line in done.stdout.splitlines()[:3]]
    assert [row[:2] for row in cells] == [["volume", "target"], ["v1", str(image)], ["v2", url]]
    assert cells[1][2].split() == ["64", "MiB", "2", "50", "%", "ext4", "file", "system"]
    assert cells[2][2].startswith("8 MiB")
    assert "not looked at: volume v2" in cells[2][2]


def test_the_python_api_cannot_leave_it_out(workload: Path, tmp_path: Path) -> None:
    data = make(tmp_path / "data", SIZE)
    luns = LunMap({"v1": str(data), "v2": "null:1g"})
    plan = load_workload(workload, overrides=Overrides(luns=luns))
    from linerate.results import WorkloadSource

    execution = Execution(plan, WorkloadSource(name="two"), tmp_path / "run", Consent.nothing())
    with pytest.raises(RefusedError, match="v1"):
        carry_out(execution, lambda event: None)
    assert not (tmp_path / "run").exists()
    free = Execution(plan, WorkloadSource(name="two"), tmp_path / "run", Consent.of(["v1"]))
    assert carry_out(free, lambda event: None).state == "complete"
    assert RunDirectory.open(tmp_path / "run").intervals["ios"].sum() > 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "smb://nas:445/disks/a%20b.img",
            [
                "smb://joe@nas/disks/a%20b.img",
                "smb://joe%pw@nas:445/disks/a b.img",
                "smb://nas/disks/a%20b.img",
            ],
        ),
        (
            "iscsi://10.0.0.5:3260/iqn.2026-11.lab:d/0",
            ["iscsi://joe%secret@10.0.0.5/iqn.2026-11.lab:d/0", "iscsi://joe@10.0.0.5/iqn.2026-11.lab:d/0"],
        ),
    ],
)
def test_a_volume_is_named_by_its_url_with_or_without_user_and_secret(url: str, words: list[str]) -> None:
    for word in words:
        Consent.of([word]).check_names([("v1", url)])
    with pytest.raises(UserError, match="no volume has this name"):
        Consent.of([f"{words[0]}1"]).check_names([("v1", url)])
