"""`python -m bench [--quick] [--rounds N] [--seconds S] [--json FILE] [GROUP ...]`: measure and print the table.

Absolute figures drift from second to second on a shared machine; only the ratios of one round mean something, and a
wide spread says that the machine was busy. Many short rounds follow the drift better than few long ones. Exit status 1
if a bar is missed, so that a script can stop on it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from linerate.lab.cpu.idle import POLLING, kept_awake

from . import cases, digests, engine, engines, files, fresh, raid, smb, waiting, workers
from .cases import Result, Setting

BINARIES = (
    *("bench-array", "bench-load", "bench-parity", "bench-pool", "bench-signing"),
    *("rawtcp-server", "rawtcp-client"),
)
GROUPS = cases.GROUPS | {
    "waiting": waiting.waiting,
    "files": files.files,
    "raid": raid.raid,
    "engine": engine.engine,
    "engines": engines.engines,
    "fresh": fresh.fresh,
    "digests": digests.digests,
    "smb": smb.smb,
    "workers": workers.workers,
}


def line(result: Result) -> str:
    """One line of the table."""
    if not result.ratios:
        return f"{result.name:<74} {result.note}"
    sign = "<=" if result.at_most else ">="
    bar = f"{sign} {result.bar:.2f}" if result.bar is not None else "-"
    verdict = {True: "pass", False: "FAIL", None: ""}[result.passed]
    return f"{result.name:<74} {bar:>8} {result.ratio:8.3f} {result.spread:7.0%} {verdict:4} {result.note}".rstrip()


def as_json(result: Result) -> dict[str, object]:
    """Give one result to machines."""
    return {
        "name": result.name,
        "bar": result.bar,
        "at_most": result.at_most,
        "ratios": result.ratios,
        "ratio": result.ratio if result.ratios else None,
        "passed": result.passed,
        "note": result.note,
    }


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the time: shows that everything runs"
    )
    parser.add_argument("--rounds", type=int, help="rounds of A and B (default 11, quick 1)")
    parser.add_argument("--seconds", type=float, help="time of one measurement (default 1, quick 0.5)")
    parser.add_argument("--json", type=Path, help="write the results there too")
    options = parser.parse_args()
    unknown = [group for group in options.groups if group not in GROUPS]
    if unknown:
        parser.error(f"no group {unknown[0]!r}; there are {', '.join(GROUPS)}")
    if len(os.sched_getaffinity(0)) < 2:
        print("bench needs two CPUs: one for the array, one for the client", file=sys.stderr)
        return 2
    from .processes import RELEASE

    missing = [name for name in BINARIES if not (RELEASE / name).exists()]
    if missing:
        print(f"{RELEASE / missing[0]} is missing: cargo build --release -p linerate-bench", file=sys.stderr)
        return 2
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="linerate-bench-") as directory, kept_awake() as idle_cpus:
        if idle_cpus != POLLING:
            print(
                "idle CPUs sleep and have to be woken (root may keep them awake): expect a wide spread",
                file=sys.stderr,
            )
        seconds = options.seconds or (0.5 if options.quick else 1.0)
        rounds = options.rounds or (1 if options.quick else 11)
        setting = Setting(Path(directory), seconds, rounds)
        print(f"{'comparison':<74} {'bar':>8} {'median':>8} {'spread':>7}")
        for group in options.groups or GROUPS:
            for result in GROUPS[group](setting):
                print(line(result), flush=True)
                results.append(result)
    if options.json:
        options.json.write_text(json.dumps([as_json(result) for result in results], indent=2) + "\n")
    return 1 if any(result.passed is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
