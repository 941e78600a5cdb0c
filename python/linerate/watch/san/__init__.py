"""A virtual SAN as it is watched: its topology as a drawing, and what each link carries, drops and holds.

Open `source` first: a lab that is up. `lab` is the part that asks its supervisor, `study` finds the SAN of a study's
run and takes what the run recorded once its lab is down, `figures` turns counters into what the page shows.
"""

from linerate.watch.san.source import LabSource
from linerate.watch.san.study import StudySan

__all__ = ["LabSource", "StudySan"]
