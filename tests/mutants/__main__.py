"""Takes one guard away at a time, in a copy of the tree, and runs its tests with as many seeds as a plain `cargo test`.

`python -m tests.mutants [WORDS]` takes only those whose names, or whose tables' names, hold one of the words. Exit code
1: some test should have failed and none did, or the other way round.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.mutants import ROOT, Mutant, mutants

_PLACE = ROOT / "target" / "mutants"
"""The copy of the tree, and what was compiled of it, for the next run too."""
# Compiling takes longer than most mutants live.
_STORAGE = "profile.test.package.linerate-storage"
_QUICKLY = ("profile.test.debug=false", f"{_STORAGE}.opt-level=1", f"{_STORAGE}.codegen-units=16")
_CARGO = ("cargo", "test", "--locked", *(f"--config={one}" for one in _QUICKLY))


@dataclass(frozen=True)
class Suite:
    """The tests that are to notice the absence of the guards of a table."""

    runs: tuple[tuple[str, ...], ...]
    """Arguments of `cargo test`, or of pytest, for each part of the tests. Those that notice most are first."""
    is_python: bool = False

    def command(self, part: tuple[str, ...], root: Path) -> list[str]:
        """What runs a part of the tests, which is compiled. Raises CalledProcessError, with the compiler's words."""
        if self.is_python:
            return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *part]
        subprocess.run(
            [*_CARGO, *part, "--no-run"],
            check=True,
            cwd=root,
            env=_environment(root),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return [*_CARGO, *part, "--no-fail-fast", "--", "--nocapture"]


_MODEL = ("-p=linerate-storage", "--test=model")
_STORAGE_PARTS = tuple(("-p=linerate-storage", tests) for tests in ("--test=raid", "--lib", "--test=it"))
SUITES = {
    "commit": Suite((("-p=linerate-io",), ("-p=linerate-iscsi-target", "--test=power_cut"))),
    "engines": Suite((("-p=linerate-iscsi-target", "--lib"), ("-p=linerate-storage", "--lib"))),
    "replication": Suite((("-p=linerate-storage", "--test=replica"), _MODEL)),
    "sessions": Suite((("-p=linerate-sim", "--test=pair"),)),
    "storage": Suite((*_STORAGE_PARTS, _MODEL)),
    "verdicts": Suite((("tests/analysis", "tests/study/test_judge.py"),), is_python=True),
    "vhdx": Suite((("-p=linerate-vhdx", "--lib", "--test=image"),)),
    "smb": Suite((("-p=linerate-smb", "--lib", "--test=it"),)),
    "windows": Suite((("-p=linerate-iscsi-proto",), ("-p=linerate-sim", "--test=pair"))),
    "write-order": Suite((("-p=linerate-iscsi-initiator", "--lib"), ("-p=linerate-sim", "--test=multipath"))),
}
"""By table."""
SLOWER = 4.0
SLACK_S = 120.0
"""A part of the tests that takes so many times as long as with the code as it is, and this more, does not end. That is
noticed, too."""
_TOLD_EVERY = 10

_SEED = re.compile(r"seed (\d+) failed")
_FAILED = re.compile(r"^FAILED (\S+)|^test (\S+) \.\.\. FAILED")
_THREAD = re.compile(r"thread '([\w:]+)'.* panicked")


@dataclass(frozen=True)
class Outcome:
    """What became of a run of the tests."""

    noticed: str | None
    """Which test, with which seed if it has any; none: all passed."""
    parts_s: tuple[float, ...]
    """How long each part ran, in the order of the suite."""

    @property
    def took_s(self) -> float:
        """How long all parts ran."""
        return sum(self.parts_s)


def update_tree(into: Path) -> None:
    """Makes `into` hold the files that the tests need, as they are now. Those that change are newer than all builds."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    names += [str(core.relative_to(ROOT)) for core in (ROOT / "python" / "linerate").glob("_core*.so")]
    wanted = {into / name: ROOT / name for name in names if (ROOT / name).is_file()}
    for path in [path for path in into.rglob("*") if path.is_file() and path not in wanted]:
        path.unlink()
    for copy, source in wanted.items():
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def _environment(root: Path) -> dict[str, str]:
    build = {"CARGO_TARGET_DIR": str(_PLACE / "builds")}
    # No compiled module of an earlier text may count.
    python = {"PYTHONPATH": f"{root / 'python'}{os.pathsep}{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = os.environ | build | python
    for name in ("LINERATE_SIM_SEED", "LINERATE_SIM_FROM", "LINERATE_SIM_RUNS"):
        environment.pop(name, None)
    return environment


def run_suite(root: Path, suite: Suite, untouched: Outcome | None = None) -> Outcome:
    """Runs it until a test fails or all have passed; not much longer than `untouched`. Raises CalledProcessError if it
    does not compile."""
    took_s: list[float] = []
    for number, part in enumerate(suite.runs):
        command = suite.command(part, root)
        most_s = SLOWER * untouched.parts_s[number] + SLACK_S if untouched else threading.TIMEOUT_MAX
        began = time.monotonic()
        noticed = _run(root, command, most_s)
        took_s.append(time.monotonic() - began)
        if noticed is not None:
            return Outcome(noticed, tuple(took_s))
    return Outcome(None, tuple(took_s))


@contextmanager
def _folder_of_tests() -> Iterator[str]:
    """Where tests make their files, which remain if a test is stopped. Servers of other users write there too."""
    with tempfile.TemporaryDirectory(prefix="linerate-mutant-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o1777)
        yield folder


def _run(root: Path, command: list[str], most_s: float) -> str | None:
    """Which test failed first, if one did."""
    began = time.monotonic()
    with (
        _folder_of_tests() as folder,
        subprocess.Popen(
            command,
            cwd=root,
            env=_environment(root) | {"TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        watch = threading.Timer(most_s, stop, [process])
        watch.daemon = True  # an interrupt ends this program at once
        watch.start()
        noticed = _first_failure(process)
        if noticed is not None:
            stop(process)
        watch.cancel()
        code = process.wait()
    if noticed is None and code != 0:
        return "it does not end" if time.monotonic() - began >= most_s else f"exit code {code}"
    return noticed


def _first_failure(process: subprocess.Popen[str]) -> str | None:
    assert process.stdout is not None
    test = "?"
    for line in process.stdout:
        if thread := _THREAD.search(line):
            test = thread[1]
        if seed := _SEED.search(line):
            return f"{test}, seed {seed[1]}"
        if failed := _FAILED.search(line):
            return failed[1] or failed[2]
    return None


def stop(process: subprocess.Popen[str]) -> None:
    """Ends cargo, the test program and the servers that it started, which are in process groups of their own."""
    if process.poll() is None:
        first = psutil.Process(process.pid)
        for one in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def judge(mutant: Mutant, root: Path, untouched: Outcome) -> bool:
    """Whether the tests did as the table expects; tells it."""
    mutant.spoil(root)
    try:
        outcome = run_suite(root, SUITES[mutant.table], untouched)
    except subprocess.CalledProcessError as error:
        print(f"BROKEN    {mutant.name}\n{error.stdout.decode()[-2000:]}", flush=True)
        return False
    finally:
        mutant.mend(root)
    if outcome.noticed is not None:
        word = "noticed" if mutant.why_unnoticed is None else "NOTICED"
        print(f"{word:9} {mutant.name}: {outcome.noticed} ({outcome.took_s:.0f} s)", flush=True)
        return mutant.why_unnoticed is None
    word = "SURVIVED" if mutant.why_unnoticed is None else "survives"
    reason = "" if mutant.why_unnoticed is None else f": {mutant.why_unnoticed}"
    print(f"{word:9} {mutant.name}{reason} ({outcome.took_s:.0f} s)", flush=True)
    return mutant.why_unnoticed is not None


@contextmanager
def _alone() -> Iterator[None]:
    """Waits until no other run uses the copy of the tree."""
    with open(_PLACE / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(words: list[str]) -> int:
    """All chosen mutants. 0: as expected."""
    chosen = [
        one for one in mutants() if not words or any(word in f"{one.table} {one.name}" for word in words)
    ]
    began = time.monotonic()
    root = _PLACE / "tree"
    root.mkdir(parents=True, exist_ok=True)
    with _alone():
        update_tree(root)
        print(f"{len(chosen)} guards; first their tests with the code as it is", flush=True)
        untouched: dict[str, Outcome] = {}
        for table in dict.fromkeys(mutant.table for mutant in chosen):
            outcome = untouched[table] = run_suite(root, SUITES[table])
            if outcome.noticed is not None:
                print(f"the tests of {table} fail as they are: {outcome.noticed}", flush=True)
                return 1
            print(f"untouched: all tests of {table} pass ({outcome.took_s:.0f} s)", flush=True)
        as_expected = []
        for number, mutant in enumerate(chosen, 1):
            as_expected.append(judge(mutant, root, untouched[mutant.table]))
            if number % _TOLD_EVERY == 0 and number < len(chosen):
                minutes = (time.monotonic() - began) / 60
                print(f"          {number} of {len(chosen)} guards after {minutes:.0f} min", flush=True)
    print(f"{sum(as_expected)} of {len(as_expected)} guards: as expected", flush=True)
    return 0 if all(as_expected) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
