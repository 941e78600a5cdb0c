"""Replication as it is led: steps, schedules, broken ways, and a change of sides, between two arrays that pretend."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from linerate.array import parse_array_text
from linerate.array.control import ControlService
from linerate.array.control.service import Caller
from linerate.array.replication import Replicating, job
from linerate.errors import PeerError, UserError

if TYPE_CHECKING:
    from linerate.array.control.partnership import Partnership

TIMEOUT_S = 10.0


VOLUME = '[[targets.volumes]]\nlun = 0\nname = "v"\nsize = "1m"\n'


def _file(interval: str, volumes: str) -> str:
    return f"""\
[[targets]]
name = "iqn.2026-11.lab.linerate:t"
{volumes}
[control]
identity = "here.identity"
[[partners]]
name = "pair"
certificate = "pair.pem"
control = "https://127.0.0.1:1"
portal = "127.0.0.1:2"
[[replications]]
name = "mail"
partner = "pair"
volumes = ["v"]
pool = "p0"
rate = "1m"
{interval}
"""


class PretendReplica:
    """One end: what the data plane's replica verbs do, with a number for the contents of all volumes."""

    def __init__(self) -> None:
        self.role: str | None = None
        self.token = "absent"
        self.claim: str | None = None
        """Under which the token is offered, was passed, or is waited for."""
        self.changes = 0
        self.contents = 0
        self.points: list[dict[str, Any]] = []
        self.outgoing: dict[str, Any] | None = None
        self.verbs: list[str] = []
        self.fails: list[Exception] = []
        self.passes = True
        self.hosts_are_in = True
        self.copied: int | None = None
        """Which preparation of the partner's volumes was copied to last."""
        self.portals: list[tuple[str, int]] = []

    def stats(self) -> dict[str, Any]:
        return {}

    def manage(self, command_json: str, /) -> str:
        asked = json.loads(command_json)
        verb = asked.pop("verb")
        if verb not in ("replica_status", "replica_asked"):
            self.verbs.append(verb)
        return json.dumps(getattr(self, verb)(asked) or {})

    def _become(self, role: str, token: str, claim: str | None = None) -> None:
        self.role, self.token, self.claim = role, token, claim
        self.changes += 1

    def replica_status(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.role is None:
            raise UserError(f'there is no replication group "{asked["group"]}" on this array', "")
        progress = {"total_bytes": 10, "done_bytes": 10, "sent_bytes": 10, "elapsed_s": 1.0}
        return {
            "id": "the group",
            "role": self.role,
            "token": self.token,
            "claim": self.claim if self.role == "promoting" else None,
            "changes": self.changes,
            "points": self.points,
            "progress": progress | {"is_running": False, "error": None},
        }

    def _has(self, point: str) -> bool:
        return any(mine["name"] == point for mine in self.points)

    def replica_prepare(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["pair"]["here"] != asked["pair"]["partner"]
        if self.role is None:
            self._become("primary", "held")
        self.hosts_are_in = not asked.get("last", False)
        if self.outgoing is None:
            self.outgoing = {
                "name": f"replica-{len(self.verbs):016x}",
                "at_s": time.time(),
                "holds": self.contents,
            }
        return {"group": asked["group"], "point": self.outgoing, "keep": asked["keep"]}

    def replica_begin(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.fails:
            raise self.fails.pop()
        if self.token != "absent" or self.role is None:
            self._become("replica", "absent")
        point = asked["offer"]["point"]
        is_complete = self._has(point["name"])
        answer = {
            "group": "mail",
            "point": point["name"],
            "incarnation": 0 if is_complete else 1,
            "is_complete": is_complete,
            "what": point,
        }
        return {"answer": answer, "access": {"target": "t", "luns": [1]}}

    def replica_copy(self, asked: dict[str, Any]) -> None:
        assert asked["link"] == {"portal": "127.0.0.1:2"}
        assert asked["options"] == {"rate_bytes_per_s": 1 << 20}
        self.sent = asked["answer"]["what"]
        self.copied = asked["answer"]["incarnation"]

    def replica_commit(self, asked: dict[str, Any]) -> None:
        if not self._has(asked["commit"]["point"]):
            self.points.append({"name": asked["commit"]["point"], "at_s": time.time()})

    def replica_confirm(self, asked: dict[str, Any]) -> None:
        assert self.outgoing is not None
        if self.fails:
            raise self.fails.pop()
        if asked["commit"]["incarnation"] != self.copied:
            raise UserError("it was begun anew since then", "")
        self.points.append(self.outgoing)
        self.outgoing = None

    def replica_asked(self, asked: dict[str, Any]) -> None:
        assert asked["id"] == "the group"
        assert asked["pair"]["here"] != asked["pair"]["partner"]

    def replica_give(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.role == "replica" or not self.hosts_are_in
        if self.token not in ("held", "offered"):
            raise UserError("the right to make it primary is not on this array", "")
        self._become("replica", "offered", asked["claim"])
        return {"point": self.points[-1]["name"] if self.points else None}

    def replica_stand_back(self, asked: dict[str, Any]) -> None:
        self.changes += 1

    def replica_pass(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.passes:
            raise PeerError("killed", "")
        passed = self.token in ("offered", "passed") and self.claim == asked["claim"]
        if passed:
            self._become("replica", "passed", self.claim)
        return {"passed": passed}

    def replica_demote(self, asked: dict[str, Any]) -> None:
        self.hosts_are_in = False
        self._become("replica", "held" if self.role == "primary" else "absent")

    def replica_stop(self, asked: dict[str, Any]) -> None:
        self.hosts_are_in = True

    def replica_promote(self, asked: dict[str, Any]) -> None:
        if asked.get("force"):
            if not self.points:
                raise UserError('group "mail" has no complete point to promote to', "")
            return self._become("primary", "held")
        if "claim" in asked:
            assert self._has(asked["point"])
            return self._become("promoting", "absent", asked["claim"])
        assert asked["seen"] == self.changes
        return self._become("primary", "held")

    def replica_take(self, asked: dict[str, Any]) -> None:
        assert (self.role, self.claim) == ("promoting", asked["claim"])
        self._become("primary", "held")

    def replica_drop(self, asked: dict[str, Any]) -> None:
        self._become("replica", "absent")

    def replica_forget(self, asked: dict[str, Any]) -> None:
        self._become("primary", "held")
        self.role = None

    def replica_rejoin(self, asked: dict[str, Any]) -> None:
        self.pair = asked["pair"]


class Known:
    """A partnership without certificates: an array and its partner by name."""

    def __init__(self, here: str, partner: str) -> None:
        self.own = SimpleNamespace(identity=here)
        self.partner = partner

    def identity_of(self, partner: str) -> str:
        assert partner == "pair"
        return self.partner


class Site:
    """An array that pretends, with its replications and its service."""

    def __init__(self, name: str, partner: str, interval: str, volumes: str) -> None:
        self.name, self.partner = name, partner
        self.config = parse_array_text(_file(interval, volumes))
        self.replica = PretendReplica()
        self.other: Site | None = None
        self.is_reached = True
        self.start()

    def start(self) -> None:
        """A process of it."""
        known = cast("Partnership", Known(self.name, self.partner))
        self.replicating = Replicating(self.replica, self.config, known, {"pair": self._ask})
        self.service = ControlService(self.replica, self.config, self.replicating)

    def _ask(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        assert self.other is not None
        if not self.other.is_reached:
            raise PeerError("https://127.0.0.1:1: Connection refused", "see whether the array serves there")
        fields = json.loads(json.dumps(fields))
        return self.other.service.do_for_partner(verb, fields, Caller("pair", self.name, self.other.name))

    def state(self) -> dict[str, Any]:
        (one,) = self.replicating.status()
        return one


@contextmanager
def two_sites(interval: str = "") -> Iterator[tuple[Site, Site]]:
    a, b = Site("a", "b", interval, VOLUME), Site("b", "a", interval, "")
    a.other, b.other = b, a
    with a.replicating, b.replicating:
        yield a, b


def _until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + TIMEOUT_S
    waiting = threading.Event()
    while not holds():
        assert time.monotonic() < ends, "it never came to that"
        waiting.wait(0.01)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "RETRY_FIRST_S", 0.02)
    monkeypatch.setattr(job, "YIELD_PERIOD_S", 0.02)


def test_a_copy_takes_all_steps_in_order() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "idle")
        assert a.replica.verbs == ["replica_prepare", "replica_copy", "replica_confirm"]
        assert b.replica.verbs == ["replica_begin", "replica_commit"]
        told = a.state()
        assert (told["role"], told["error"]) == ("primary", None)
        assert told["lag_s"] < TIMEOUT_S
        assert b.state()["role"] == "replica"


def test_a_confirmation_that_got_lost_is_made_up_for() -> None:
    """The partner has the point, and the source died before it knew."""
    with two_sites() as (a, b):
        a.replica.fails.append(PeerError("killed", ""))
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "idle" and a.replica.verbs.count("replica_confirm") == 2)
        assert (
            a.replica.verbs[:3]
            == a.replica.verbs[3:]
            == ["replica_prepare", "replica_copy", "replica_confirm"]
        )
        assert (a.replica.copied, a.replica.outgoing) == (0, None)
        assert [point["name"] for point in b.replica.points] == [point["name"] for point in a.replica.points]


def test_a_partner_that_does_not_answer_is_asked_again() -> None:
    with two_sites() as (a, b):
        b.is_reached = False
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "waiting")
        assert a.state()["error"].endswith("Connection refused -> see whether the array serves there")
        assert a.state()["lag_s"] is None
        b.is_reached = True
        _until(lambda: a.state()["state"] == "idle")
        assert len(b.replica.points) == 1


def test_what_the_partner_refuses_is_not_tried_again() -> None:
    with two_sites() as (a, b):
        b.replica.fails.append(UserError('a volume "v" exists here and is no replica', "rename it"))
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "failed")
        assert a.state()["error"] == 'a volume "v" exists here and is no replica -> rename it'
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "idle")


