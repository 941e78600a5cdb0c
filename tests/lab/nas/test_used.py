"""The CPU time of a laboratory: of workers that end, of the command that measures, and of other programs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linerate.analysis import summarise
from linerate.analysis.figures import figures_of
from linerate.lab import Lab
from linerate.lab.cpu.used import processes_used_s

from tests.support import need
from tests.support.samples.synthetic import Load, make_run

BURNT_S = 0.2
BURN = f"""
import time
while time.process_time() < {BURNT_S}: pass
"""
PARENT = f"""
import os, sys, time
worker = os.fork()
if worker == 0:
    begun = time.process_time()
    while time.process_time() - begun < {BURNT_S}: pass
    os._exit(0)
os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
print("ended", flush=True)
sys.stdin.readline()
os.waitpid(worker, 0)
print("waited for", flush=True)
sys.stdin.readline()
"""


@contextmanager
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process in a network namespace of its own, whose worker ends before anything waits for it."""
    command = (need.tool("unshare"), "--user", "--map-root-user", "--net", sys.executable, "-c", PARENT)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_worker_that_has_ended_is_counted_before_and_after_its_parent_waits() -> None:
    with parent() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ended\n"
        inode = os.stat(f"/proc/{process.pid}/ns/net").st_ino
        before_s = processes_used_s(inode)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "waited for\n"
        after_s = processes_used_s(inode)
    assert before_s > 0.9 * BURNT_S
    assert after_s == pytest.approx(before_s, abs=0.05), "counted once"


def test_another_program_is_named_and_the_command_that_measures_is_not(lab: Lab, tmp_path: Path) -> None:
    before, process_s = lab.counters(), time.process_time()
    while time.process_time() - process_s < BURNT_S:
        pass
    own_s = time.process_time() - process_s
    subprocess.run([sys.executable, "-c", BURN], check=True)
    counted = {name: value - before[name] for name, value in lab.counters().items()}
    assert counted["command.cpu_s"] >= 0.9 * own_s
    (summary,) = summarise(make_run(tmp_path, [Load(intervals=10, warmup=0)]))
    machine_s = sum(counted[f"machine.{part}_s"] for part in ("busy", "idle", "stolen"))
    foreign_s = figures_of(summary, counted)["foreign_percent"] / 100 * machine_s
    ours_s = sum(value for name, value in counted.items() if name.endswith(".cpu_s"))
    # The kernel samples busy time and measures that of programs.
    assert foreign_s > BURNT_S / 2
    assert foreign_s < counted["machine.busy_s"] - ours_s
    assert ours_s >= counted["command.cpu_s"]
