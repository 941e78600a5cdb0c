"""Whether a word of the command line means a study, and whether that needs a virtual SAN.

Asked before the rooms that do the work are loaded: the right to build a virtual SAN may have to be taken while this
process still has a single thread.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from linerate.studies import SUFFIX, named


def study_file(word: str) -> Path | None:
    """The study file that a word names: a path, or the name of a shipped study. None: it means something else."""
    path = Path(word) if Path(word).is_file() else named(word)
    return path if path is not None and "san" in _tables(path) else None


def prepare(path: Path) -> None:
    """Takes the right to build a virtual SAN if the study of this file or directory needs one; one that is computed
    needs none.

    Raises HostError where it cannot be had.
    """
    sans = _tables(path).get("san", ()) if path.is_file() else _recorded_sans(path)
    if any(isinstance(san, dict) and san.get("topology") and san.get("clock") != "virtual" for san in sans):
        from linerate.lab import enter

        enter()


def _tables(path: Path) -> dict[str, Any]:
    """What a TOML file holds; nothing if it is none, which its reader will tell."""
    if path.suffix.lower() != SUFFIX:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}


def _recorded_sans(directory: Path) -> list[dict[str, Any]]:
    """Of a study directory, or of a search by `linerate tune`."""
    for name in ("study.json", "tune.json"):
        try:
            sans: list[dict[str, Any]] = json.loads((directory / name).read_bytes())["study"]["sans"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return sans
    return []
