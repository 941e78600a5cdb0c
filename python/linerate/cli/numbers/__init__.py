"""Verbs that hand figures on: `export` to other programs, `compare` to scripts, `history` over many runs.

`outfile.py` asks before a file is replaced.
"""