def test_a_schedule_copies_by_itself_and_the_replica_does_not() -> None:
    with two_sites('interval = "1s"') as (_, b):
        _until(lambda: len(b.replica.points) >= 2)
        assert "replica_prepare" not in b.replica.verbs


def test_a_schedule_goes_on_after_a_promotion() -> None:
    with two_sites('interval = "1s"') as (a, b):
        _until(lambda: len(b.replica.points) >= 1)
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["role"] == "primary")
        _until(lambda: "replica_confirm" in b.replica.verbs or b.state()["state"] == "failed")
        assert b.state()["error"] is None
        assert a.state()["role"] == "replica"


def test_sides_change_without_loss_while_both_answer() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        a.replica.contents = 7
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["role"] == "primary")
        assert a.replica.role == "replica"
        assert a.replica.sent["holds"] == 7, "what hosts wrote last was copied before they were kept out"
        assert a.replica.verbs[-2:] == ["replica_give", "replica_pass"]
        assert b.replica.verbs[-2:] == ["replica_promote", "replica_take"]
        with pytest.raises(UserError, match="mail is a copy on this array"):
            a.service.do("replicate", {"replication": "mail"})
        b.service.do("replicate", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "idle" and "replica_confirm" in b.replica.verbs)


def test_hosts_are_let_in_again_when_the_change_of_sides_fails() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        plain = b.replica.replica_begin

        def refuses_the_last(asked: dict[str, Any]) -> dict[str, Any]:
            if not a.replica.hosts_are_in:
                raise UserError("the pool is full", "")
            return plain(asked)

        b.replica.replica_begin = refuses_the_last  # type: ignore[method-assign]
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "failed")
        assert "the partner cannot send the rest: the pool is full" in b.state()["error"]
        assert (a.replica.role, a.replica.hosts_are_in, b.replica.role) == ("primary", True, "replica")


