"""Tells how much of a long trace was read, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linerate.cli.progress import Teller


@contextmanager
def telling_of_reading(name: str) -> Iterator[Callable[[float], None]]:
    """Gives what hears the share that was read, 0 to 1. Nothing is shown of what is read at once."""
    with ExitStack() as stack:

        @cache
        def teller() -> Teller:
            from linerate.cli.progress import telling  # most files are read at once

            return stack.enter_context(telling(err=True, waits=True))

        yield lambda done: teller()(f"reading {name}", done)
