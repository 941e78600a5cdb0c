"""What limited a run, or a case of a study.

`attribution.py` reads the figures of one or several runs and names the limit; open it first. `bottleneck.py` makes the
sentences of a single run from that, and knows two limits more: a full load generator, and the port of a real host.
`wire.py` has what a frame adds to its data.
"""
