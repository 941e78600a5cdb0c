"""A study of one case that is extended as long as the case is undecided, simulated many times."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from linerate.analysis.verdict import ALPHA, MARGIN, plan_looks
from linerate.analysis.verdict.decide import decide, measure

from tests.support.samples.noisy_studies import CALM, make_studies

ENDS = (3, 6, 9, 12)
"""Blocks at each look: three were planned, and three are added up to three times."""
RUN_NOISE = 0.04


def false_results_percent(truth: float, *, studies: int, seed: int) -> tuple[float, float]:
    """Share of studies with a false result at any look: with the shares of the looks, and with 5 % at every look.

    `truth` is the effect (a logarithm). It is judged falsely if it is called small; 0, if a difference is shown.
    """
    margins = (math.log(1 - MARGIN), math.log(1 + MARGIN))
    simulated = make_studies(
        np.array([truth]), studies=studies, blocks=ENDS[-1], noise=replace(CALM, run=RUN_NOISE), seed=seed
    )
    wrong, still = [0, 0], [np.ones(studies, bool), np.ones(studies, bool)]
    for at, blocks in enumerate(ENDS):
        looks = plan_looks(ENDS[0], ENDS[0], list(pairwise(ENDS))[:at])
        found = measure(simulated.points()[:, :blocks], margins, ALPHA)
        rows = [values[:, None] for values in (found.centre, found.p, found.p_equivalent)]
        for way, share in enumerate((looks.share(blocks), 1.0)):
            decision = decide(*rows, margins, ALPHA, share)
            shown, small = decision.direction[:, 0] != 0, decision.equivalent[:, 0]
            wrong[way] += int(((small if truth else shown) & still[way]).sum())
            still[way] &= ~(shown | small)
    with_shares, without = (100 * count / studies for count in wrong)
    return with_shares, without
