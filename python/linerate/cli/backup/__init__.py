"""`linerate backup-load`: `load.py` is the verb, `told.py` what it says."""
