"""Carries a workload plan out: starts each run in the data plane, pulls its intervals, writes the run directory.

Open `execute` first: it is that line in code. What happens on the way is told as events (`events`) to whoever asked;
what a run looks like on a screen and what its result is worth to a study are other rooms' business.
"""

from linerate.run.arrays import ArrayWatch, Reports, Watcher, watch
from linerate.run.events import Ending, RunEvent
from linerate.run.execute import Beside, Counters, Execution, Outcome, carry_out
from linerate.run.load import Load, LoadEnd, LoadStarter, LocalLoad, SimulatedLoad

__all__ = [
    "ArrayWatch",
    "Beside",
    "Counters",
    "Ending",
    "Execution",
    "Load",
    "LoadEnd",
    "LoadStarter",
    "LocalLoad",
    "Outcome",
    "Reports",
    "RunEvent",
    "SimulatedLoad",
    "Watcher",
    "carry_out",
    "watch",
]
