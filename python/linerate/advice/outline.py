"""Parts of JSON that others wrote: each is taken for what it should be, and is empty where it is something else."""

from __future__ import annotations

from typing import Any


def as_table(value: object) -> dict[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A list. A single object counts as a list of one, as PowerShell writes it; None is empty."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def as_text(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def as_number(value: object) -> float | None:
    """A finite number, also one that is written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or not abs(value) < 1e18:
        return None
    return value
