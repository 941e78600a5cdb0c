"""The files that come with Linerate: studies, workloads of published studies, and their claims. README.md lists them.

Imports nothing of Linerate, so that a word of the command line can be looked up before other packages are loaded.
"""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".toml"
STUDIES = Path(__file__).resolve().parent
"""The folder that holds them."""


def named(word: str) -> Path | None:
    """The file here that a word names: its name without a folder, with or without `.toml`. None: there is none."""
    path = STUDIES / f"{word.removesuffix(SUFFIX)}{SUFFIX}"
    return path if Path(word).name == word and path.is_file() else None