def test_a_lost_partner_is_promoted_over_by_force_only() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        a.is_reached = False
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "failed")
        assert "--force" in b.state()["error"]
        assert b.replica.role == "replica"
        b.service.do("promote", {"replication": "mail", "force": True})
        assert b.state()["role"] == "primary"
        with pytest.raises(UserError, match="hosts use mail here already"):
            b.service.do("promote", {"replication": "mail"})
        a.is_reached, a.replica.hosts_are_in = True, False
        a.service.do("demote", {"replication": "mail"})
        b.service.do("replicate", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "idle" and "replica_confirm" in b.replica.verbs)


def test_another_array_may_not_take_over() -> None:
    wish = {"group": "mail", "id": "the group", "claim": "c", "holds": False}
    with two_sites() as (a, _):
        with pytest.raises(UserError, match="mail is not replicated with other"):
            a.service.do_for_partner("replica_yield", wish, Caller("other", "c", "a"))
        with pytest.raises(UserError, match="mail is replicated between other arrays"):
            a.service.do_for_partner("replica_yield", wish, Caller("pair", "c", "a"))
        with pytest.raises(UserError, match="may not use replica_promote"):
            a.service.do_for_partner(
                "replica_promote", {"group": "mail", "force": True}, Caller("pair", "b", "a")
            )
        with pytest.raises(UserError, match="may not use promote"):
            a.service.do("promote", {"replication": "mail"}, Caller("pair", "b", "a"))


