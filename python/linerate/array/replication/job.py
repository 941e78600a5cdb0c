"""One replication of an array: a thread that copies on schedule and on demand, tries again, and changes sides."""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

from linerate.array.partners import Partner, Replication
from linerate.array.replication.transfer import Ask, CutOffError, transfer
from linerate.errors import HostError, LinerateError, PeerError

RETRY_FIRST_S, RETRY_MAX_S = 2.0, 60.0
YIELD_PERIOD_S = 0.5
YIELD_LEASE_S = 10.0
"""The partner repeats that it wants to take over; an older wish does not count."""

FORCE = "if the partner is lost: --force takes the newest whole copy"

State = Literal["idle", "copying", "waiting", "failed"]


class Job:
    """A replication with its thread. `here` and `there` have a verb carried out by this array and by the partner."""

    def __init__(
        self,
        replication: Replication,
        partner: Partner,
        here: Ask,
        there: Ask,
        ended: threading.Event,
        *,
        is_origin: bool,
    ) -> None:
        """`is_origin`: the volumes are this array's, so that its schedule makes the first copy."""
        self.replication = replication
        self._is_origin = is_origin
        self._partner = partner
        self._here = here
        self._there = there
        self._ended = ended
        self._woken = threading.Condition()
        self._is_wanted = False
        self._takes_over = False
        self._yields_until = 0.0
        self._not_before = 0.0
        self._state: State = "idle"
        self._error: str | None = None
        self._progress: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name=f"replicate-{replication.name}", daemon=True)

    def start(self) -> None:
        """Begins to keep the schedule."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the thread, once `ended` is set."""
        with self._woken:
            self._woken.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def ask(self, *, take_over: bool = False) -> None:
        """Asks for a copy now, to the partner or, to take over, from there; one that is under way will do."""
        with self._woken:
            if self._state not in ("copying", "waiting"):
                self._is_wanted, self._takes_over = True, take_over
                self._begin()
            self._woken.notify_all()

    def yield_(self) -> dict[str, Any]:
        """The partner wants to take over: once more everything is copied, then hosts are kept out here."""
        if self.role() == "replica":
            return {"state": "yielded"}
        is_known = time.monotonic() < self._yields_until
        self._yields_until = time.monotonic() + YIELD_LEASE_S
        if is_known and self._state == "failed":
            self._yields_until = 0.0  # the partner is told, and may ask anew
        else:
            self.ask()
        now = self.status()
        return {key: now[key] for key in ("state", "done", "error")}

    def take_over_alone(self) -> None:
        """Lets hosts in here without asking the partner; what failed before is over with it."""
        self._here("replica_promote", {"group": self.replication.name})
        with self._woken:
            if self._state == "failed":
                self._state, self._error = "idle", None

    def role(self) -> str:
        """primary or replica, as the data plane knows it; primary before the first copy."""
        return _role(self._group())

    def status(self) -> dict[str, Any]:
        """As `ReplicationReport` has it."""
        group = self._group()
        points = group["points"] if group else []
        with self._woken:
            copying, progress = self._state == "copying", self._progress
            total, elapsed_s = progress.get("total_bytes", 0), progress.get("elapsed_s", 0.0)
            return {
                "name": self.replication.name,
                "partner": self.replication.partner,
                "role": _role(group),
                "state": self._state,
                "done": progress["done_bytes"] / total if copying and total else None,
                "rate_bytes_per_s": progress["sent_bytes"] / elapsed_s if copying and elapsed_s else None,
                "lag_s": max(0.0, time.time() - points[-1]["at_s"]) if points else None,
                "error": self._error,
            }

    def _group(self) -> dict[str, Any] | None:
        """What the data plane says about the group; None as long as it knows none."""
        try:
            return self._here("replica_status", {"group": self.replication.name})
        except LinerateError:
            return None

    def _run(self) -> None:
        try:
            while self._await_turn():
                self._work()
        except CutOffError:
            pass

    def _await_turn(self) -> bool:
        """Waits until a copy is asked for or due; False once the array ends."""
        while not self._ended.is_set():
            due_s = self._due_in_s()
            with self._woken:
                if self._is_wanted or due_s == 0:
                    self._is_wanted = False
                    self._begin()
                    return True
                if not self._ended.is_set():
                    self._woken.wait(due_s)
        return False

    def _due_in_s(self) -> float | None:
        """Time until the schedule asks for a copy; None: it never does."""
        interval_s = self.replication.interval_s
        if interval_s is None:
            return None
        group = self._group()
        if _role(group) == "replica" or (group is None and not self._is_origin):
            return interval_s
        last_s = group["points"][-1]["at_s"] if group and group["points"] else 0.0
        return max(0.0, last_s + interval_s - time.time(), self._not_before - time.monotonic())

    def _work(self) -> None:
        """Copies until it is done, however often the way to the partner breaks."""
        pause_s = RETRY_FIRST_S
        while True:
            try:
                self._take_over() if self._takes_over else self._copy()
            except LinerateError as error:
                is_away = isinstance(error, PeerError | HostError)
                if not is_away or self._takes_over:
                    hint = FORCE if is_away else error.hint
                    self._not_before = time.monotonic() + (self.replication.interval_s or 0.0)
                    self._now("failed", f"{error.message} -> {hint}" if hint else error.message)
                    return
                self._now("waiting", error.message)
            else:
                self._now("idle")
                return
            with self._woken:
                self._woken.wait(pause_s)
            if self._ended.is_set():
                raise CutOffError
            pause_s = min(2 * pause_s, RETRY_MAX_S)
            self._now("copying")

    def _copy(self) -> None:
        self._transfer()
        if time.monotonic() < self._yields_until:
            self._give_up()

    def _give_up(self) -> None:
        """Sends what hosts wrote meanwhile, while they are kept out; after that they go to the partner."""
        group = {"group": self.replication.name}
        try:
            self._transfer(last=True)
            self._here("replica_demote", group)
        except BaseException:
            self._here("replica_stop", group)  # lets them in again
            raise

    def _transfer(self, *, last: bool = False) -> None:
        transfer(
            self.replication, self._partner, self._here, self._there, self._ended, self._heard, last=last
        )

    def _take_over(self) -> None:
        """Waits until the partner has sent everything and keeps hosts out, and lets them in here."""
        group = {"group": self.replication.name}
        while (said := self._there("replica_yield", group))["state"] != "yielded":
            if said["state"] in ("waiting", "failed"):
                raise PeerError(f"the partner cannot send the rest: {said['error']}", FORCE)
            if self._ended.wait(YIELD_PERIOD_S):
                raise CutOffError
        self._here("replica_promote", group)

    def _heard(self, progress: dict[str, Any]) -> None:
        with self._woken:
            self._progress = progress

    def _begin(self) -> None:
        self._state, self._error, self._progress = "copying", None, {}

    def _now(self, state: State, error: str | None = None) -> None:
        with self._woken:
            self._state, self._error = state, error


def _role(group: dict[str, Any] | None) -> str:
    return "primary" if group is None or group["role"] == "primary" else "replica"
