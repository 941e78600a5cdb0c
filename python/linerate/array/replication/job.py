"""One replication of an array: a thread that copies on schedule and on demand, tries again, and changes sides."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Any, Literal

from linerate.array.partners import Replication
from linerate.array.replication.transfer import Ask, CutOffError, transfer
from linerate.errors import HostError, LinerateError, PeerError, UserError

RETRY_FIRST_S, RETRY_MAX_S = 2.0, 60.0
YIELD_PERIOD_S = 0.5
YIELD_LEASE_S = 10.0
"""The partner repeats that it wants to take over; an older wish does not count."""

FORCE = "if the partner is lost: --force takes the newest whole copy"

ARROW = " -> "
"""Between an error and its hint."""

State = Literal["idle", "copying", "waiting", "failed"]


class Job:
    """A replication with its thread. `here` and `there` have a verb carried out by this array and by the partner."""

    def __init__(
        self,
        replication: Replication,
        portal: str,
        pair: dict[str, str],
        here: Ask,
        there: Ask,
        ended: threading.Event,
        *,
        is_origin: bool,
    ) -> None:
        """`portal`: a portal of the partner. `pair`: the identities of both arrays. `is_origin`: the volumes
        are this array's, so that its schedule makes the first copy."""
        self.replication = replication
        self.pair = pair
        self._is_origin = is_origin
        self._portal = portal
        self._here = here
        self._there = there
        self._ended = ended
        self._woken = threading.Condition()
        self._is_wanted = False
        self._takes_over = False
        self._claim = ""
        """Under which the partner wants to take over."""
        self._yields_until = 0.0
        self._not_before = 0.0
        self._state: State = "idle"
        self._error: str | None = None
        self._progress: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name=f"replicate-{replication.name}", daemon=True)

    def start(self) -> None:
        """Begins to keep the schedule; a change of sides that was cut off goes on."""
        if self.role() == "promoting":
            self._is_wanted = self._takes_over = True
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
            # A copy that waits for the partner ends where this array shall take over instead.
            self._takes_over = take_over
            if self._state not in ("copying", "waiting"):
                self._is_wanted = True
                self._begin()
            self._woken.notify_all()

    def yield_(self, group_id: str, claim: str, holds: bool) -> dict[str, Any]:
        """The partner wants to be primary: once more everything is copied, hosts are kept out here, and it
        may have it.

        `holds`: it has the right to be primary itself, and this array has to stand back. Raises UserError.
        """
        group = self._group()
        if group is None or group["id"] != group_id:
            raise UserError(
                f"{self.replication.name} here is not the replication that the partner means",
                "compare both arrays: linerate array show",
            )
        if group["role"] != "primary":
            return {"state": "yielded", **self._offer(claim, holds)}
        is_known = time.monotonic() < self._yields_until
        self._yields_until = time.monotonic() + YIELD_LEASE_S
        self._claim = claim
        if is_known and self._state == "failed":
            self._yields_until = 0.0  # the partner is told, and may ask anew
        else:
            self.ask()
        now = self.status()
        return {key: now[key] for key in ("state", "done", "error")}

    def _offer(self, claim: str, holds: bool) -> dict[str, Any]:
        """What a replica can do for a partner that wants to be primary."""
        group = {"group": self.replication.name}
        if holds:
            self._here("replica_stand_back", group)
            return {"held": True}
        return self._here("replica_give", group | {"claim": claim})

    def take_over_alone(self) -> None:
        """Lets hosts in here without asking the partner; what failed before is over with it."""
        self._here("replica_promote", {"group": self.replication.name, "force": True})
        self.settle()

    def settle(self) -> None:
        """What failed before is over: an owner has decided otherwise."""
        with self._woken:
            if self._state == "failed":
                self._state, self._error = "idle", None

    def role(self) -> str:
        """primary, replica or promoting, as the data plane knows it; none before the first copy."""
        return _role(self._group(), self._is_origin)

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
                "role": _role(group, self._is_origin),
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
                    if not self._is_wanted:
                        self._takes_over = False  # the schedule copies, also after a promotion
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
        if _role(group, self._is_origin) != "primary":
            return interval_s
        last_s = group["points"][-1]["at_s"] if group and group["points"] else 0.0
        return max(0.0, last_s + interval_s - time.time(), self._not_before - time.monotonic())

    def _work(self) -> None:
        """Copies until it is done, however often the way to the partner breaks."""
        pause_s = RETRY_FIRST_S
        while True:
            takes_over = self._takes_over
            try:
                self._take_over() if takes_over else self._copy()
            except LinerateError as error:
                if takes_over != self._takes_over:
                    continue
                is_away = isinstance(error, PeerError | HostError)
                if not is_away or (self._takes_over and self.role() != "promoting"):
                    self._not_before = time.monotonic() + (self.replication.interval_s or 0.0)
                    self._now("failed", _text(error, FORCE if is_away else ""))
                    return
                self._now("waiting", _text(error))
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
        """Sends what hosts wrote meanwhile, while they are kept out; after that the partner may take over."""
        group = {"group": self.replication.name}
        try:
            self._transfer(last=True)
            self._here("replica_give", group | {"claim": self._claim})
        except BaseException:
            self._here("replica_stop", group)  # lets them in again
            raise

    def _transfer(self, *, last: bool = False) -> None:
        transfer(
            self.replication,
            self._portal,
            self.pair,
            self._here,
            self._there,
            self._ended,
            self._heard,
            last=last,
        )

    def _take_over(self) -> None:
        """Has the partner send everything and keep hosts out, and lets them in here once it has passed its
        right on."""
        group = self._group()
        if group is None or group["role"] == "primary":
            raise UserError(f"{self.replication.name} is no copy on this array", "see linerate array show")
        claim = group["claim"]
        if group["role"] == "replica":
            claim = self._promise(group)
        elif claim is None:
            raise UserError(
                f"{self.replication.name}: the snapshot that it was being promoted to is gone",
                "promote --force takes the newest one that is left",
            )
        if claim is not None:
            self._claim_it(group["id"], claim)

    def _promise(self, group: dict[str, Any]) -> str | None:
        """The claim under which the partner lets this array take over; None if that is all that was
        needed."""
        name, claim = {"group": self.replication.name}, secrets.token_hex(16)
        holds = group["token"] in ("held", "offered")
        wish = name | {"id": group["id"], "claim": claim, "holds": holds}
        while (said := self._there("replica_yield", wish))["state"] != "yielded":
            if said["state"] in ("waiting", "failed"):
                why = str(said["error"]).replace(ARROW, "; ")
                raise PeerError(f"the partner cannot send the rest: {why}", FORCE)
            if self._ended.wait(YIELD_PERIOD_S):
                raise CutOffError
        if said.get("held"):
            self._here("replica_promote", name | {"seen": group["changes"]})
            return None
        self._here("replica_promote", name | {"claim": claim, "point": said.get("point")})
        return claim

    def _claim_it(self, group_id: str, claim: str) -> None:
        """May be repeated: until the partner has said yes or no, neither array is primary."""
        asked = {"group": self.replication.name, "claim": claim}
        if not self._there("replica_pass", asked | {"id": group_id})["passed"]:
            self._here("replica_drop", asked)
            raise UserError(
                "the partner has taken back its consent: it was promoted itself, or asked by another array with this "
                "array's identity",
                "see linerate array show at both arrays, and promote it again",
            )
        self._here("replica_take", asked)

    def _heard(self, progress: dict[str, Any]) -> None:
        with self._woken:
            self._progress = progress

    def _begin(self) -> None:
        self._state, self._error, self._progress = "copying", None, {}

    def _now(self, state: State, error: str | None = None) -> None:
        with self._woken:
            self._state, self._error = state, error


def _role(group: dict[str, Any] | None, is_origin: bool) -> str:
    if group is None:
        return "primary" if is_origin else "none"
    role: str = group["role"]
    return role


def _text(error: LinerateError, more: str = "") -> str:
    """An error with its hint, and one more if it has another one."""
    hint = "; ".join(one for one in dict.fromkeys((error.hint, more)) if one)
    return f"{error.message}{ARROW}{hint}" if hint else error.message
