"""Replication between two arrays of a lab: full copies of all volumes of the first one, one after the other.

Each copy is a first copy: the partner's data are deleted before. So every copy moves the same amount of data, also if
hosts wrote meanwhile, and runs under different loads can be compared. A copy that the end of a run interrupts continues
in the next run.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from linerate.array import partners
from linerate.array.replication.transfer import CutOffError, transfer
from linerate.errors import LinerateError, UserError
from linerate.lab.supervisor.arrays import POOL
from linerate.san import ISCSI_PORT, Array

if TYPE_CHECKING:
    from linerate.lab.lab import Lab

GROUP = "study"
SENT, BUSY = "replication.sent_bytes", "replication.busy_s"


class Replication:
    """Copies while the `with` block lasts.

    Raises UserError at its begin for a lab that has not two arrays whose volumes are in pools.
    """

    def __init__(self, lab: Lab) -> None:
        pooled = [array for array in lab.topology.arrays if array.storage and array.storage.backing == "pool"]
        if len(pooled) < 2:
            raise UserError(
                f"{lab.topology.name} has no two arrays with pools to replicate between",
                'give two arrays storage = { backing = "pool", ... }',
            )
        self._lab = lab
        self._source, self._partner = pooled[:2]
        self._group = partners.Replication(
            name=GROUP,
            partner=self._partner.name,
            volumes=tuple(volume.name for volume in self._source.volumes),
            pool=POOL,
            keep=1,
        )
        # Both arrays are asked by the lab itself, which knows them by name: nothing goes over a control API.
        self._portal = f"{self._partner.interfaces[0].address}:{ISCSI_PORT}"
        self._pair = {"here": self._source.name, "partner": self._partner.name}
        self._over = threading.Event()
        self._counting = threading.Lock()
        self._sent_bytes = 0
        self._busy_s = 0.0
        self._now: tuple[int, float] = (0, 0.0)
        self._failed: LinerateError | None = None
        self._thread = threading.Thread(target=self._run, name="replication", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the copy under way. Raises what made replication fail, unless something else failed before."""
        self._over.set()
        self._thread.join()
        if self._failed is not None and error is None:
            raise self._failed

    def refusal(self) -> str:
        """Why the source cannot replicate, in its own words; empty if it can. Nothing is copied."""
        if self._knows_group(self._source):
            return ""
        volumes = [volume.name for volume in self._source.volumes]
        try:
            asked = {"group": GROUP, "volumes": volumes, "pair": self._pair}
            self._ask(self._source, "replica_prepare", asked)
            self._ask(self._source, "replica_forget", {"group": GROUP})
        except LinerateError as error:
            return error.message
        return ""

    def counters(self) -> dict[str, float]:
        """`replication.sent_bytes`, and `replication.busy_s`: the time in which a copy was under way; cumulative.

        Raises what made replication fail.
        """
        if self._failed is not None:
            raise self._failed
        with self._counting:
            sent_bytes, busy_s = self._now
            return {SENT: float(self._sent_bytes + sent_bytes), BUSY: self._busy_s + busy_s}

    def _run(self) -> None:
        try:
            with contextlib.suppress(CutOffError):
                while not self._over.is_set():
                    self._copy()
                    self._forget()
        except LinerateError as error:
            self._failed = error

    def _copy(self) -> None:
        """One first copy, from the snapshot at the source to the one at the partner. Raises CutOffError when the run
        ends before it does."""
        try:
            transfer(
                replication=self._group,
                portal=self._portal,
                pair=self._pair,
                here=partial(self._ask, self._source),
                there=self._ask_partner,
                ended=self._over,
                told=self._note,
            )
        finally:
            self._settle()

    def _note(self, progress: dict[str, Any]) -> None:
        """How far the copy under way is."""
        with self._counting:
            self._now = (progress.get("sent_bytes", 0), progress.get("elapsed_s", 0.0))

    def _settle(self) -> None:
        """Adds what the copy that is over has come to."""
        with self._counting:
            self._sent_bytes += self._now[0]
            self._busy_s += self._now[1]
            self._now = (0, 0.0)

    def _forget(self) -> None:
        """Both arrays as if nothing had ever been replicated, after a copy that is complete."""
        self._ask(self._source, "replica_forget", {"group": GROUP})
        # Only a primary can be forgotten: a replica may be all that is left of its volumes.
        self._ask(self._partner, "replica_promote", {"group": GROUP, "force": True})
        self._ask(self._partner, "replica_forget", {"group": GROUP})
        there = {volume["name"] for volume in self._lab.array_reports()[self._partner.name]["volumes"]}
        for volume in self._source.volumes:
            if volume.name in there:
                self._ask(self._partner, "delete", {"volume": volume.name, "with_snapshots": True})

    def _knows_group(self, array: Array) -> bool:
        try:
            self._ask(array, "replica_status", {"group": GROUP})
        except LinerateError:
            return False
        return True

    def _ask_partner(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        pair = {"here": self._partner.name, "partner": self._source.name}
        return self._ask(self._partner, verb, {**fields, "pair": pair})

    def _ask(self, array: Array, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._lab.manage(array.name, verb, **fields)
