"""A file system that becomes full under the load: the run fails, and names the path and the way out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment
from tests.support import need

WORKLOAD = """\
warm_up = "0s"
elapsed = "20s"
volume = [{{ name = "v1", outstanding = 4, target = "{at}/new.bin", size = "16m", create = true, direct = false }}]
stream = [{{ name = "s", size = "4k", read = {read} }}]
"""
STRUCTURE = """\
data_errors=1000000
create_anchors=yes
fsd=tree,anchor={at}/tree,depth=1,width=1,files=10,size=1m
fwd=fwd1,fsd=tree,operation=write,xfersize=64k,threads=2
rd=rd1,fwd=fwd1,fwdrate=max,format=yes,elapsed=2,interval=1
"""
FIO = """\
[job]
filename={at}/new.bin
size=16m
rw=randrw
continue_on_error=all
"""


def ran(file: Path, small: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """`linerate run` where `small` is a file system of 2 MiB."""
    words = (*COMMAND, "run", str(file), "--overwrite", "all", "--no-report", "--output", str(output))
    script = 'mount -t tmpfs -o size=2m none "$0" && exec "$@"'
    command = [*need.unshare("--mount"), "sh", "-c", script, str(small), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=False
    )


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("writes.toml", WORKLOAD.replace("{read}", "0"), "new.bin: write of 4096 bytes at offset"),
        ("mixed.toml", WORKLOAD.replace("{read}", "90"), "new.bin: write of 4096 bytes at offset"),
        ("job.fio", FIO, "new.bin: write of 4096 bytes at offset"),
        ("structure.vdb", STRUCTURE, "tree/vdb.1_1.dir/"),
    ],
)
def test_a_full_file_system_fails_the_run(tmp_path: Path, name: str, text: str, path: str) -> None:
    """Also where most I/Os succeed, and where errors are to be counted only."""
    small, file = tmp_path / "small", tmp_path / name
    small.mkdir()
    file.write_text(text.format(at=small), "ascii")
    done = ran(file, small, tmp_path / "run")
    assert done.returncode == 1, done.stderr + done.stdout
    assert f"{small}/{path}" in done.stderr
    assert "No space left on device" in done.stderr
    assert "-> make room in the file system (`df` shows it)" in done.stderr
    assert "Traceback" not in done.stderr
    run = RunDirectory.open(tmp_path / "run")
    assert run.manifest.state == "failed"
    assert str(small) in run.manifest.reason
