"""An array whose CPU is taken away for milliseconds at a time, for real: the probe names it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import linerate
from tests.support.patience import a_busy_machine_may_spoil
from tests.support.serving import serve

ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab.linerate:turns"
volumes = [{ lun = 0, name = "v1", kind = "memory", size = "16m" }]
"""
RUNS_S = 0.001
WAITS_S = 0.019


@contextmanager
def array_with_a_twentieth_of_a_cpu(folder: Path) -> Iterator[str]:
    """It runs 1 ms and is stopped 19 ms, as under a quota of CPU time or beside programs of higher priority."""
    file = folder / "turns.toml"
    file.write_text(ARRAY)
    process, portal = serve(file)
    is_over = threading.Event()

    def take_turns() -> None:
        while not is_over.is_set():
            process.send_signal(signal.SIGSTOP)
            time.sleep(WAITS_S)
            process.send_signal(signal.SIGCONT)
            time.sleep(RUNS_S)

    with process:
        turns = threading.Thread(target=take_turns)
        turns.start()
        try:
            yield portal
        finally:
            is_over.set()
            turns.join()
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.long
@pytest.mark.alone
@a_busy_machine_may_spoil
def test_an_array_without_cpu_is_the_limit(tmp_path: Path) -> None:
    with array_with_a_twentieth_of_a_cpu(tmp_path) as portal:
        done = linerate(
            "probe", f"iscsi://{portal}/iqn.2026-11.lab.linerate:turns/0", "--seconds", "5", "--json"
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["limit"] == "array", found
    assert "The CPU of the array is the limit" in found["sentence"]
