"""`linerate watch` and `--page`: what is refused, and how long the page beside a command lasts."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from linerate.results import RunDirectory
from linerate.watch import directory_to_watch, page_beside

from tests.cli.conftest import linerate
from tests.support.samples.synthetic import Load, make_run


def _status(url: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        connection.request("GET", f"/metrics?{parts.query}")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["watch"], "there is no run and no study in runs"),
        (["watch", "--wait"], "--wait: which directory?"),
        (["watch", "nothing"], "nothing is neither a run directory nor a study directory"),
        (["watch", "nothing", "--array", "lab"], "--array goes with no directory"),
        (["watch", "--array", "lab"], "no array of this user serves"),
        (["watch", "nothing", "--lab", "san"], "--lab goes with no directory"),
        (["watch", "--array", "lab", "--lab", "san"], "--array and --lab are two pages"),
        (["watch", "--lab", "test-none"], "no lab named test-none is up"),
        (["array", "serve", "lab.toml", "--page", "--no-control"], "--page needs the control API"),
    ],
)
def test_what_cannot_be_watched_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    done = linerate(*words, cwd=tmp_path, XDG_STATE_HOME=str(tmp_path))
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert done.stdout == ""


def test_without_a_name_the_newest_directory_is_watched(tmp_path: Path) -> None:
    for name in ("b", "a"):
        make_run(tmp_path / name, [Load(intervals=1, warmup=0)])
    assert directory_to_watch(None, tmp_path, wait=False) == tmp_path / "a"


@pytest.mark.long
def test_the_page_beside_a_command_lasts_as_long_as_the_command(path_run: RunDirectory) -> None:
    with page_beside("directory", str(path_run.path)) as url:
        assert _status(url) == 200
    with pytest.raises(ConnectionRefusedError):
        _status(url)


@pytest.mark.long
def test_a_run_with_its_page_prints_the_address_beside_the_json_lines(tmp_path: Path) -> None:
    (tmp_path / "w.vdb").write_text(
        "sd=sd1,lun=null:1g\nwd=wd1,sd=sd1,xfersize=4k\nrd=rd1,wd=wd1,elapsed=2,interval=1,iorate=100\n"
    )
    done = linerate("run", "w.vdb", "--output", "run", "--page", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("page: http://127.0.0.1:")
    assert "token" not in done.stdout
    assert "token" not in (tmp_path / "run" / "manifest.json").read_text()
    planned = RunDirectory.open(tmp_path / "run").manifest.planned
    assert planned is not None
    assert (planned.steps, planned.seconds) == (1, 2.0)
