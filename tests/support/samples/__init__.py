"""Synthetic runs for the tests of results, analysis and report.

`hdr.py` is a plain HdrHistogram (an independent check of the encoding as well); `synthetic.py` makes runs of
any shape from a seed; `run-v1/` and `run-v2/` are such runs, checked in, one of each older
format, which every later version must go on reading.
"""
