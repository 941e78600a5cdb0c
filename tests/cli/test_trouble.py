"""Bad luck and bad input: a message that says what, where and what to do; the run directory of a failed run is kept."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linerate.array import ArrayConfig, Chap, EmbeddedArray, TargetConfig, VolumeConfig, eight_volumes
from linerate.results import RunDirectory
from pydantic import SecretStr

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate
from tests.support import need
from tests.support.names import knowing

WORKLOAD = """\
warm_up = "0s"
elapsed = "30s"
interval = "0.25s"
volume = [{ name = "v1", outstanding = 4 }]
stream = [{ name = "s", size = "4k", read = 50 }]
run = [{ name = "first", streams = "s" }]
"""
IMPATIENT = ("--set", "iscsi.login_timeout_s=2", "--set", "iscsi.replacement_timeout_s=1")
SECRET = "a secret of host1"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """One volume for half a minute, unless something ends it."""
    path = tmp_path / "one.toml"
    path.write_text(WORKLOAD, "ascii")
    return path


def _run(workload: Path, url: str) -> Done:
    directory = workload.parent / "run"
    done = linerate("run", workload, "--target", url, "--elapsed", "0.5", "--output", directory, *IMPATIENT)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("  -> ") == 1, done.stderr
    return done


def _assert_kept(workload: Path, word: str) -> None:
    """The failed run's directory is there, marked, with the reason, and other verbs read it."""
    run = RunDirectory.open(workload.parent / "run")
    assert run.manifest.state == "failed"
    assert word in run.manifest.reason
    assert linerate("check", run.path).stdout


