"""Verdicts: which changes helped, by how much, how sure that is, and what held each case back.

Open `judge.py` first. A study runs every case once per block, in shuffled order, with the baseline once or twice
among them. The run is the unit: its intervals resemble each other and prove nothing about the next run. Each
run gives one number per metric; each block gives one log-ratio per case, case against the baseline of the same
block, so that drift from block to block cancels. From there:

1. `blocks.py` lays the observations out as tables: per workload and metric, cases by blocks.
2. `estimate.py` turns a row of log-ratios into a mean, a t interval and p values: arithmetic on whole arrays.
3. `looks.py` divides the error rate among the times at which results are looked at.
4. `decide.py` corrects for the number of comparisons (Holm) and of looks, and answers whether there is a difference,
   and whether it matters. `power.py` says how many blocks would decide it.
5. `noise.py` compares the baseline with itself, and looks for drift along the blocks.
6. `warnings.py` says what weakens the judgement as a whole.

A run's numbers come from `linerate.analysis.figures`; `linerate.analysis.limits` names what limited each case, and
`claims.py` sets published findings beside the effects.
"""

from linerate.analysis.figures import figures_of
from linerate.analysis.limits.attribution import Attribution, Limit, attribute
from linerate.analysis.metric import METRICS, Metric, Scale, find_metric
from linerate.analysis.observation import Observation
from linerate.analysis.verdict.claims import (
    Expectation,
    PublishedClaim,
    judge_claims,
    read_claims,
    shipped_claims,
)
from linerate.analysis.verdict.judge import ALPHA, MARGIN, judge
from linerate.analysis.verdict.looks import Looks, plan_looks
from linerate.analysis.verdict.model import (
    GAINS,
    LOSSES,
    VERDICTS,
    ClaimOutcome,
    ClaimVerdict,
    Deviance,
    Drift,
    Effect,
    Judgement,
    NoiseFloor,
    Verdict,
)

__all__ = [
    "ALPHA",
    "GAINS",
    "LOSSES",
    "MARGIN",
    "METRICS",
    "VERDICTS",
    "Attribution",
    "ClaimOutcome",
    "ClaimVerdict",
    "Deviance",
    "Drift",
    "Effect",
    "Expectation",
    "Judgement",
    "Limit",
    "Looks",
    "Metric",
    "NoiseFloor",
    "Observation",
    "PublishedClaim",
    "Scale",
    "Verdict",
    "attribute",
    "figures_of",
    "find_metric",
    "judge",
    "judge_claims",
    "plan_looks",
    "read_claims",
    "shipped_claims",
]
