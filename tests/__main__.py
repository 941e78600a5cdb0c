"""Runs the tests: most of them several at a time, then those that measure time and rates, in pairs or one by one.

`python -m tests [--all] [WORDS]`: without `--all` the tests marked `long` are left out; WORDS go to pytest.
A few tests that failed are tried once more, one by one. The summary names every test that needed a second try.
Exit code: pytest's, of the part that failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.support.patience import SECOND_TRY

# Workers take files in the order of tests/conftest.py; xdist's own puts the files with few and long tests last.
BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
TOGETHER = (
    "not alone and not paced and not proof",
    ("-n", str((os.cpu_count() or 1) + 1), *BY_FILE),
)
PAIRS = ("paced and not proof", ("-n", "2", *BY_FILE))
ALONE = ("alone and not paced and not proof", ())
ALL = (TOGETHER, PAIRS, ALONE)
# To collect tests takes longer than the few quick ones that could run in pairs.
QUICK = (
    (f"{TOGETHER[0]} and not long", TOGETHER[1]),
    ("(alone or paced) and not proof and not long", ()),
)
# The machine may have been busy with other things, but not in the way of many tests.
TRIED_AGAIN_MOST = 3
FAILED = 1
"""pytest's exit code when all tests ran and some failed."""
NOTHING_COLLECTED = 5
"""pytest's exit code when no test was chosen."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run(words: list[str]) -> tuple[int, list[str]]:
    """Runs pytest; gives its exit code, and the lines of failures, of second tries and of the result."""
    colour = "--color=yes" if sys.stdout.isatty() else "--color=no"
    command = [sys.executable, "-m", "pytest", colour, *words]
    kept: list[str] = []
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = COLOUR.sub("", line)
            if last.startswith(("FAILED ", "ERROR ", SECOND_TRY)):
                kept.append(last)
    return process.returncode, [*kept, last]


def run_patiently(marks: str, options: tuple[str, ...], words: list[str]) -> tuple[int, list[str]]:
    """Runs a part; if few of its tests failed, runs these once more, one by one."""
    code, lines = run(["-m", marks, *options, *words])
    failed = [line for line in lines[:-1] if not line.startswith(SECOND_TRY)]
    if code != FAILED or not 0 < len(failed) <= TRIED_AGAIN_MOST:
        return code, lines
    print(f"\n== {len(failed)} failed, and once more")
    again, lines_again = run(["-m", marks, *words, "--last-failed", "--last-failed-no-failures", "none"])
    mended = again == 0 and f" {len(failed)} passed" in lines_again[-1]
    tries = [
        f"{SECOND_TRY} {line.split()[1]}: failed among other tests, run again alone\n" for line in failed
    ]
    return 0 if mended else code, [*lines, *tries, *lines_again]


def main(words: list[str]) -> int:
    """All parts, also if one fails, and their summaries at the end."""
    parts = ALL if "--all" in words else QUICK
    words = [word for word in words if word != "--all"]
    done = [run_patiently(marks, options, words) for marks, options in parts]
    print("\n== several at a time, in pairs, and one by one")
    for _, lines in done:
        print("".join(lines), end="")
    tries = sum(line.startswith(SECOND_TRY) for _, lines in done for line in lines)
    print(f"== tests that needed a second try: {tries}")
    codes = [code for code, _ in done if code != NOTHING_COLLECTED]
    return max(codes, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
