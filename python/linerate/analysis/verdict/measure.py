"""One comparison's figures: estimate, interval and p values, by the methods that its number of blocks allows.

Rows that have the same blocks and labels are measured together, as arrays: the cases of a study, or those of a
thousand simulated studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linerate.analysis.verdict.estimate import (
    BCA_FROM_BLOCKS,
    Array,
    bca_interval,
    estimate,
    p_different,
    p_equivalent,
    t_interval,
)
from linerate.analysis.verdict.model import Interval, Test
from linerate.analysis.verdict.permutation import p_permutation, useful


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures per row; all but `centre` are NaN with a single block. Which test and interval, for all rows."""

    centre: Array
    error: Array
    low: Array
    high: Array
    p: Array
    p_equivalent: Array
    test: Test
    interval: Interval


def measure(
    labels: Sequence[Array], margins: tuple[Array | float, Array | float], family: int, alpha: float
) -> Measured:
    """Measure rows.

    Args:
        labels: one array per block, (rows, labels of that block): the effect under every labelling of the block's
            runs, the observed one first.
        margins: lower and upper bound of what does not matter, one for all or one per row.
        family: number of comparisons that will be corrected together.
        alpha: the level of the study.
    """
    points = np.stack([block[:, 0] for block in labels], axis=-1)
    found = estimate(points)
    enough = found.freedom > 0
    by_permutation = enough and useful([block.shape[1] for block in labels], family, alpha)
    # the bootstrap has nothing to draw from rows that never vary
    by_bootstrap = points.shape[-1] >= BCA_FROM_BLOCKS and bool((found.error > 0).all())
    low, high = bca_interval(points, alpha) if by_bootstrap else t_interval(found, alpha)
    return Measured(
        centre=found.centre,
        error=found.error,
        low=low,
        high=high,
        p=p_permutation(labels) if by_permutation else p_different(found),
        p_equivalent=p_equivalent(found, *margins),
        test="permutation" if by_permutation else "t" if enough else "",
        interval="bca" if by_bootstrap else "t" if enough else "",
    )
