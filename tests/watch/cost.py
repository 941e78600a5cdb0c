"""What a watched run costs: two equal runs at the same time, one of them followed by three browsers, then exchanged.

`python -m tests.watch.cost [SECONDS]`, on a quiet machine. Both runs have the same rate, array and moment, so what else
happens on the machine meets both. Each has its turn at being watched. Exit code 1: rate or CPU differ by more than 1 %.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from linerate.results import RunDirectory

from tests.cli.conftest import COMMAND, environment
from tests.support.serving import serving
from tests.watch.browser import chromium

BROWSERS = 3
LIMIT_PERCENT = 1.0
SECONDS = 600
RATE = 3000

ARRAY = """
portals = ["127.0.0.1:0"]

[[targets]]
name = "iqn.2026-11.lab:cost"

[[targets.volumes]]
lun = 0
name = "left"
kind = "memory"
size = "256m"

[[targets.volumes]]
lun = 1
name = "right"
kind = "memory"
size = "256m"
"""
WORKLOAD = """
elapsed = "{seconds}s"
warm_up = "5s"
interval = "1s"

[[volume]]
name = "v1"
target = "iscsi://{portal}/iqn.2026-11.lab:cost/{lun}"
outstanding = 8

[[stream]]
name = "reads"
size = "4k"

[[run]]
name = "steady"
rate = {rate}
"""


def main(seconds: int) -> int:
    """Both rounds, and what they came to."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), ARRAY) as portal:
        for watched in (0, 1):
            place = Path(folder) / f"round{watched}"
            place.mkdir()
            rates, cpus = zip(*_round(place, portal, watched, seconds), strict=True)
            for name, values in (("I/Os per second", rates), ("CPU seconds of the load", cpus)):
                alone, seen = values[1 - watched], values[watched]
                change = 100.0 * (seen / alone - 1.0)
                worst = max(worst, abs(change))
                print(
                    f"round {watched + 1}  {name:24} alone {alone:10.3f}  watched {seen:10.3f}  {change:+.2f} %"
                )
    print(f"largest difference {worst:.2f} %, limit {LIMIT_PERCENT:g} %")
    return int(worst > LIMIT_PERCENT)


def _round(place: Path, portal: str, watched: int, seconds: int) -> list[tuple[float, float]]:
    """I/Os per second and CPU seconds of the run on each LUN; the LUN `watched` is watched."""
    runs = []
    with ExitStack() as stack:
        for lun in (0, 1):
            file = place / f"run{lun}.toml"
            file.write_text(WORKLOAD.format(seconds=seconds, portal=portal, lun=lun, rate=RATE), "ascii")
            command = [*COMMAND, "run", str(file), "--output", str(place / f"out{lun}")]
            runs.append(
                subprocess.Popen(
                    command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                )
            )
        url = stack.enter_context(_page(place / f"out{watched}"))
        for _ in range(BROWSERS):
            tab = stack.enter_context(chromium())
            tab.open(url)
            tab.call("Network.disable")  # a log of events would cost more than the page
        return [_end(run, place / f"out{lun}") for lun, run in enumerate(runs)]


@contextmanager
def _page(directory: Path) -> Iterator[str]:
    """The address of a page of this run."""
    command = [*COMMAND, "watch", str(directory), "--wait"]
    with subprocess.Popen(command, text=True, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("page: ").strip()
        finally:
            process.terminate()


def _end(run: subprocess.Popen[bytes], directory: Path) -> tuple[float, float]:
    """Waits for a run. Its I/Os per second, and the CPU seconds of its whole process without its polls."""
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    assert run.returncode == 0, directory
    result = RunDirectory.open(directory)
    (step,) = result.manifest.steps
    usage = result.measured_usage(step.key)
    seconds = float((usage["end_s"] - usage["start_s"]).sum())
    ios = int(result.measured_rows(step.key)["ios"].sum())
    polled_s = float(result.usage["load_cpu_polled_s"].sum())
    return ios / seconds, used.ru_utime + used.ru_stime - polled_s


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
