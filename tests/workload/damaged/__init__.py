"""Damaged workload files of every kind."""
