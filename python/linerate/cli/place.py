"""Where results go when the user names no place."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from pathlib import Path

from linerate.filename import file_name

RUNS = Path("runs")


def place_of(name: str) -> Path:
    """A folder under `runs` that is not there yet, named after the time and what is run."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{file_name(name)}"
    places = (RUNS / (stem if number == 1 else f"{stem}-{number}") for number in count(1))
    return next(place for place in places if not place.exists())
