"""Runs the tests: those that mostly wait several at a time, then one by one those that measure time and rates.

`python -m tests [WORDS]`; words go to pytest. Exit code: pytest's, of the part that failed.
"""

from __future__ import annotations

import os
import subprocess
import sys

TOGETHER = ("-m", "not alone", "-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")
ALONE = ("-m", "alone")
NOTHING_COLLECTED = 5
"""pytest's exit code when no test was chosen."""


def run(words: list[str]) -> tuple[int, list[str]]:
    """Runs pytest; gives its exit code and what its summary says."""
    colour = "--color=yes" if sys.stdout.isatty() else "--color=no"
    command = [sys.executable, "-m", "pytest", colour, *words]
    said: list[str] = []
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(("FAILED ", "ERROR ")):
                said.append(line)
            last = line
    return process.returncode, [*said, last]


def main(words: list[str]) -> int:
    """Both parts, whatever comes of the first, and the summaries of both at the end."""
    parts = [run([*part, *words]) for part in (TOGETHER, ALONE)]
    print("\n== several at a time, and one by one")
    for _, said in parts:
        print("".join(said), end="")
    codes = [code for code, _ in parts if code != NOTHING_COLLECTED]
    return max(codes, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
