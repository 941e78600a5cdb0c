"""Makes a thousand studies at once whose truth is known: planted effects under the noise of a shared machine.

A run's logarithm is the sum of its case's effect and of what a test bed adds:

- the block's own level (another night, another temperature), the same for all runs of a block;
- drift from the first place of a block to the last, partly the same in all blocks, partly not;
- autocorrelated noise along the study's time, so that neighbours resemble each other;
- now and then a stray run, which something disturbed: 5 to 25 % slower.

Cases stand in shuffled order in every block, as the planner puts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from linerate.analysis.verdict import Observation
from linerate.analysis.verdict.estimate import Array
from numpy.typing import NDArray


@dataclass(frozen=True)
class Noise:
    """Standard deviations and rates, of logarithms: 0.01 is 1 %."""

    run: float = 0.01  # the published studies repeated runs until they agreed this well
    case_ratio: float = 1.0  # noise of a case's runs over that of the baseline's
    correlation: float = 0.4
    block: float = 0.03
    drift: float = 0.02
    drift_varies: float = 0.01
    stray_share: float = 0.02
    stray_from: float = 0.05
    stray_to: float = 0.25


CALM = Noise(correlation=0.0, drift=0.0, drift_varies=0.0, stray_share=0.0)
"""Normal noise that is independent from run to run."""


@dataclass(frozen=True)
class Studies:
    """Simulated studies: logarithms (studies, blocks, runs) and places of the same shape.

    The first `baselines` runs of a block are the baseline, the others one per case in the order of `effects`
    (logarithms).
    """

    runs: Array
    places: NDArray[np.int_]
    effects: Array
    baselines: int

    def points(self) -> Array:
        """Per case and block the effect, (studies * cases, blocks), as `measure` takes them."""
        effects = self.runs[:, :, self.baselines :] - self.runs[:, :, : self.baselines].mean(
            axis=-1, keepdims=True
        )
        return effects.swapaxes(1, 2).reshape(-1, effects.shape[1])

    def observations(self, study: int) -> Iterator[Observation]:
        """One of the studies as its runs would be observed."""
        _, blocks, runs = self.runs.shape
        for block in range(blocks):
            for run in range(runs):
                case = "baseline" if run < self.baselines else f"case{run - self.baselines}"
                value = float(np.exp(self.runs[study, block, run]))
                yield Observation(case, "w", block, {"iops": value}, int(self.places[study, block, run]))


def make_studies(
    effects: Array,
    *,
    studies: int,
    blocks: int,
    baselines: int = 2,
    noise: Noise | None = None,
    seed: int = 1,
    shuffled: bool = True,
) -> Studies:
    """Simulate `studies` studies of `blocks` blocks with the given effects (logarithms) per case."""
    noise = noise or Noise()
    rng = np.random.default_rng(seed)
    runs = baselines + len(effects)
    shape = (studies, blocks, runs)
    places = np.broadcast_to(np.arange(runs), shape)
    if shuffled:
        places = rng.permuted(places, axis=-1)
    values = _autocorrelated(rng, studies, blocks * runs, noise).reshape(shape)
    slope = noise.drift + noise.drift_varies * rng.standard_normal((studies, blocks, 1))
    values += slope * np.arange(runs) / (runs - 1)
    values = np.take_along_axis(values, places, axis=-1)
    if noise.case_ratio != 1:
        # What the case itself adds: independent from run to run.
        added = noise.run * np.sqrt(noise.case_ratio**2 - 1)
        values[:, :, baselines:] += added * rng.standard_normal((studies, blocks, len(effects)))
    values += noise.block * rng.standard_normal((studies, blocks, 1))
    strays = rng.random(shape) < noise.stray_share
    values -= strays * rng.uniform(noise.stray_from, noise.stray_to, shape)
    values[:, :, baselines:] += effects
    return Studies(values, places, effects, baselines)


def _autocorrelated(rng: np.random.Generator, studies: int, length: int, noise: Noise) -> Array:
    fresh = rng.standard_normal((length, studies))
    share = np.sqrt(1 - noise.correlation**2)
    for at in range(1, length):
        fresh[at] = noise.correlation * fresh[at - 1] + share * fresh[at]
    return noise.run * fresh.T
