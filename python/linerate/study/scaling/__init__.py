"""Studies with a [scale] table: each case is searched for the largest load that keeps a threshold of response time.

`searching.py` carries out one search of a study, run by run, and goes on with the runs of the journal; open it first.
`comparison.py` compares the largest loads of cases, with intervals from those of both. `growth.py` judges what was
published about how rates grow.
"""

from linerate.study.scaling.comparison import CaseSearch, judgement, searches, sentences
from linerate.study.scaling.growth import claim_verdicts
from linerate.study.scaling.searching import Searching

__all__ = ["CaseSearch", "Searching", "claim_verdicts", "judgement", "searches", "sentences"]
