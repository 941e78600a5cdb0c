"""Copies between two arrays of a lab, verb by verb, with arrays that pretend."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from linerate.errors import PeerError, UserError
from linerate.lab.lab import Lab
from linerate.lab.replication import BUSY, SENT, Replication
from linerate.san import Topology, load_topology

MIB = 1 << 20
COMMIT = {"group": "study", "point": "p1", "incarnation": 7}


class Pretending:
    """A lab of two arrays that answer like arrays: a copy takes `looks` looks, each of 64 MiB and 0.5 s."""

    def __init__(self, topology: Topology, looks: int = 2, error: str | None = None) -> None:
        self.topology = topology
        self.said: list[tuple[str, str]] = []
        self.copied = threading.Event()
        self._looks, self._error = looks, error
        self._looked = 0
        self._groups: set[str] = set()
        self._there = ["own"]
        self._promoted = False

    def array_reports(self) -> dict[str, Any]:
        return {"a2": {"volumes": [{"name": name} for name in self._there]}}

    def manage(self, array: str, verb: str, **fields: Any) -> dict[str, Any]:
        step = verb.removeprefix("replica_")
        self.said.append((array, step))
        return dict(getattr(self, f"_{step}")(array, fields) or {})

    def _prepare(self, array: str, command: dict[str, Any]) -> dict[str, Any]:
        assert command["volumes"] == ["v1", "v2", "v3", "v4"]
        assert command["pair"] == {"here": "a1", "partner": "a2"}
        self._groups.add(array)
        self._looked = 0
        return {"group": "study", "point": "p1"}

    def _begin(self, array: str, command: dict[str, Any]) -> dict[str, Any]:
        assert command["offer"] == {"group": "study", "point": "p1"}
        assert command["pair"] == {"here": "a2", "partner": "a1"}
        self._groups.add(array)
        self._there = ["own", "v1", "v2", "v3", "v4"]
        answer = {**COMMIT, "is_complete": False}
        return {"answer": answer, "access": {"target": "iqn.2026-11.lab:a2", "luns": [4]}}

    def _copy(self, array: str, command: dict[str, Any]) -> None:
        partner = self.topology.arrays[1].interfaces[0].address
        assert command["link"] == {"portal": f"{partner}:3260"}
        assert command["access"]["luns"] == [4]

    def _status(self, array: str, command: dict[str, Any]) -> dict[str, Any]:
        if array not in self._groups:
            raise UserError("no such group")
        self._looked += 1
        over = self._looked >= self._looks
        return {
            "progress": {
                "sent_bytes": self._looked * 64 * MIB,
                "elapsed_s": 0.5 * self._looked,
                "is_running": not over and not self._error,
                "error": self._error,
            }
        }

    def _commit(self, array: str, command: dict[str, Any]) -> None:
        assert command["commit"] == COMMIT

    def _confirm(self, array: str, command: dict[str, Any]) -> None:
        assert command["commit"] == COMMIT
        self.copied.set()

    def _stop(self, array: str, command: dict[str, Any]) -> None: ...

    def _promote(self, array: str, command: dict[str, Any]) -> None:
        assert array == "a2"
        self._promoted = True

    def _forget(self, array: str, command: dict[str, Any]) -> None:
        if array == "a2" and not self._promoted:
            raise UserError("a replica; promote it first")
        self._promoted = False
        self._groups.discard(array)

    def _delete(self, array: str, command: dict[str, Any]) -> None:
        assert command["with_snapshots"]
        assert array not in self._groups
        self._there.remove(command["volume"])


def lab(pretending: Pretending) -> Lab:
    return cast("Lab", pretending)


def test_a_copy_goes_through_all_its_steps_and_the_next_is_a_first_one_again() -> None:
    arrays = Pretending(load_topology("two-pools"))
    with Replication(lab(arrays)) as replication:
        assert arrays.copied.wait(10)
    steps = [(array, verb) for array, verb in arrays.said if verb not in ("status", "stop")]
    assert steps[:5] == [
        ("a1", "prepare"), ("a2", "begin"), ("a1", "copy"), ("a2", "commit"), ("a1", "confirm"),
    ]  # fmt: skip
    assert steps[5:12] == [("a1", "forget"), ("a2", "promote"), ("a2", "forget"), *[("a2", "delete")] * 4]
    counted = replication.counters()
    assert counted[SENT] / counted[BUSY] == pytest.approx(128 * MIB)
    assert counted[SENT] >= 128 * MIB


def test_a_copy_that_is_under_way_at_the_end_is_stopped_and_counted() -> None:
    arrays = Pretending(load_topology("two-pools"), looks=10**6)
    with Replication(lab(arrays)) as replication:
        while not replication.counters()[SENT]:
            threading.Event().wait(0.01)
    assert ("a1", "stop") in arrays.said
    assert replication.counters()[SENT] >= 64 * MIB
    assert not {verb for _, verb in arrays.said} & {"promote", "forget"}, "the next run goes on with it"
    assert replication.refusal() == ""
    assert ("a1", "forget") not in arrays.said


def test_what_made_it_fail_is_told_to_who_counts_and_at_the_end() -> None:
    arrays = Pretending(load_topology("two-pools"), error="the partner hung up")
    replication = Replication(lab(arrays))
    with pytest.raises(PeerError, match="the partner hung up"), replication:
        threading.Event().wait(0.5)
    with pytest.raises(PeerError, match="the partner hung up"):
        replication.counters()


def test_arrays_without_pools_cannot_replicate() -> None:
    with pytest.raises(UserError, match=r"base-san has no two arrays with pools"):
        Replication(lab(Pretending(load_topology("base-san"))))


def test_an_array_that_cannot_replicate_says_why_and_one_that_can_is_left_as_it_was() -> None:
    able = Pretending(load_topology("two-pools"))
    assert Replication(lab(able)).refusal() == ""
    assert able.said == [("a1", "status"), ("a1", "prepare"), ("a1", "forget")]

    class Unable(Pretending):
        def manage(self, array: str, verb: str, **fields: Any) -> dict[str, Any]:
            raise UserError(f"there is no verb {verb}")

    assert (
        Replication(lab(Unable(load_topology("two-pools")))).refusal() == "there is no verb replica_prepare"
    )
