"""`linerate backup-load`: `load.py` is the verb, `words.py` its options, `told.py` what it says."""
