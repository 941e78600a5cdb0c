"""The unit of an array as a service, and what the service manager is told."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from linerate.array.systemd import notify, unit_text
from linerate.errors import UserError

from tests.cli.conftest import linerate
from tests.support import need

FILE = """\
name = "lab 100%"
[[storage.disks]]
name = "d"
kind = "file"
path = "disks of $lab/d.img"
[[storage.disks]]
name = "e"
kind = "file"
path = "/dev/sdx"
[[targets]]
name = "iqn.2026-11.lab.linerate:t"
[targets.chap]
user = "host1"
secret_env = "HOST1_SECRET"
mutual_user = "array"
mutual_secret_env = "OUR_SECRET"
[control]
token_file = "run/token"
identity = "keys/lab.identity"
"""


def _unit(tmp_path: Path, user: str = "root") -> list[str]:
    (tmp_path / "lab.toml").write_text(FILE, "ascii")
    return unit_text(tmp_path / "lab.toml", user).splitlines()


def test_a_unit_starts_the_array_restarts_it_and_lets_it_write_its_files_only(tmp_path: Path) -> None:
    unit = _unit(tmp_path)
    assert "Type=notify" in unit
    assert {"Restart=on-failure", "RestartPreventExitStatus=2", "NoNewPrivileges=yes"} <= set(unit)
    assert {"LimitMEMLOCK=infinity", "ProtectSystem=strict", "UMask=0077", "User=root"} <= set(unit)
    assert any(line.startswith("LimitNOFILE=") for line in unit)
    (start,) = [line for line in unit if line.startswith("ExecStart=")]
    assert start.endswith(f"-m linerate.cli array serve {tmp_path}/lab.toml")
    writes = [line for line in unit if line.startswith("ReadWritePaths=")]
    assert f'ReadWritePaths="{tmp_path}/disks of $$lab"' in writes
    assert {f"ReadWritePaths={tmp_path}/{made}" for made in ("run", "keys")} <= set(writes)
    assert not any("/dev" in line for line in writes)
    assert any("HOST1_SECRET, OUR_SECRET" in line for line in unit), "their values are not in the unit"
    assert "Description=Linerate array lab 100%%" in unit


def test_the_service_manager_understands_the_unit(tmp_path: Path) -> None:
    analyze = need.tool("systemd-analyze")
    unit = tmp_path / "linerate-lab.service"
    (tmp_path / "disks of $lab").mkdir()
    unit.write_text("\n".join(_unit(tmp_path)) + "\n", "ascii")
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    said = [
        line for line in (done.stdout + done.stderr).splitlines() if unit.name in line or str(unit) in line
    ]
    assert (done.returncode, said) == (0, [])


def test_a_user_without_a_home_gets_a_state_folder(tmp_path: Path) -> None:
    assert "StateDirectory=linerate" in _unit(tmp_path, "nobody")
    with pytest.raises(UserError, match="there is no such user"):
        _unit(tmp_path, "nonesuch")


def test_the_verb_prints_the_unit(tmp_path: Path) -> None:
    unit = _unit(tmp_path)
    assert linerate("array", "unit", tmp_path / "lab.toml").stdout.splitlines() == unit
    missing = linerate("array", "unit", tmp_path / "none.toml")
    assert (missing.returncode, "none.toml: No such file" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[volume]]\nname = 'v'\n", "lab.toml:1: targets: must be given"),
        (f"storage = 3\n{FILE[FILE.index('[[targets]]') :]}", "lab.toml:1: storage: must be a table"),
    ],
)
def test_there_is_no_unit_for_a_file_that_no_array_could_serve(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "lab.toml").write_text(text, "ascii")
    with pytest.raises(UserError) as caught:
        unit_text(tmp_path / "lab.toml")
    assert message in caught.value.message


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_manager_is_told(is_abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"\0linerate-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        monkeypatch.setenv("NOTIFY_SOCKET", address.replace("\0", "@"))
        assert notify("READY=1\nSTATUS=serving")
        assert manager.recv(100) == b"READY=1\nSTATUS=serving"
    assert not notify("READY=1"), "it is gone"
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert notify("READY=1"), "no manager has to be told"


def test_a_file_that_can_be_read_once_makes_a_unit(tmp_path: Path) -> None:
    pipe = tmp_path / "lab.toml"
    os.mkfifo(pipe)
    text = 'name = "once"\n[[targets]]\nname = "iqn.2026-11.lab.linerate:once"\n'
    text += '[[targets.volumes]]\nlun = 0\nname = "v"\nkind = "file"\npath = "v/v.img"\nsize = "1m"\n'
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    unit = unit_text(pipe)
    writer.join(10)
    assert f"ReadWritePaths={tmp_path}/v" in unit.splitlines()
