"""Faults, planted one at a time: which rule must find each, and what mends it."""
