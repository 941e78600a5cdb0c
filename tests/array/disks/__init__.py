"""Disks in files: full, missing, damaged, looked at."""
