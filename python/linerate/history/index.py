"""What was read from a folder, kept in one file of it so that the next call does not read everything again.

The file holds nothing that the directories do not hold: delete it, and the next call makes it again. An entry counts
only while the files of its directory have the size and time that they had. The whole file counts only for the
version of Linerate that wrote it, because another version may compute other figures.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from linerate import _core
from linerate.history.identity import digest
from linerate.history.model import Recorded
from linerate.model import Model

INDEX = ".linerate-history.json"
_FORMAT = "linerate-history-index"
_FORMAT_VERSION = 1


class HistoryIndex(Model):
    """The file. `facts` holds each set of facts once; entries name theirs by digest under the key `digest`."""

    format: str = _FORMAT
    format_version: int = _FORMAT_VERSION
    linerate: str
    facts: dict[str, dict[str, str]]
    entries: list[Recorded]


def load_index(folder: Path) -> Mapping[str, Recorded]:
    """Path -> what was read from it. Empty when there is no index, or none that counts."""
    try:
        index = HistoryIndex.model_validate_json((folder / INDEX).read_bytes())
        known = (_FORMAT, _FORMAT_VERSION, _core.__version__)
        if (index.format, index.format_version, index.linerate) != known:
            return {}
        return {entry.path: _with_facts(entry, index.facts) for entry in index.entries}
    except (OSError, ValidationError, KeyError):
        return {}


def save_index(folder: Path, entries: Iterable[Recorded]) -> bool:
    """Replace the index as a whole. False when the folder cannot be written; that is no error."""
    facts: dict[str, dict[str, str]] = {}
    kept = [_without_facts(entry, facts) for entry in entries if entry.signature]
    data = HistoryIndex(linerate=_core.__version__, facts=facts, entries=kept).model_dump_json().encode()
    try:
        handle, name = tempfile.mkstemp(prefix=f"{INDEX}.", dir=folder)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o644)  # it says nothing that the results beside it do not say
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(folder / INDEX)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        return False
    return True


def _without_facts(entry: Recorded, facts: dict[str, dict[str, str]]) -> Recorded:
    results = []
    for result in entry.results:
        name = digest(result.facts)
        facts[name] = dict(result.facts)
        results.append(replace(result, facts={"digest": name}))
    return replace(entry, results=tuple(results))


def _with_facts(entry: Recorded, facts: Mapping[str, Mapping[str, str]]) -> Recorded:
    return replace(
        entry,
        results=tuple(replace(result, facts=facts[result.facts["digest"]]) for result in entry.results),
    )
