"""A host without CPU left, for real: other programs take all of it, and the probe says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import linerate
from tests.support.serving import serving

ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab.linerate:busy"
volumes = [{ lun = 0, name = "v1", kind = "memory", size = "16m" }]
"""
# Ends by itself, also if the test is killed. It yields to everything else, so the probe can still work.
SPIN = "import os, time; os.nice(19); end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


@contextmanager
def all_cpus_busy() -> Iterator[None]:
    """A spinning program for each CPU."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", SPIN]))
            stack.callback(process.kill)
        yield


@pytest.mark.long
@pytest.mark.alone
def test_other_programs_that_take_all_cpus_are_the_limit(tmp_path: Path) -> None:
    with serving(tmp_path, ARRAY) as portal, all_cpus_busy():
        url = f"iscsi://{portal}/iqn.2026-11.lab.linerate:busy/0"
        done = linerate("probe", url, "--seconds", "5", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["limit"] == "this host's CPU", found
    assert "Other programs, or an array on this machine, use the rest" in found["sentence"]
    assert found["trials"]["large"]["host_busy_percent"] >= 90
