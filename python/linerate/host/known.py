"""Where journals lie whose changes were not put back, so that `linerate host restore` finds them after a
crash.

A link in the user's state folder leads to each. They are a convenience: a journal can always be named by its
path, so what cannot be written here is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def state_folder() -> Path:
    """Where this user's programs keep what outlives them (XDG)."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "linerate"


def default_journal() -> Path:
    """The journal of changes for which no other was named."""
    return state_folder() / "host.jsonl"


def remember(journal: Path) -> None:
    """Notes a journal that holds changes of this host."""
    place = _place(journal)
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(journal.absolute())


def forget(journal: Path) -> None:
    """Everything in the journal was put back."""
    with contextlib.suppress(OSError):
        _place(journal).unlink(missing_ok=True)


def known_journals() -> list[Path]:
    """Journals of this host that hold changes, as far as they still exist."""
    links = sorted((state_folder() / "open").glob("*"))
    return [link.readlink() for link in links if link.is_symlink() and link.exists()]


def _place(journal: Path) -> Path:
    name = hashlib.sha256(os.fsencode(journal.absolute())).hexdigest()[:16]
    return state_folder() / "open" / name
