"""A watch reports the difference of two looks: disks, RAID sets, pools, replications."""

from __future__ import annotations

from typing import Any, get_args

from linerate.array.control.report import DiskReport
from linerate.array.watch import Watch

from tests.array.fake import FILE, pretend

GIB = 1 << 30


class _Watched:
    """What is looked at, and what was reported of it."""

    def __init__(self) -> None:
        self.array, _, _ = pretend(FILE)
        self.links: list[dict[str, Any]] = []
        self.told: list[tuple[str, str, dict[str, Any]]] = []
        self._watch = Watch(self.array.stats, lambda: self.links, self._report)

    def _report(self, level: str, event: str, message: str, peer: str | None = None, **fields: Any) -> None:
        assert message
        self.told.append((level, event, fields))

    def look(self) -> list[str]:
        """The kinds of what is reported by one look."""
        self.told.clear()
        self._watch.look()
        return [event for _, event, _ in self.told]

    def fields(self, event: str) -> dict[str, Any]:
        """What was told with an event of the last look."""
        (found,) = [fields for _, kind, fields in self.told if kind == event]
        return found


def test_what_is_as_it_should_be_is_not_reported() -> None:
    watched = _Watched()
    assert watched.look() == []
    assert watched.look() == []


def test_a_failed_disk_its_spare_and_the_end_of_the_rebuild() -> None:
    watched = _Watched()
    watched.look()
    watched.array.states |= {"d3": "failed", "d8": "rebuilding"}
    watched.array.task = {"kind": "rebuild", "done": 0.0}
    assert watched.look() == ["disk_failed", "disk_rebuilding", "raid_set_degraded", "task_begun"]
    assert watched.fields("disk_failed") == {"disk": "d3", "raid_set": "r0"}
    assert [level for level, *_ in watched.told] == ["error", "warning", "error", "info"]
    watched.array.task = {"kind": "rebuild", "done": 0.9}
    assert watched.look() == []
    watched.array.states |= {"d3": "spare", "d8": "online"}
    watched.array.task = None
    assert watched.look() == ["disk_spare", "disk_online", "raid_set_optimal", "task_ended"]


def test_every_state_of_a_disk_is_reported() -> None:
    """The watch goes on after each of them."""
    for state in get_args(DiskReport.model_fields["state"].annotation):
        watched = _Watched()
        watched.array.states |= {"d3": state}
        events = [event for event in watched.look() if event.startswith("disk_")]
        assert events == ([] if state in ("online", "spare") else [f"disk_{state}"])


def test_what_is_wrong_at_the_start_is_reported() -> None:
    watched = _Watched()
    watched.array.states |= {"d0": "missing", "d1": "failed", "d2": "failed"}
    assert watched.look() == ["disk_missing", "disk_failed", "disk_failed", "raid_set_degraded"]
    watched.array.states["d3"] = "failed"
    assert watched.look() == ["disk_failed", "raid_set_failed"]


def test_a_pool_that_fills_up_is_reported_at_each_threshold_once() -> None:
    watched = _Watched()
    watched.look()
    volume = watched.array.volumes["v1"]
    told = []
    for share in (0.5, 0.81, 0.85, 0.91, 0.96, 0.995, 0.3):
        volume["used_bytes"] = int(share * 24 * GIB)
        told.append(watched.look())
    filling = ["pool_filling"]
    assert told == [[], filling, [], filling, filling, ["pool_full"], ["pool_relieved"]]
    assert watched.fields("pool_relieved")["used_percent"] == 30.0


def test_a_link_is_down_once_however_often_it_is_tried() -> None:
    watched = _Watched()
    link = {"name": "mail", "partner": "pair", "role": "primary", "state": "idle", "error": None}
    told = []
    for state, rate, error in [
        ("idle", None, None),
        ("waiting", None, "no answer"),
        ("copying", None, None),
        ("waiting", None, "no answer"),
        ("copying", 1e6, None),
        ("failed", None, "no room"),
        ("idle", None, None),
    ]:
        watched.links = [link | {"state": state, "rate_bytes_per_s": rate, "error": error}]
        told.append(watched.look())
    assert told == [
        [],
        ["replication_down"],
        [],
        [],
        ["replication_up"],
        ["replication_failed"],
        ["replication_up"],
    ]
    watched.links = [link | {"role": "replica"}]
    assert watched.look() == ["replication_role"]
