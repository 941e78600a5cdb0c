"""The load of an image backup: its command, on files, shares and LUNs."""
