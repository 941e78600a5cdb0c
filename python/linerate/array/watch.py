"""Watches the storage behind the volumes of an array that serves, and reports what changes.

Disks, RAID sets, pools and replications are looked at once a second; what is reported is the difference of two looks.
What is not as it should be when the array starts is reported, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from linerate.array.log import Level
from linerate.errors import LinerateError

PERIOD_S = 1.0

FULL_SHARES = (0.9, 0.95, 0.99)
"""Beyond its `warn_at`, a pool is reported when it reaches these shares of use."""

_Row = Mapping[str, Any]


class Report(Protocol):
    """`EventLog.report`."""

    def __call__(
        self, level: Level, event: str, message: str, peer: str | None = None, **fields: Any
    ) -> None:
        """Adds an event."""


_DISK: dict[str, tuple[Level, str, str]] = {
    "failed": ("error", "disk_failed", "a disk has failed"),
    "missing": ("error", "disk_missing", "a disk is missing"),
    "out": ("warning", "disk_out", "a disk is not used by its RAID set"),
    "rebuilding": ("warning", "disk_rebuilding", "a disk is being rebuilt"),
    "online": ("info", "disk_online", "a disk is in use"),
    "spare": ("info", "disk_spare", "a disk is a spare again"),
}
_SET: dict[str, tuple[Level, str, str]] = {
    "degraded": ("error", "raid_set_degraded", "a RAID set has lost disks"),
    "failed": (
        "error",
        "raid_set_failed",
        "a RAID set has lost more disks than it bears; its data is out of reach",
    ),
    "optimal": ("info", "raid_set_optimal", "a RAID set has all its disks"),
}
_REPLICATION: dict[str, tuple[Level, str, str]] = {
    "waiting": ("warning", "replication_down", "the partner does not answer; it is asked again"),
    "failed": ("error", "replication_failed", "a replication has failed"),
    "works": ("info", "replication_up", "a replication works again"),
}


class Watch:
    """Looks once a second while a `with` block lasts."""

    def __init__(
        self,
        stats: Callable[[], dict[str, Any]],
        replications: Callable[[], list[dict[str, Any]]],
        report: Report,
    ) -> None:
        self._stats = stats
        self._replications = replications
        self._report = report
        self._seen: dict[tuple[str, str], Any] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        """Begins to look."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            try:
                self.look()
            except LinerateError as error:
                self._report("warning", "watch_failed", f"the array cannot be looked at: {error.message}")

    def look(self) -> None:
        """Reports what is different from the last look."""
        storage = self._stats().get("storage") or {}
        for disk in storage.get("disks", ()):
            self._disk(disk)
        for one in storage.get("raid_sets", ()):
            self._raid_set(one)
        for pool in storage.get("pools", ()):
            self._pool(pool)
        for one in self._replications():
            self._replication(one)

    def _changed(self, kind: str, name: str, now: Any, usual: Any) -> bool:
        """Whether it is another than at the last look; what was never seen is as usual."""
        before = self._seen.get((kind, name), usual)
        self._seen[kind, name] = now
        return bool(before != now)

    def _disk(self, disk: _Row) -> None:
        name, state = disk["name"], disk["state"]
        is_new = ("disk", name) not in self._seen
        if self._changed("disk", name, state, "online") and not (is_new and state == "spare"):
            level, event, message = _DISK[state]
            self._report(level, event, message, disk=name, raid_set=disk.get("raid_set"))
        member = disk.get("raid_set")
        before = self._seen.get(("member", name), member)
        if (
            self._changed("member", name, member, member)
            and member is None
            and state not in ("failed", "missing")
        ):
            message = "a disk is no longer part of its RAID set"
            self._report("warning", "disk_removed", message, disk=name, raid_set=before)
        errors = disk.get("errors", 0)
        before = self._seen.get(("errors", name), 0)
        if self._changed("errors", name, errors, 0):
            self._report(
                "warning",
                "disk_errors",
                "operations on a disk have failed",
                disk=name,
                errors=errors - before,
            )

    def _raid_set(self, one: _Row) -> None:
        name = one["name"]
        if self._changed("raid_set", name, one["state"], "optimal"):
            level, event, message = _SET[one["state"]]
            self._report(level, event, message, raid_set=name, raid_level=one["level"])
        task = (one.get("task") or {}).get("kind")
        before = self._seen.get(("task", name))
        if self._changed("task", name, task, None):
            if before is not None:
                self._report("info", "task_ended", f"{_TASKS[before]} has ended", raid_set=name, task=before)
            if task is not None:
                self._report("info", "task_begun", f"{_TASKS[task]} has begun", raid_set=name, task=task)
        found = one.get("mismatches_found", 0)
        known = self._seen.get(("mismatches", name), 0)
        if self._changed("mismatches", name, found, 0):
            mended = one.get("mismatches_mended", 0)
            message = "blocks of a RAID set did not agree"
            self._report(
                "warning", "mismatches", message, raid_set=name, found=found - known, mended_in_all=mended
            )

    def _pool(self, pool: _Row) -> None:
        name, used, size = pool["name"], pool["used_bytes"], pool["size_bytes"]
        share = used / size if size else 0.0
        reached = sum(share >= one for one in FULL_SHARES) + bool(pool.get("warning"))
        before = self._seen.get(("pool", name), 0)
        if not self._changed("pool", name, reached, 0):
            return
        about = {"pool": name, "used_bytes": used, "size_bytes": size, "used_percent": round(100 * share, 1)}
        if 0 < reached < before:
            return
        if reached == 0:
            self._report("info", "pool_relieved", "a pool has room again", **about)
        elif share >= FULL_SHARES[-1]:
            message = (
                "a pool is full: writes to new pages are refused; add disks, or delete what is not needed"
            )
            self._report("error", "pool_full", message, **about)
        else:
            message = "a pool fills up: add disks, or delete what is not needed"
            self._report("warning", "pool_filling", message, **about)

    def _replication(self, one: _Row) -> None:
        name, state = one["name"], one["state"]
        about = {"replication": name, "partner": one["partner"]}
        # Who asks again is copying, too, until it is known whether the partner answers.
        is_moving = state == "copying" and one.get("rate_bytes_per_s")
        state = "works" if state == "idle" or is_moving else state
        if state in _REPLICATION and self._changed("replication", name, state, "works"):
            level, event, message = _REPLICATION[state]
            error = {"error": one["error"]} if one.get("error") else {}
            self._report(level, event, message, **about, **error)
        role = one["role"]
        if self._changed("role", name, role, self._seen.get(("role", name), role)):
            self._report(
                "warning", "replication_role", f"a replication is the {role} here now", **about, role=role
            )


_TASKS = {"initialise": "the initialisation of a RAID set", "rebuild": "a rebuild", "scrub": "a scrub"}
