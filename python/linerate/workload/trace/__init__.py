"""Traces: recorded I/Os that are replayed at their recorded times.

Open this file first. `recognise` names the form of a file, `lines` gives its lines, `iolog`, `blkparse` and `snia` read
one form each, `records` holds the I/Os and compiles them for the data plane, `load` makes the plan and says what was
read otherwise. docs/trace.md is the page for users.
"""
