"""Traces: what the readers make of them."""
