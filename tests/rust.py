"""Runs the Rust tests: programs that compute beside programs that wait. `python3 -m tests.rust` needs no package; with
`--no-run` it only builds them.

Models and simulations take CPU time and no real time; tests with sockets mostly wait. So the former run with a low
priority beside the latter. A program that failed is run once more when all others are done, and the summary names it.
Exit code: that of cargo or of the last program that failed twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

CARGO = ("cargo", "test", "--locked", "--workspace", "--exclude", "linerate-py")
COMPUTED = ("storage", "vhdx", "sim")
"""Folders of crates whose tests have a virtual clock."""
NICE = "10"
# The same words as for Python's tests (tests/support/patience.py).
SECOND_TRY = "SECOND TRY"


@dataclass(frozen=True, slots=True)
class Program:
    """The tests of a library, or a file of tests."""

    name: str
    path: str
    crate: Path

    @property
    def is_computed(self) -> bool:
        """Whether it takes CPU time and no real time."""
        return self.crate.name in COMPUTED

    def run(self) -> tuple[int, str]:
        """Exit code and output. It runs in its crate's folder, as cargo runs it."""
        nice = ("nice", "-n", NICE) if self.is_computed else ()
        environment = os.environ | {"CARGO_MANIFEST_DIR": str(self.crate)}
        done = subprocess.run(
            [*nice, self.path],
            cwd=self.crate,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def programs() -> list[Program]:
    """Compiles all tests. Raises CalledProcessError; cargo has then said why."""
    command = [*CARGO, "--no-run", "--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            crate = Path(message["manifest_path"]).parent
            found.append(Program(f"{crate.name}: {message['target']['name']}", message["executable"], crate))
    return found


def run_all(wanted: list[Program]) -> list[Program]:
    """Runs both kinds beside each other, each kind one by one. Gives what failed."""
    failed: list[Program] = []
    lock = threading.Lock()

    def one_by_one(kind: list[Program]) -> None:
        for program in kind:
            code, said = program.run()
            with lock:
                print(f"     Running {program.name}\n{said}", flush=True)
                if code:
                    failed.append(program)

    kinds = [[program for program in wanted if program.is_computed is computed] for computed in (True, False)]
    threads = [threading.Thread(target=one_by_one, args=(kind,), daemon=True) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def main(words: list[str]) -> int:
    """All tests of programs, then those of the documentation."""
    try:
        wanted = programs()
    except subprocess.CalledProcessError as error:
        return error.returncode
    if words == ["--no-run"]:
        return 0
    failed = run_all(wanted)
    code = 0
    for program in failed:
        print(f"\n== {program.name} failed, and once more", flush=True)
        again, said = program.run()
        print(said, flush=True)
        code = again or code
    documentation = subprocess.run([*CARGO, "--doc"], check=False).returncode
    print(f"== {len(wanted)} programs of Rust tests")
    for program in failed:
        print(f"{SECOND_TRY} {program.name}: failed beside others, run again alone")
    return code or documentation


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