def test_a_change_of_sides_that_is_cut_off_half_way_goes_on() -> None:
    """The consent was given, and its answer got lost, or one of the arrays died before it was used."""
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        a.replica.passes = False
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "waiting")
        assert (a.state()["role"], b.state()["role"]) == ("replica", "promoting"), "neither lets hosts in"
        a.replica.passes = True
        _until(lambda: b.state()["role"] == "primary")
        assert a.replica.token == "passed"


def test_an_array_that_was_started_anew_goes_on_with_its_promotion() -> None:
    a, b = Site("a", "b", "", VOLUME), Site("b", "a", "", "")
    a.other, b.other = b, a
    a.replica._become("replica", "offered", "c")
    b.replica._become("promoting", "absent", "c")
    with a.replicating, b.replicating:
        _until(lambda: b.state()["role"] == "primary")


def test_a_claim_that_the_partner_has_taken_back_is_dropped() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        plain = b.replica.replica_promote

        def meanwhile(asked: dict[str, Any]) -> None:
            plain(asked)
            a.replica._become("primary", "held")

        b.replica.replica_promote = meanwhile  # type: ignore[method-assign]
        b.service.do("promote", {"replication": "mail"})
        _until(lambda: b.state()["state"] == "failed")
        assert "the partner has taken back its consent" in b.state()["error"]
        assert (a.state()["role"], b.state()["role"]) == ("primary", "replica")


def test_what_was_demoted_by_mistake_is_promoted_with_the_partners_consent() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        a.service.do("demote", {"replication": "mail"})
        a.service.do("promote", {"replication": "mail"})
        _until(lambda: a.state()["role"] == "primary")
        assert b.replica.verbs[-1] == "replica_stand_back"
        a.service.do("demote", {"replication": "mail"})
        b.is_reached = False
        a.service.do("promote", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "failed")
        assert "--force" in a.state()["error"], "the partner may have been promoted by force"


def test_a_promotion_takes_the_place_of_a_copy_that_waits() -> None:
    """Demoted while its copy waits for the partner, and promoted again."""
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        b.is_reached = False
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "waiting")
        a.service.do("demote", {"replication": "mail"})
        a.service.do("promote", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "failed")
        assert "--force" in a.state()["error"], "the partner was asked, and is away"


def test_a_copy_is_forgotten_by_force_only() -> None:
    with two_sites() as (a, b):
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: len(b.replica.points) == 1)
        with pytest.raises(UserError, match="mail is a copy on this array") as caught:
            b.service.do("forget", {"replication": "mail"})
        assert "here say `force`" in caught.value.hint
        assert b.state()["role"] == "replica"
        b.service.do("forget", {"replication": "mail", "force": True})
        assert b.state()["role"] == "none"


def test_a_copy_that_never_came_is_not_promoted() -> None:
    with two_sites() as (_, b), pytest.raises(UserError, match="mail has no copy here yet"):
        b.service.do("promote", {"replication": "mail", "force": True})


def test_identities_are_told_to_the_data_plane_when_an_owner_says_so() -> None:
    with two_sites() as (a, _):
        a.service.do("replicate", {"replication": "mail"})
        told = a.service.do("rejoin", {"replication": "mail"})
        assert (told["partner"], a.replica.pair) == ("b", {"here": "a", "partner": "b"})


def test_unknown_replications_are_named() -> None:
    with two_sites() as (a, _), pytest.raises(UserError, match="there is no replication post") as caught:
        a.service.do("replicate", {"replication": "post"})
    assert caught.value.hint == "replications of the array file: mail"


def test_an_array_that_ends_waits_for_no_partner() -> None:
    began = time.monotonic()
    with two_sites() as (a, b):
        b.is_reached = False
        a.service.do("replicate", {"replication": "mail"})
        _until(lambda: a.state()["state"] == "waiting")
    assert time.monotonic() - began < TIMEOUT_S
