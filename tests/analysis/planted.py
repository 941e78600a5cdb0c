"""Twelve studies in the virtual SAN whose truth is known: `python -m tests.analysis.planted`. It takes 8 to 20 minutes.

The line rate of one case is 2 % or 3 % higher than the baseline's, or nothing differs. The workloads fill the lines, so
that the throughput follows the line rate. A study is right if its verdict is the truth: a gain, or no difference. The
table of `docs/statistics.md` is replaced. Exit code 1: a study is wrong. The studies stay in the directory of the
argument, or in a temporary one that is removed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from linerate.analysis.verdict.model import GAINS, Effect
from linerate.study import StudyDirectory

from tests.analysis.tables import replace_table

BASE_KBIT_S = 250_000
CHANGES_PERCENT = (0, 2, 3)
WORKLOADS = ("seqread", "seqwrite")
SEEDS = (1, 2)

STUDY = """\
title = "A line rate that is {percent} % higher"
margin_percent = 1

[[san]]
topology = "base-san"

[[workload]]
name = "{workload}"
file = "dell-nic/256k-{file}.vdb"
metric = "mib_s"
elapsed = "2s"
warm_up = "0.4s"

[baseline]
settings = {{ link.rate = "{base}kbit" }}

[[case]]
name = "case"
settings = {{ {setting} }}

[repeat]
blocks_min = 4
blocks_max = 12
budget = "4m"
settle = "0.1s"
"""


@dataclass(frozen=True)
class Planted:
    """A study with a known effect."""

    percent: int
    workload: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its file and directory."""
        return f"{self.workload}-{self.percent}-{self.seed}"

    def text(self) -> str:
        """The study file."""
        rate = BASE_KBIT_S * (100 + self.percent) // 100
        setting = f'link.rate = "{rate}kbit"' if self.percent else ""
        file = self.workload.replace("seq", "seq-")
        return STUDY.format(
            percent=self.percent, workload=self.workload, file=file, base=BASE_KBIT_S, setting=setting
        )

    def is_right(self, effect: Effect) -> bool:
        """Whether the verdict is the truth."""
        return effect.verdict in GAINS if self.percent else effect.verdict == "no difference"

    def row(self, effect: Effect) -> str:
        """A row of the table."""
        low, high = effect.change_low, effect.change_high
        interval = "" if low is None or high is None else f"{low:+.2f} .. {high:+.2f}"
        right = "right" if self.is_right(effect) else "**wrong**"
        return (
            f"| {self.percent} % | {self.workload} | {self.seed} | {effect.blocks} | {effect.change:+.2f} % "
            f"| {interval} | {effect.verdict} | {right} |"
        )


def run(planted: Planted, directory: Path) -> Effect:
    """The effect that a study finds. Raises CalledProcessError if it fails."""
    file = directory / f"{planted.name}.toml"
    file.write_text(planted.text())
    output = directory / planted.name
    command = [sys.executable, "-m", "linerate.cli", "study", "run", str(file), "--wait"]
    subprocess.run(
        [*command, "--seed", str(planted.seed), "--output", str(output)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    verdicts = StudyDirectory.open(output).verdicts
    assert verdicts is not None
    return next(effect for effect in verdicts.judgement.effects if effect.primary)


def rows(directory: Path, found: list[bool]) -> Iterator[str]:
    """The table, one row per study; `found` says which verdicts are right."""
    yield "| line rate | workload | seed | blocks | change | 95 % interval | verdict | |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for percent, workload, seed in product(CHANGES_PERCENT, WORKLOADS, SEEDS):
        planted = Planted(percent, workload, seed)
        effect = run(planted, directory)
        found.append(planted.is_right(effect))
        row = planted.row(effect)
        print(row, flush=True)
        yield row


def main() -> int:
    """Run the studies and replace the table of the page."""
    found: list[bool] = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        directory.mkdir(parents=True, exist_ok=True)
        replace_table("planted", rows(directory, found))
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
