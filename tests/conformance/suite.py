"""libiscsi's conformance suite, one test at a time: list, run, read the verdict."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROGRAM = "iscsi-test-cu"
TIMEOUT_S = 60.0

_SUMMARY = re.compile(r"^\s+tests\s+\d+\s+(?P<ran>\d+)\s+(?P<passed>\d+)\s+(?P<failed>\d+)", re.MULTILINE)
_SKIPPED = re.compile(r"\[SKIPPED\]\s*(.*)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the suite said about one test."""

    passed: bool
    skipped: str
    """Why the suite skipped the test or a part of it; empty if it did not."""
    output: str


@cache
def listed_tests() -> tuple[str, ...]:
    """Every test as Family.Test; empty where the suite is not installed."""
    if shutil.which(PROGRAM) is None:
        return ()
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=False)
    names = re.findall(r"^ALL\.(\S+\.\S+)$", listed.stdout + listed.stderr, re.MULTILINE)
    return tuple(dict.fromkeys(names))


@cache
def known_skips() -> dict[str, str]:
    """Names of tests, or of families with a final dot, and why the suite skips them against our array."""
    table = tomllib.loads(Path(__file__).with_name("libiscsi.toml").read_text("ascii"))
    return dict(table["skips"])


@cache
def known_failures() -> dict[str, str]:
    """Tests that are wrong themselves in the packaged version of the suite, and how we know."""
    table = tomllib.loads(Path(__file__).with_name("libiscsi.toml").read_text("ascii"))
    return dict(table.get("failures", {}))


def known_skip(test: str) -> str | None:
    """The listed reason for a test, or None."""
    family = test.partition(".")[0] + "."
    return known_skips().get(test, known_skips().get(family))


def run_test(test: str, url: str, second_url: str) -> Verdict:
    """Runs one test against a LUN and a second path to it. All data on the LUN may be lost."""
    command = [PROGRAM, "--dataloss", "--allow-sanitize", "-n", "-t", f"ALL.{test}", url, second_url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
        return Verdict(False, "", f"no end after {TIMEOUT_S:g} s\n{said}")
    output = done.stdout + done.stderr
    summary = _SUMMARY.search(output)
    passed = summary is not None and int(summary["ran"]) > 0 and int(summary["failed"]) == 0
    skipped = _SKIPPED.search(output)
    return Verdict(passed and done.returncode == 0, skipped[1] if skipped else "", output)
