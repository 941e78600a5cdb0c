"""What `/metrics` gives, in OpenMetrics: counters and sums with units, and gauges of the present state.

Rates and percentiles are for the reader to compute. `exposition` is the one call; `run`, `study` and `array` are the
tables of what is exported.
"""

from linerate.watch.metrics.exposition import CONTENT_TYPE, exposition

__all__ = ["CONTENT_TYPE", "exposition"]
