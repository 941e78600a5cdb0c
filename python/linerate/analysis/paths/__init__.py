"""What several paths to a volume carried, and what a fault among them cost.

Open `layout.py` first: it sums up a run's table of paths, per path and per port. `explain.py` makes one sentence of
that, from measured figures only. `faults.py` holds the events of the paths against the run's intervals: per fault, how
long until I/O went another way, who waited, what coming back cost.
"""

from linerate.analysis.paths.explain import explain
from linerate.analysis.paths.faults import FaultOutcome, fault_outcomes
from linerate.analysis.paths.layout import (
    Meeting,
    PathFigures,
    PathLayout,
    layout_of,
    merged_layout,
    over_time,
)

__all__ = [
    "FaultOutcome",
    "Meeting",
    "PathFigures",
    "PathLayout",
    "explain",
    "fault_outcomes",
    "layout_of",
    "merged_layout",
    "over_time",
]
