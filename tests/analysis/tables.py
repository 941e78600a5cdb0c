"""Writes the tables of `docs/statistics.md`: `python -m tests.analysis.tables`. It takes about a minute.

Every cell is 2,000 simulated studies with known effects (`tests/support/samples/noisy_studies.py`), judged by the same
arrays as a real study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from linerate.analysis.verdict import ALPHA, MARGIN
from linerate.analysis.verdict.decide import decide, measure

from tests.analysis.extended import false_results_percent
from tests.support.samples.noisy_studies import CALM, Noise, make_studies

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"
STUDIES = 2_000
SEED = 29
LOW, HIGH = math.log(1 - MARGIN), math.log(1 + MARGIN)
BLOCKS = (3, 4, 6, 11)


def nothing_there(noise: Noise) -> Iterator[str]:
    """Studies in which no case has an effect: how many show a difference, and how often the interval holds zero."""
    yield "| noise of a case / of the baseline | cases | " + " | ".join(f"{n} blocks" for n in BLOCKS) + " |"
    yield "| --- | --- |" + " --- |" * len(BLOCKS)
    for ratio in (1, 2, 3, 5):
        for cases in (1, 9, 36):
            cells = []
            for blocks in BLOCKS:
                simulated = make_studies(
                    np.zeros(cases),
                    studies=STUDIES,
                    blocks=blocks,
                    noise=replace(noise, case_ratio=ratio),
                    seed=SEED,
                )
                found = measure(simulated.points(), (LOW, HIGH), ALPHA)
                rows = (values.reshape(-1, cases) for values in (found.centre, found.p, found.p_equivalent))
                shown = (decide(*rows, (LOW, HIGH), ALPHA, 0.8).direction != 0).any(axis=1)
                covered = (found.low <= 0) & (found.high >= 0)
                cells.append(f"{100 * shown.mean():.1f} / {100 * covered.mean():.1f}")
            yield f"| {ratio} | {cases} | " + " | ".join(cells) + " |"


def power() -> Iterator[str]:
    """An effect of 2 % on every case, noise of 0.5 % per run: share of the cases that are shown."""
    blocks = (3, 4, 6, 8, 10, 12)
    yield "| cases | " + " | ".join(f"{n} blocks" for n in blocks) + " |"
    yield "| --- |" + " --- |" * len(blocks)
    for cases in (1, 9, 36):
        cells = []
        for count in blocks:
            effects = np.zeros(cases)
            effects[0] = math.log(1.02)  # one true effect among cases without any
            simulated = make_studies(
                effects, studies=STUDIES, blocks=count, noise=replace(CALM, run=0.005), seed=SEED
            )
            found = measure(simulated.points(), (LOW, HIGH), ALPHA)
            rows = (values.reshape(-1, cases) for values in (found.centre, found.p, found.p_equivalent))
            shown = decide(*rows, (LOW, HIGH), ALPHA, 0.8).direction[:, 0] > 0
            cells.append(f"{100 * shown.mean():.0f} %")
        yield f"| {cases} | " + " | ".join(cells) + " |"


def extended() -> Iterator[str]:
    """Three blocks, then three more as long as the case is undecided: false results of the whole study."""
    yield "| the truth | false result | shares of the looks | every look at 5 % |"
    yield "| --- | --- | --- | --- |"
    for truth, name, what in (
        (HIGH, "an effect on the margin", "no difference"),
        (0.0, "no effect", "a difference"),
    ):
        with_shares, without = false_results_percent(truth, studies=5 * STUDIES, seed=SEED)
        yield f"| {name} | {what} | {with_shares:.1f} % | {without:.1f} % |"


def replace_table(name: str, lines: Iterable[str]) -> None:
    """Replace one table of the page."""
    table = "\n".join(lines)
    begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    head, _, rest = PAGE.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(head + begin + "\n" + table + "\n\n" + end + tail)


def main() -> None:
    """Replace the simulated tables of the page."""
    for name, lines in (
        ("calm", nothing_there(CALM)),
        ("realistic", nothing_there(Noise())),
        ("power", power()),
        ("extended", extended()),
    ):
        replace_table(name, lines)


if __name__ == "__main__":
    main()
