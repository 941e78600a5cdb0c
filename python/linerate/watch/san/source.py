"""A lab as it is watched by `linerate watch --lab`: its cables can be pulled from the page."""

from __future__ import annotations

import time
from collections.abc import Iterator

from linerate.errors import LinerateError, UserError
from linerate.watch.feed import Update
from linerate.watch.san.lab import LabView

RETRY_S = 2.0


class LabSource:
    """A lab by name. Once it is down, it is looked for again: a lab that is brought up under its name is shown.

    Raises UserError if it is not up at the start; without a name, if it is not clear which lab is meant.
    """

    def __init__(self, name: str | None = None) -> None:
        self._view: LabView | None = LabView(name, may_pull=True)
        self.name = self._view.name
        self._is_new = True
        self._trouble: LinerateError | None = None
        self._tried_at = 0.0

    def poll(self) -> Iterator[Update]:
        """What is new. Raises LinerateError while the lab is down, or one of its programs is."""
        try:
            view = self._connected()
            if self._is_new:
                self._is_new = False
                yield self._state("up")
            yield from view.poll()
        except LinerateError as error:
            if error is not self._trouble:
                self.close()
                self._trouble = error
                yield self._state("down")
            raise

    def cable(self, link: str, *, plugged: bool) -> Iterator[Update]:
        """Pulls the cable of a link or plugs it in; the SAN as it is then. Raises what the lab refuses it with."""
        view = self._view
        if view is None:
            raise UserError(f"the lab {self.name} is not up", "bring it up again: linerate lab up")
        (view.plug if plugged else view.pull)(link)
        return view.state()

    def close(self) -> None:
        """Hangs up; the lab stays."""
        view, self._view = self._view, None
        if view is not None:
            view.close()

    def _connected(self) -> LabView:
        if self._view is None:
            if self._trouble is not None and time.monotonic() - self._tried_at < RETRY_S:
                raise self._trouble
            self._tried_at = time.monotonic()
            self._view = LabView(self.name, may_pull=True)
            self._is_new, self._trouble = True, None
        return self._view

    def _state(self, state: str) -> Update:
        return Update("lab", {"name": self.name, "state": state}, "lab")
