"""Our SMB client on Samba's server: Samba's client reads what `linerate run` writes, and errors are in words."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.report.page.sizes import size_lines
from linerate.results import RunDirectory

from tests.cli.conftest import Done, linerate
from tests.peers.test_our_initiator import FILL, MIXED, SEED, _unstamped
from tests.support.samba import PASSWORD, Samba, samba

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
    assert PASSWORD not in json.dumps(run.manifest.model_dump(mode="json"))
    text = (tmp_path / "mixed" / "manifest.json").read_text()
    assert PASSWORD not in text


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
        timer = threading.Timer(2.0, os.kill, (own.pid, signal.SIGTERM))
        timer.start()
        try:
            done = _run(text, own.url("gone.img"), tmp_path / "gone")
        finally:
            timer.cancel()
    assert done.returncode not in (0, 2), done.stderr
    assert "closed the connection" in done.stderr or "broke" in done.stderr
    run = RunDirectory.open(tmp_path / "gone")
    assert run.manifest.state == "failed"
    assert run.intervals["ios"].sum() > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("run", "--preset", "anvil", "--target", "smb://h/s/f", "--set", "smb.dialect=1.0"),
            "smb.dialect=1.0",
        ),
        (("run", "--preset", "anvil", "--target", "smb://h/s/f", "--set", "smb.nothing=1"), "smb.nothing=1"),
        (("probe", "smb://h/s/f"), "a probe is for a path to an iSCSI volume"),
    ],
)
def test_what_a_share_does_not_have_is_refused(words: tuple[str, ...], part: str) -> None:
    done = linerate(*words)
    assert done.returncode == 2, done.stderr
    assert part in done.stderr
