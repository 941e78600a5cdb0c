"""`linerate demo`: a virtual SAN is built, its settings are compared, and nothing is left behind."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import time
import uuid
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from linerate.study import StudyDirectory

from tests.cli.conftest import COMMAND, environment
from tests.support.need import missing

TIMEOUT_S = 200.0
GONE_S = 10.0

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]


@pytest.fixture(autouse=True)
def _can_build() -> None:
    """A child tries, because it may have to enter a user namespace."""
    script = "from linerate.lab import enter; enter()"
    tried = subprocess.run([COMMAND[0], "-c", script], capture_output=True, text=True, check=False)
    if tried.returncode:
        missing(f"no right to build a virtual SAN: {tried.stderr.splitlines()[-1]}")


def _marked(mark: str) -> list[str]:
    """Command lines of the processes that were started, however indirectly, with a mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended, or is another user's
    return found


def _demo(tmp_path: Path, mark: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "demo", "--quick", "--output", str(tmp_path / "study"), *words],
        env=environment(LINERATE_MARK=mark, TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _assert_no_process(mark: str) -> None:
    until = time.monotonic() + GONE_S
    while left := _marked(mark):
        assert time.monotonic() < until, left
        time.sleep(0.02)


def _assert_no_file(tmp_path: Path) -> None:
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_demo_compares_its_cases_and_leaves_only_the_study(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    process = _demo(tmp_path, mark)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    study = StudyDirectory.open(tmp_path / "study")
    assert study.verdicts is not None
    compared = {*product(("jumbo", "one path"), ("seqread", "seqwrite")), ("small window", "seqread")}
    steps = compared | {("default", "seqread"), ("default", "seqwrite")}
    assert {(step.case, step.workload) for step in study.steps} == steps
    assert study.not_applicable == {}
    assert {len(study.run(step).manifest.steps[0].spec["volumes"]) for step in study.steps} == {8}
    # On a machine that is too busy some runs are void, and what they belong to is not judged.
    judged = {(effect.case, effect.workload) for effect in study.verdicts.judgement.effects}
    assert judged <= compared
    assert judged or study.verdicts.void
    assert (tmp_path / "study" / "report.html").stat().st_size > 10_000
    assert "report: " in out
    _assert_no_process(mark)
    _assert_no_file(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_demo_that_is_stopped_leaves_nothing_running(tmp_path: Path, number: int) -> None:
    mark = uuid.uuid4().hex
    with _demo(tmp_path, mark, "--json") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "step_began":
                break
        assert len(_marked(mark)) > 1, "no process of a lab"
        process.send_signal(number)
        process.stdout.read()
        code = process.wait(TIMEOUT_S)
    assert code == (130 if number == signal.SIGINT else -number)
    _assert_no_process(mark)
    if number == signal.SIGINT:
        _assert_no_file(tmp_path)


def test_the_page_of_a_demo_lasts_as_long_as_the_demo(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with _demo(tmp_path, mark, "--page") as process:
        assert process.stdout is not None
        url = next(line.split()[1] for line in process.stdout if line.startswith("page: "))
        place = urlsplit(url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=30)
        connection.request("GET", f"/metrics?{place.query}")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        process.wait(TIMEOUT_S)
    _assert_no_process(mark)
    _assert_no_file(tmp_path)
