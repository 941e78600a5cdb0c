"""Our SMB client on Samba's server: Samba's client reads what `linerate run` writes, and errors are in words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.report.page.sizes import size_lines
from linerate.results import RunDirectory, files

from tests.cli.conftest import COMMAND, TIMEOUT_S, Done, environment, linerate
from tests.load.relay import Relay
from tests.peers.test_our_initiator import FILL, MIXED, SEED, _unstamped
from tests.support.names import knowing
from tests.support.samba import PASSWORD, USER, Samba, helpers_of, samba, when_in_use

FILE_BYTES = 8 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samba]:
    """A server for all tests of this file."""
    with samba(tmp_path_factory.mktemp("samba")) as server:
        yield server


def _run(
    text: str, url: str, directory: Path, *words: str, create: bool = True, password: str = PASSWORD
) -> Done:
    workload = directory.with_suffix(".toml")
    workload.write_text(text, "ascii")
    made = ("--create", "--size", str(FILE_BYTES)) if create else ()
    seeded = ("--verify", "--seed", str(SEED), "--output", directory, "--no-report", "--overwrite", "all")
    return linerate("run", workload, "--target", url, *made, *seeded, *words, LINERATE_SMB_PASSWORD=password)


def _session(directory: Path) -> dict[str, object]:
    facts = RunDirectory.open(directory).manifest.steps[0].facts
    session: dict[str, object] = facts["volumes"][0]["session"]
    return session


def test_the_helpers_of_a_server_end_with_it(tmp_path: Path) -> None:
    with samba(tmp_path) as server:
        done = linerate("discover", f"smb://{USER}@127.0.0.1:{server.port}", LINERATE_SMB_PASSWORD=PASSWORD)
        assert done.returncode == 0, done.stderr
        assert helpers_of(tmp_path / "smb.conf"), "a list of shares is the work of a helper"
    assert not helpers_of(tmp_path / "smb.conf")


def test_what_a_run_writes_is_what_smbclient_reads(server: Samba, tmp_path: Path) -> None:
    done = _run(FILL, server.url("fill.img"), tmp_path / "fill")
    assert done.returncode == 0, done.stderr
    assert RunDirectory.open(tmp_path / "fill").intervals["bytes"].sum() == FILE_BYTES
    copy = tmp_path / "copy.img"
    server.smbclient(f"get fill.img {copy}")
    image = copy.read_bytes()
    assert len(image) == FILE_BYTES
    assert not _unstamped(image)
    assert image == server.path("fill.img").read_bytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"signing": "off", "dialect": "3.1.1"},
        {"signing": "on", "dialect": "2.1"},
        {"signing": "on", "dialect": "3.0.2"},
        {"signing": "on"},
        {"encryption": "aes-128-gcm"},
        {"encryption": "aes-128-ccm", "dialect": "3.0"},
        {"encryption": "aes-256-gcm", "channels": "3"},
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_mixed_load_verifies(server: Samba, tmp_path: Path, settings: dict[str, str]) -> None:
    words = [word for key, value in settings.items() for word in ("--set", f"smb.{key}={value}")]
    done = _run(MIXED, server.url("mixed.img"), tmp_path / "mixed", *words)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "mixed")
    assert run.intervals["ios"].sum() > 100
    session = _session(tmp_path / "mixed")
    assert session["dialect"] == settings.get("dialect", "3.1.1")
    assert (session["signing"] != "off") == (settings.get("signing") == "on")
    assert session["encryption"] == settings.get("encryption", "off")
    assert session["channels"] == int(settings.get("channels", "1"))
    assert PASSWORD not in json.dumps(run.manifest.model_dump(mode="json"))
    text = (tmp_path / "mixed" / "manifest.json").read_text()
    assert PASSWORD not in text


def test_discover_lists_the_shares_of_a_server(server: Samba) -> None:
    url = f"smb://{USER}@127.0.0.1:{server.port}"
    done = linerate("discover", url, LINERATE_SMB_PASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["share", "disk"] in rows
    assert ["IPC$", "pipe", "(special)", "IPC", "Service"] in [row[:5] for row in rows]
    place = f"SMB://127.0.0.1:{server.port}/"
    done = linerate("discover", place, "--json", LINERATE_SMB_USER=USER, LINERATE_SMB_PASSWORD=PASSWORD)
    found = json.loads(done.stdout)
    assert (found["schema"], found["server"]) == ("linerate.shares/1", f"smb://127.0.0.1:{server.port}")
    assert [share["name"] for share in found["shares"] if share["type"] == "disk"] == ["share", "readonly"]
    assert [share["special"] for share in found["shares"] if share["name"] == "IPC$"] == [True]


def test_discover_takes_the_address_of_a_name_that_is_served(server: Samba, tmp_path: Path) -> None:
    url = f"smb://{USER}@twofold:{server.port}"
    done = subprocess.run(
        [*knowing(tmp_path, "twofold", "::1", "127.0.0.1"), *COMMAND, "discover", url],
        env=environment(LINERATE_SMB_PASSWORD=PASSWORD),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "readonly" in done.stdout


def test_discover_does_not_show_the_password_that_a_server_refuses(server: Samba) -> None:
    for url, password in (("nobody@", "a-wrong-one"), ("nobody%a-wrong-one@", "")):
        done = linerate("discover", f"smb://{url}127.0.0.1:{server.port}", LINERATE_SMB_PASSWORD=password)
        assert done.returncode == 2, done.stderr
        assert "wrong user name or password" in done.stderr
        assert "LINERATE_SMB_PASSWORD" in done.stderr
        assert "a-wrong-one" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("smb://nobody@127.0.0.1/share", 2, "no address of a server alone"),
        ("smb://nobody@127.0.0.1", 2, "the password of nobody is missing"),
        ("smb://127.0.0.1:1", 1, "smb://127.0.0.1:1: cannot connect"),
    ],
)
def test_discover_says_what_is_wrong_with_the_address_of_a_server(url: str, code: int, words: str) -> None:
    done = linerate("discover", url, LINERATE_SMB_PASSWORD="", LINERATE_SMB_USER="")
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_a_long_io_is_split_and_the_run_says_how(server: Samba, tmp_path: Path) -> None:
    done = _run(MIXED, server.url("split.img"), tmp_path / "split", "--set", "smb.max_io=4k")
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "split")
    session = _session(tmp_path / "split")
    assert session["max_io_bytes"] == 4096
    assert session["max_read_bytes"] == session["max_write_bytes"] == 8 << 20
    assert run.intervals["bytes"].sum() > 4096 * run.intervals["ios"].sum(), "an I/O is whole in the results"


def test_a_file_with_contents_is_shown_before_it_is_overwritten(server: Samba, tmp_path: Path) -> None:
    server.path("used.img").write_bytes(b"\x01" * FILE_BYTES)
    workload = tmp_path / "write.toml"
    workload.write_text(MIXED, "ascii")
    done = linerate(
        "run", workload, "--target", server.url("used.img"), "--dry-run", LINERATE_SMB_PASSWORD=PASSWORD
    )
    assert done.returncode == 0, done.stderr
    assert "data of unknown kind" in done.stdout
    assert "8 MiB" in done.stdout or "8m" in done.stdout


@pytest.mark.parametrize(
    ("share", "path", "password", "words"),
    [
        ("share", "mixed.img", "wrong", "wrong user name or password"),
        ("missing", "mixed.img", PASSWORD, "the server has no share missing"),
        ("share", "missing.img", PASSWORD, "there is no file missing.img"),
        ("share", "no/mixed.img", PASSWORD, "there is no folder for no/mixed.img"),
        ("readonly", "mixed.img", PASSWORD, "read-only"),
    ],
)
def test_refusals_are_in_words_and_the_users_fault(
    server: Samba, tmp_path: Path, share: str, path: str, password: str, words: str
) -> None:
    server.path("mixed.img").write_bytes(bytes(FILE_BYTES))
    done = _run(MIXED, server.url(path, share), tmp_path / "refused", create=False, password=password)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert PASSWORD not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_chelsios_sizes_on_a_share_are_drawn_as_the_paper_does(server: Samba, tmp_path: Path) -> None:
    """Eleven sizes of reads, writes and both; too short to be a result, long enough for every chart."""
    short = ("--elapsed", "0.2", "--warmup", "0", "--interval", "0.2")
    made = ("--target", server.url("chelsio.img"), "--create", "--size", "16m", "--overwrite", "all")
    kept = ("--output", tmp_path / "run")
    done = linerate("run", "chelsio", *short, *made, *kept, LINERATE_SMB_PASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    lines = size_lines(summarise(RunDirectory.open(tmp_path / "run")))
    assert lines.keys() == {"read", "write", "mixed"}
    sizes = [1024 << number for number in range(11)]
    for name, steps in lines.items():
        assert [step.total.bytes // step.total.ios for step in steps] == sizes
        assert all(step.usage.load_cpu_s > 0 and not step.total.errors for step in steps)
        reads = {"read": {100.0}, "write": {0.0}}.get(name)
        assert reads is None or {step.read_percent for step in steps} == reads
    page = (tmp_path / "run" / "report.html").read_text()
    for title in ("MB/sec against size", "i/o rate against size", "per byte against size"):
        assert title in page


@pytest.mark.long
def test_a_server_that_ends_fails_the_run_with_its_reason(tmp_path: Path) -> None:
    text = MIXED.replace('elapsed = "1s"', 'elapsed = "30s"')
    with samba(tmp_path / "samba") as own:
        ending = when_in_use(tmp_path / "gone", lambda: os.kill(own.pid, signal.SIGTERM))
        limit = ("--set", "smb.replacement_timeout_s=1")
        done = _run(text, own.url("gone.img"), tmp_path / "gone", *limit)
        ending.join()
    assert done.returncode not in (0, 2), done.stderr
    assert "closed the connection" in done.stderr or "broke" in done.stderr
    assert "could not be restored within 1 s (smb.replacement_timeout_s)" in done.stderr
    run = RunDirectory.open(tmp_path / "gone")
    assert run.manifest.state == "failed"
    assert run.intervals["ios"].sum() > 0


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"durable": "off"}, {"dialect": "2.1", "signing": "on"}])
def test_verified_writes_go_on_after_the_connection_was_cut(
    server: Samba, tmp_path: Path, settings: dict[str, str]
) -> None:
    text = MIXED.replace('elapsed = "1s"', 'elapsed = "3s"')
    words = [word for key, value in settings.items() for word in ("--set", f"smb.{key}={value}")]
    with Relay(("127.0.0.1", server.port)) as relay:
        over = threading.Event()
        dropping = threading.Thread(target=_drop_often, args=(relay, tmp_path / "cut", over))
        dropping.start()
        try:
            done = _run(text, f"smb://{USER}@{relay.portal}/share/cut.img", tmp_path / "cut", *words)
        finally:
            over.set()
            dropping.join()
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "cut")
    assert run.intervals["errors"].sum() == 0
    back = [event for event in run.events if event.kind == "session_back"]
    assert back, "the connection was not cut in the run"
    is_durable = settings.get("durable") != "off"
    words_of_file = "the server had kept the file open" if is_durable else "the file was opened again"
    assert all(words_of_file in event.message for event in back), [event.message for event in back]
    version = "v1" if "dialect" in settings else "v2"
    assert _session(tmp_path / "cut")["durable_handle"] == (version if is_durable else "none")


def _drop_often(relay: Relay, run: Path, over: threading.Event) -> None:
    """Drops connections once a second while the run has intervals: a file that is being opened is not tried again."""
    spool = run / files.SPOOL
    while not over.wait(0.1):
        if spool.exists() and spool.stat().st_size > 0:
            relay.drop()
            over.wait(0.9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("run", "--preset", "anvil", "--target", "smb://h/s/f", "--set", "smb.dialect=1.0"),
            "smb.dialect=1.0",
        ),
        (("run", "--preset", "anvil", "--target", "smb://h/s/f", "--set", "smb.nothing=1"), "smb.nothing=1"),
        (("run", "--preset", "anvil", "--target", "smb://h/s/f", "--set", "smb.max_io=9m"), "smb.max_io=9m"),
        (("probe", "smb://h/s/f"), "a probe is for a path to an iSCSI volume"),
    ],
)
def test_what_a_share_does_not_have_is_refused(words: tuple[str, ...], part: str) -> None:
    done = linerate(*words)
    assert done.returncode == 2, done.stderr
    assert part in done.stderr
