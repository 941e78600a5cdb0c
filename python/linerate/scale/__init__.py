"""`linerate scale`: the largest load that keeps a threshold of response time.

`search.py` chooses the loads to measure and says when it is known; open it first. `threshold.py` judges one load from
its repeats, `law.py` fits the Universal Scalability Law to what was measured, `climb.py` runs the loads.
"""

from linerate.scale.climb import Axis, Climb, Reached, answer, check, climb, lines
from linerate.scale.law import Law, fit
from linerate.scale.search import Capacity, Search, SearchLimits
from linerate.scale.threshold import Standing, Threshold, standing

__all__ = [
    "Axis",
    "Capacity",
    "Climb",
    "Law",
    "Reached",
    "Search",
    "SearchLimits",
    "Standing",
    "Threshold",
    "answer",
    "check",
    "climb",
    "fit",
    "lines",
    "standing",
]
