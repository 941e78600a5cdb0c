"""`--overwrite`: what the user lets a run write over, and the question on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.volumes import Consent, Look


def consent_of(words: Sequence[str] | None, *, json: bool) -> Consent:
    """What --overwrite names; on a terminal the rest is asked for, unless a program reads along."""
    from linerate.volumes import Consent

    interactive = not json and sys.stdin.isatty() and sys.stdout.isatty()
    return Consent.of(words or (), _ask if interactive else None)


def _ask(looks: Sequence[Look]) -> bool:
    from linerate.volumes import listing

    sys.stdout.write(f"this run writes to\n{listing(looks)}\nWhat is there will be lost. Go on? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
