"""Takes one guard away at a time, in a copy of the tree, and runs the models with as many seeds as `make test` does.

`python -m tests.mutants [WORDS]` takes only those whose names hold one of the words. Exit code 1: some seed should have
failed and none did, or the other way round.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import ROOT, Mutant, mutants

STORAGE = ("linerate-storage", ("model",))
REPLICAS = ("linerate-storage", ("model", "replica"))
SESSIONS = ("linerate-sim", ("pair",))
"""Crates, and their test programs that run seeds."""
TIMEOUT_S = 900.0
"""A run that takes longer does not end, which is noticed too."""
# Compiling takes longer than most mutants live.
_QUICKLY = "profile.test.package.linerate-storage.opt-level=1"

_SEED = re.compile(r"seed (\d+) failed")
_THREAD = re.compile(r"thread '([\w:]+)'.* panicked")


@dataclass(frozen=True)
class Outcome:
    """What became of a run of the models."""

    noticed: str | None
    """Which test with which seed; none: all passed."""
    took_s: float


def copy_tree(into: Path) -> None:
    """The files that cargo needs, as they are now. They are newer than builds of other text."""
    parts = ("Cargo.toml", "Cargo.lock", "crates", "bench")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *parts]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, into / name)


def models_of(mutant: Mutant) -> tuple[str, tuple[str, ...]]:
    """The models that a guard is for."""
    if not mutant.file.startswith("crates/storage/"):
        return SESSIONS
    return REPLICAS if "/replica/" in mutant.file else STORAGE


def run_models(root: Path, crate: str, models: tuple[str, ...]) -> Outcome:
    """Runs them until a seed fails or all have passed. Raises CalledProcessError if they do not compile."""
    cargo = ["cargo", "test", "--locked", "--config", _QUICKLY, "-p", crate]
    cargo += [f"--test={model}" for model in models]
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target" / "mutants")}
    for name in ("LINERATE_SIM_SEED", "LINERATE_SIM_RUNS"):
        environment.pop(name, None)
    building = {"cwd": root, "env": environment, "stderr": subprocess.STDOUT}
    subprocess.run([*cargo, "--no-run"], check=True, stdout=subprocess.PIPE, **building)
    began = time.monotonic()
    running = [*cargo, "--no-fail-fast", "--", "--nocapture"]
    with subprocess.Popen(running, stdout=subprocess.PIPE, text=True, process_group=0, **building) as process:
        watch = threading.Timer(TIMEOUT_S, _stop, [process])
        watch.start()
        noticed = _first_failure(process)
        if noticed is not None:
            _stop(process)
        watch.cancel()
        code = process.wait()
    took_s = time.monotonic() - began
    if noticed is None and code != 0:
        noticed = "it does not end" if took_s >= TIMEOUT_S else f"exit code {code}"
    return Outcome(noticed, took_s)


def _first_failure(process: subprocess.Popen[str]) -> str | None:
    assert process.stdout is not None
    test = "?"
    for line in process.stdout:
        if thread := _THREAD.search(line):
            test = thread[1]
        if seed := _SEED.search(line):
            return f"{test}, seed {seed[1]}"
    return None


def _stop(process: subprocess.Popen[str]) -> None:
    """Ends cargo and the test program that it started: they are a process group of their own."""
    if process.poll() is None:
        os.killpg(process.pid, 9)


def judge(mutant: Mutant, root: Path) -> bool:
    """Whether the models did as the table expects; tells it."""
    mutant.spoil(root)
    try:
        outcome = run_models(root, *models_of(mutant))
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


def main(words: list[str]) -> int:
    """All chosen mutants. 0: as expected."""
    chosen = [one for one in mutants() if not words or any(word in one.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="linerate-mutants-") as folder:
        root = Path(folder)
        copy_tree(root)
        for crate, models in sorted({models_of(mutant) for mutant in chosen}):
            untouched = run_models(root, crate, models)
            if untouched.noticed is not None:
                print(f"the models fail as they are: {untouched.noticed}", flush=True)
                return 1
            print(f"untouched {crate}: all seeds pass ({untouched.took_s:.0f} s)", flush=True)
        as_expected = [judge(mutant, root) for mutant in chosen]
    print(f"{sum(as_expected)} of {len(as_expected)} guards: as expected", flush=True)
    return 0 if all(as_expected) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
