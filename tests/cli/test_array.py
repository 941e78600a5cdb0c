"""`linerate array serve`: processes that start, say where they are, and leave nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from linerate.array import EmbeddedArray, eight_volumes

from tests.cli.conftest import COMMAND, TIMEOUT_S, environment, linerate

ARRAY = """\
portals = ["127.0.0.1:0", "[::1]:0"]
[[targets]]
name = "iqn.2026-11.lab.linerate:served"
[targets.chap]
user = "host1"
secret_env = "HOST1_SECRET"
[[targets.volumes]]
lun = 0
name = "kept"
kind = "file"
path = "kept.img"
size = "8m"
[[targets.volumes]]
lun = 1
name = "fast"
size = "16m"
"""
SECRET = "a secret of host1"


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_until_a_signal(tmp_path: Path, number: int) -> None:
    (tmp_path / "lab.toml").write_text(ARRAY, "ascii")
    command = [*COMMAND, "array", "serve", str(tmp_path / "lab.toml"), "--json"]
    settings = environment(HOST1_SECRET=SECRET)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert SECRET not in json.dumps(started)
        assert SECRET not in Path(f"/proc/{process.pid}/cmdline").read_text("utf-8")
        portal = started["portals"][0]
        login = {"LIBISCSI_CHAP_USERNAME": "host1", "LIBISCSI_CHAP_PASSWORD": SECRET}
        found = linerate("discover", portal, "--json", **login)
        process.send_signal(number)
        ended = json.loads(process.stdout.read())
        assert process.wait(TIMEOUT_S) == 0
    assert len(started["portals"]) == 2
    assert "stats" in ended
    assert found.returncode == 0, found.stderr
    luns = json.loads(found.stdout)["targets"][0]["luns"]
    assert [lun["capacity_bytes"] for lun in luns] == [8 << 20, 16 << 20]
    assert (tmp_path / "kept.img").stat().st_size == 8 << 20


def test_a_portal_in_use_is_named(tmp_path: Path) -> None:
    with EmbeddedArray(eight_volumes(1 << 20)) as array:
        host, port = array.portals[0]
        (tmp_path / "lab.toml").write_text(ARRAY.replace("127.0.0.1:0", f"{host}:{port}"), "ascii")
        done = linerate("array", "serve", tmp_path / "lab.toml", HOST1_SECRET=SECRET)
    assert done.returncode in (1, 2)
    assert f"{host}:{port}" in done.stderr


def test_an_embedded_array_ends_with_its_owner() -> None:
    """Its standard input closes when the owner dies, however it dies."""
    with EmbeddedArray(eight_volumes(1 << 20)) as array:
        process = Path(f"/proc/{array.pid}")
        assert process.exists()
    assert not process.exists()
