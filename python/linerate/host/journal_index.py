"""The index of journals with open changes, so that `linerate host restore` finds them after a crash.

Each journal has a symbolic link in the user's state folder. The links are a convenience, because a journal can
also be named by its path; errors while writing them are ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def state_folder() -> Path:
    r"""The folder for state of this user's programs \(XDG\)."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "linerate"


def default_journal() -> Path:
    """The journal of changes for which no other was named."""
    return state_folder() / "host.jsonl"


def remember(journal: Path) -> None:
    """Notes a journal that holds changes of this host."""
    link = _link_of(journal)
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(journal.absolute())


def forget(journal: Path) -> None:
    """Everything in the journal was put back."""
    with contextlib.suppress(OSError):
        _link_of(journal).unlink(missing_ok=True)


def known_journals() -> list[Path]:
    """Journals of this host that hold changes, as far as they still exist."""
    links = sorted((state_folder() / "open").glob("*"))
    return [link.readlink() for link in links if link.is_symlink() and link.exists()]


def _link_of(journal: Path) -> Path:
    name = hashlib.sha256(os.fsencode(journal.absolute())).hexdigest()[:16]
    return state_folder() / "open" / name
