"""The port of this host on the path, and the adapters below it.

`adapter.py` has the port's settings and notes on them. `watch.py` reads what the adapters and bonds below the port
count during the trials, as `seen.py` has it; `notes.py` says what of it is worth a note.
"""