@contextmanager
def _portal(answer: bytes | None) -> Iterator[int]:
    """A port that answers every connection with the same bytes, or with none and silence."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                if answer is not None:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("elapsed = \n", "one.toml"),
        (WORKLOAD + "colour = 1\n", "colour"),
        (WORKLOAD.replace('"4k"', '"big"'), "big"),
    ],
)
def test_a_wrong_file_is_told_by_line(workload: Path, text: str, message: str) -> None:
    workload.write_text(text, "ascii")
    done = linerate("run", workload, "--target", "null:1g", "--output", workload.parent / "run")
    assert done.returncode == 2
    assert "one.toml" in done.stderr
    assert message in done.stderr
    assert not (workload.parent / "run").exists()


@pytest.mark.parametrize(("secret", "code"), [(SECRET, 0), ("a wrong secret!", 2)])
def test_chap(workload: Path, secret: str, code: int) -> None:
    chap = Chap(user="host1", secret=SecretStr(SECRET))
    target = TargetConfig(
        name="iqn.2026-11.lab.linerate:chap",
        chap=chap,
        volumes=(VolumeConfig(lun=0, name="v", size_bytes=1 << 24),),
    )
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=(target,))) as array:
        url = array.url(0).replace("iscsi://", f"iscsi://host1%{secret}@")
        directory = workload.parent / "run"
        done = linerate("run", workload, "--target", url, "--elapsed", "0.5", "--output", directory)
    assert done.returncode == code, done.stderr
    for path in directory.iterdir():
        assert secret.encode() not in path.read_bytes(), f"{path.name} holds the secret"
    if code:
        assert "v1" in done.stderr
        assert "LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD" in done.stderr
        assert secret not in done.stderr
        assert SECRET not in done.stderr


def test_no_such_lun(workload: Path, array: EmbeddedArray) -> None:
    done = _run(workload, array.url(77))
    assert done.returncode == 2
    assert "77" in done.stderr
    assert not (workload.parent / "run" / "report.html").exists(), "a report of zeros is of no use"
    assert "i/o" not in done.stdout, done.stdout
    _assert_kept(workload, "v1")


def test_no_such_target(workload: Path, array: EmbeddedArray) -> None:
    done = _run(workload, array.url(0).replace(":demo", ":nonesuch"))
    assert done.returncode == 2
    assert "nonesuch" in done.stderr
    _assert_kept(workload, "v1")


def test_nobody_listens(workload: Path) -> None:
    with _portal(None) as port:
        pass
    done = _run(workload, f"iscsi://127.0.0.1:{port}/iqn.2026-11.lab:x/0")
    assert done.returncode in (1, 2)
    assert f"127.0.0.1:{port}" in done.stderr
    _assert_kept(workload, "v1")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20, b"\x23" + b"\0" * 47, None])
def test_a_portal_that_is_no_array(workload: Path, answer: bytes | None) -> None:
    with _portal(answer) as port:
        done = _run(workload, f"iscsi://127.0.0.1:{port}/iqn.2026-11.lab:x/0")
    assert done.returncode == 1, done.stderr
    assert f"127.0.0.1:{port}" in done.stderr
    _assert_kept(workload, "v1")


@pytest.mark.long
def test_an_array_that_dies_mid_run(workload: Path) -> None:
    directory = workload.parent / "run"
    with EmbeddedArray(eight_volumes(1 << 24)) as array:
        words = ["run", workload, "--target", array.url(0), "--json", "--output", directory, *IMPATIENT]
        command = [*COMMAND, *map(str, words)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if json.loads(line)["type"] == "interval":
                    break
            array.kill()
            out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, err
    events = [json.loads(line) for line in out.splitlines()]
    assert events[-1]["type"] == "run_ended"
    assert events[-1]["state"] == "failed"
    assert "v1" in err
    _assert_kept(workload, "v1")
    run = RunDirectory.open(directory)
    assert run.intervals["ios"].sum() > 0
    report = linerate("report", directory)
    assert report.returncode == 0, report.stderr


@pytest.mark.long
def test_a_full_disk(workload: Path, array: EmbeddedArray, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    words = (*COMMAND, "run", workload, "--target", array.url(0), "--output", small / "run")
    script = 'mount -t tmpfs -o size=16k none "$0" && exec "$@"'
    command = [*need.unshare("--mount"), "sh", "-c", script, small, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert f"{small / 'run'}: no space left on the disk" in done.stderr
    assert "-> make room there, or write elsewhere" in done.stderr


def test_a_full_disk_before_the_run_leaves_no_empty_directory(workload: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    words = (*COMMAND, "run", workload, "--target", "null:1g", "--output", small / "run")
    fill = 'mount -t tmpfs -o size=16k none "$0" && dd if=/dev/zero of="$0/fill" 2>/dev/null'
    script = f'{fill}; "$@"; code=$?; ls "$0"; exit $code'
    command = [*need.unshare("--mount"), "sh", "-c", script, small, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment(), check=False
    )
    assert done.returncode == 1
    assert f"{small / 'run'}: no space left on the disk" in done.stderr
    assert done.stdout == "fill\n"


def test_discover_tells_what_there_is(array: EmbeddedArray) -> None:
    host, port = array.portals[0]
    done = linerate("discover", f"{host}:{port}")
    assert done.returncode == 0, done.stderr
    assert "iqn.2026-11.lab.linerate:demo" in done.stdout
    assert done.stdout.count("LUN ") == 8
    found = json.loads(linerate("discover", f"iscsi://{host}:{port}", "--json").stdout)
    assert found["schema"] == "linerate.discover/1"
    assert [lun["capacity_bytes"] for lun in found["targets"][0]["luns"]] == [16 << 20] * 8


def test_discover_takes_the_address_of_a_name_that_is_served(array: EmbeddedArray, tmp_path: Path) -> None:
    ((host, port),) = array.portals
    command = [*knowing(tmp_path, "twofold", "::1", host), *COMMAND, "discover", f"twofold:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("LUN ") == 8


@pytest.mark.parametrize("login", ["", "host1%a wrong secret!@", "nobody%a secret of host1@"])
@pytest.mark.parametrize("json_", [False, True])
def test_discover_with_a_wrong_secret(login: str, json_: bool) -> None:
    with _two_targets() as array:
        host, port = array.portals[0]
        words = ["discover", f"iscsi://{login}{host}:{port}", *(["--json"] if json_ else [])]
        done = linerate(*words, LIBISCSI_CHAP_USERNAME="", LIBISCSI_CHAP_PASSWORD="")
    assert done.returncode == 2
    assert "iqn.2026-11.lab.linerate:shut" in done.stdout
    assert "LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD" in done.stderr
    assert "wrong secret" not in done.stdout + done.stderr


def test_discover_succeeds_if_one_target_lets_us_in() -> None:
    with _two_targets(open_too=True) as array:
        host, port = array.portals[0]
        done = linerate("discover", f"{host}:{port}", LIBISCSI_CHAP_USERNAME="", LIBISCSI_CHAP_PASSWORD="")
        assert done.returncode == 0, done.stderr
        assert "no LUNs: " in done.stdout
        assert "LUN 0" in done.stdout
        env = {"LIBISCSI_CHAP_USERNAME": "host1", "LIBISCSI_CHAP_PASSWORD": SECRET}
        done = linerate("discover", f"{host}:{port}", **env)
        assert done.returncode == 0, done.stderr


@contextmanager
def _two_targets(open_too: bool = False) -> Iterator[EmbeddedArray]:
    """One target that wants a secret, and perhaps one that does not."""
    volumes = (VolumeConfig(lun=0, name="v", size_bytes=1 << 24),)
    chap = Chap(user="host1", secret=SecretStr(SECRET))
    targets = [TargetConfig(name="iqn.2026-11.lab.linerate:shut", chap=chap, volumes=volumes)]
    if open_too:
        more = (VolumeConfig(lun=0, name="w", size_bytes=1 << 24),)
        targets.append(TargetConfig(name="iqn.2026-11.lab.linerate:open", volumes=more))
    with EmbeddedArray(ArrayConfig(portals=("127.0.0.1:0",), targets=tuple(targets))) as array:
        yield array


def test_discover_on_a_silent_port() -> None:
    with _portal(None) as port:
        done = linerate("discover", f"127.0.0.1:{port}", "--timeout", "1")
    assert done.returncode == 1
    assert done.stderr.count(f"127.0.0.1:{port}") == 1


def test_discover_names_a_closed_port_once() -> None:
    done = linerate("discover", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.count("127.0.0.1:1") == 1
    assert "cannot connect" in done.stderr
