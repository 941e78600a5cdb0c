"""A count and its noun."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """`1 volume`, `3 volumes`; for nouns with a plural in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
