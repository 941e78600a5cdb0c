"""History: the results of the same workload over months, from a folder of runs and studies.

Open `model.py` first: it says what a line of a history is. `gather.py` finds the directories of a folder, `record.py`
reads one, `identity.py` says which workloads are the same, `index.py` keeps what was read, `change_points.py` finds
changes of level, and `judge.py` makes the lines. Nothing here draws.
"""

from linerate.history.change_points import change_points, points_needed
from linerate.history.gather import Gathered, gather
from linerate.history.index import INDEX
from linerate.history.judge import DEFAULT_METRICS, METRIC_NAMES, judge_history
from linerate.history.model import EnvironmentChange, History, HistoryLine, HistoryPoint, LevelChange

__all__ = [
    "DEFAULT_METRICS",
    "INDEX",
    "METRIC_NAMES",
    "EnvironmentChange",
    "Gathered",
    "History",
    "HistoryLine",
    "HistoryPoint",
    "LevelChange",
    "change_points",
    "gather",
    "judge_history",
    "points_needed",
]
