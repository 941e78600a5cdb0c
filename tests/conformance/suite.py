"""libiscsi's conformance suite, one test at a time: list, run, read the verdict.

`LINERATE_LIBISCSI_SUITE=/path/to/iscsi-test-cu` runs another one than Debian's, such as libiscsi's newest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = os.environ.get("LINERATE_LIBISCSI_SUITE", "iscsi-test-cu")
RELEASE = "newest" if "LINERATE_LIBISCSI_SUITE" in os.environ else "packaged"
"""Which release's own mistakes are expected."""
TIMEOUT_S = 60.0
HANGS_TIMEOUT_S = 5.0
"""For tests that are known not to end."""

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
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("libiscsi.toml").read_text("ascii"))


def _known(kind: str, layout: str) -> dict[str, str]:
    """What holds for every layout and what holds for one, in any release and in this one."""
    known: dict[str, str] = {}
    for table in (_table(), _table()[RELEASE]):
        known |= table.get(kind, {}) | table.get("layouts", {}).get(layout, {}).get(kind, {})
    return known


def known_skips(layout: str) -> dict[str, str]:
    """Names of tests, or of families with a final dot, and why the suite skips them against our array."""
    return _known("skips", layout)


def known_failures(layout: str) -> dict[str, str]:
    """Tests that are wrong themselves in this release of the suite, and how we know."""
    return _known("failures", layout)


def listed_names() -> set[str]:
    """Every name in the list."""
    layouts = ("512e", "512n", "4kn")
    kinds = ("skips", "failures")
    return {name for layout in layouts for kind in kinds for name in _known(kind, layout)}


def known_skip(test: str, layout: str) -> str | None:
    """The listed reason for a test, or None."""
    family = test.partition(".")[0] + "."
    skips = known_skips(layout)
    return skips.get(test, skips.get(family))


def run_test(test: str, url: str, second_url: str) -> Verdict:
    """Runs one test against a LUN and a second path to it. All data on the LUN may be lost."""
    command = [PROGRAM, "--dataloss", "--allow-sanitize", "-n", "-t", f"ALL.{test}", url, second_url]
    timeout_s = HANGS_TIMEOUT_S if test in _table()[RELEASE].get("hangs", ()) else TIMEOUT_S
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
        return Verdict(False, "", f"no end after {timeout_s:g} s\n{said}")
    output = done.stdout + done.stderr
    summary = _SUMMARY.search(output)
    passed = summary is not None and int(summary["ran"]) > 0 and int(summary["failed"]) == 0
    skipped = _SKIPPED.search(output)
    return Verdict(passed and done.returncode == 0, skipped[1] if skipped else "", output)
