"""`linerate scale`: the largest load that keeps a threshold of response time, and what is below it.

`procedure.py` chooses the runs to make; open it first. `search.py` finds the largest load, `threshold.py` judges one
load from its repeats, `curve.py` measures chosen loads equally often and `linear.py` judges whether their rates grow
linearly, `way_down.py` measures some loads once more, `headroom.py` shares of the largest rate. `laws/` tells what
rate other loads have, `climb.py` makes the runs, `record.py` keeps them, `words.py` says what came of them.
"""

from linerate.scale.climb import Climb, check, climb
from linerate.scale.curve import Curve, runs_of_curve
from linerate.scale.headroom import Headroom, headroom
from linerate.scale.linear import Growth, LoadGrowth, growth
from linerate.scale.loads import LOAD_MOST, at_task
from linerate.scale.procedure import Parts, Procedure, runs_planned
from linerate.scale.reached import Axis, Reached, ScaleTask
from linerate.scale.record import SCALE, ScaleRecord
from linerate.scale.search import Capacity, Search, SearchLimits
from linerate.scale.threshold import Standing, Threshold, standing

__all__ = [
    "LOAD_MOST",
    "SCALE",
    "Axis",
    "Capacity",
    "Climb",
    "Curve",
    "Growth",
    "Headroom",
    "LoadGrowth",
    "Parts",
    "Procedure",
    "Reached",
    "ScaleRecord",
    "ScaleTask",
    "Search",
    "SearchLimits",
    "Standing",
    "Threshold",
    "at_task",
    "check",
    "climb",
    "growth",
    "headroom",
    "runs_of_curve",
    "runs_planned",
    "standing",
]
