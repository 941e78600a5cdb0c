"""Carries a workload plan out: starts each run in the data plane, pulls its intervals, writes the run directory.

Open `execute` first: it is that line in code. It reports its progress as events (`events`) to the caller;
what a run looks like on a screen and what its result is worth to a study are other rooms' business.
"""

from linerate.run.arrays import ArrayWatch, Reports, Watcher, watch
from linerate.run.counted import Counted, Counters
from linerate.run.events import Ending, RunEvent
from linerate.run.execute import Beside, Execution, RunOutcome, carry_out
from linerate.run.load import Here, Load, LoadEnd, Loader, LocalLoad, SimulatedLoad, VirtualSan

__all__ = [
    "ArrayWatch",
    "Beside",
    "Counted",
    "Counters",
    "Ending",
    "Execution",
    "Here",
    "Load",
    "LoadEnd",
    "Loader",
    "LocalLoad",
    "Reports",
    "RunEvent",
    "RunOutcome",
    "SimulatedLoad",
    "VirtualSan",
    "Watcher",
    "carry_out",
    "watch",
]
