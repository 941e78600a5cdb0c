"""Runs the tests: those that mostly wait several at a time, then one by one those that measure time and rates.

A few tests that failed are tried once more, one by one; the summary names them, whatever comes of it.
`python -m tests [WORDS]`; words go to pytest. Exit code: pytest's, of the part that failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

TOGETHER = ("-m", "not alone", "-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile")
ALONE = ("-m", "alone")
# The machine may have been busy with other things, but not in the way of many tests.
TRIED_AGAIN_MOST = 3
FAILED = 1
"""pytest's exit code when all tests ran and some failed."""
NOTHING_COLLECTED = 5
"""pytest's exit code when no test was chosen."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


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
            last = COLOUR.sub("", line)
            if last.startswith(("FAILED ", "ERROR ")):
                said.append(last)
    return process.returncode, [*said, last]


def run_patiently(part: tuple[str, ...], words: list[str]) -> tuple[int, list[str]]:
    """Runs a part, and once more and one by one what failed of it, if that is little."""
    code, said = run([*part, *words])
    failures = len(said) - 1
    if code != FAILED or not 0 < failures <= TRIED_AGAIN_MOST:
        return code, said
    print(f"\n== {failures} failed, and once more")
    _, marks, *_ = part
    again, said_again = run(["-m", marks, *words, "--last-failed", "--last-failed-no-failures", "none"])
    mended = again == 0 and f" {failures} passed" in said_again[-1]
    return 0 if mended else code, [*said, "once more, one by one:\n", *said_again]


def main(words: list[str]) -> int:
    """Both parts, whatever comes of the first, and the summaries of both at the end."""
    parts = [run_patiently(part, words) for part in (TOGETHER, ALONE)]
    print("\n== several at a time, and one by one")
    for _, said in parts:
        print("".join(said), end="")
    codes = [code for code, _ in parts if code != NOTHING_COLLECTED]
    return max(codes, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
