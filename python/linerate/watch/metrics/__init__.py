"""What `/metrics` gives, in OpenMetrics: counters and sums with units, and gauges of the present state.

Rates and percentiles are for the reader to compute. `exposition` is the one call; `run` and `study` are tables of
what is exported, `linerate.array.figures.metrics` is that of an array.
"""

from linerate.watch.metrics.exposition import exposition

__all__ = ["exposition"]
