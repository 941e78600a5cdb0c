"""A run as it is watched: its directory is read while the run writes it, and never written.

Open `source` first: it turns what was appended to the directory into messages. `lines` reads the intervals, `point`
makes the figures of one interval, `step` those of a whole step, `totals` the counters for `/metrics`.
"""

from linerate.watch.run.source import RUN_KINDS, RunSource

__all__ = ["RUN_KINDS", "RunSource"]
