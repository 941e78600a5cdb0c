"""An array as it is watched: its control API is asked for a report now and then, as `linerate array show` does.

Counters of an array are cumulative; the figures on the page are differences of two reports.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from linerate.array.control import ControlClient
from linerate.array.control.report import ArrayReport, DiskReport
from linerate.array.figures.rates import Rates, rates
from linerate.watch.feed import Update
from linerate.watch.run.point import short

PERIOD_S = 1.0


class ArraySource:
    """An array that serves. Raises LinerateError if it does not answer at the start."""

    is_over = False

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self.report: ArrayReport = client.report()
        self.state = "running"
        self._began = self._read_at = time.monotonic()
        self._is_new = True

    def poll(self) -> Iterator[Update]:
        """What is new, at most once per second. Raises LinerateError while the array does not answer."""
        now = time.monotonic()
        if self._is_new:
            self._is_new = False
            yield Update("array", _shown(self.report, {}), "array")
        if now - self._read_at < PERIOD_S:
            return
        before, seconds = self.report, now - self._read_at
        self.report, self._read_at = self._client.report(), now
        earlier, later = before.storage.disks, self.report.storage.disks
        by_disk = {disk.name: rates(earlier, (disk,), seconds) for disk in later}
        yield Update("array", _shown(self.report, by_disk), "array")
        if (found := rates(earlier, later, seconds)) is not None:
            moved = {"read_mib_s": _moved(earlier, later, "read_bytes", seconds)}
            moved["write_mib_s"] = _moved(earlier, later, "write_bytes", seconds)
            yield Update("array_point", {"t": round(now - self._began, 2), **moved, **_figures(found)})

    def close(self) -> None:
        """Nothing is held."""


def _shown(report: ArrayReport, by_disk: dict[str, Rates | None]) -> dict[str, Any]:
    storage = report.storage.model_dump(mode="json", exclude={"file_systems"})
    disks = storage.pop("disks")
    for disk in disks:
        found = by_disk.get(disk["name"])
        disk["rates"] = _figures(found) if found else None
    return {
        "name": report.name,
        "portals": report.portals,
        "targets": [target.name for target in report.targets],
        "sessions": [session.initiator for session in report.by_session],
        "replications": [one.model_dump(mode="json") for one in report.replications],
        "disks": disks,
        **storage,
        "volumes": list(_volumes(report)),
    }


def _volumes(report: ArrayReport) -> Iterator[dict[str, Any]]:
    """Volumes of all kinds with their targets; only of those of a pool it is known how much is in use."""
    for made in report.storage.volumes:
        yield made.model_dump(mode="json") | {"where": f"pool {made.pool}"}
    for target in report.targets:
        for named in [one for one in target.volumes if one.kind != "pool"]:
            yield {
                "name": named.name,
                "where": named.where,
                "target": target.name,
                "lun": named.lun,
                "size_bytes": named.size_in(report.storage),
                "used_bytes": None,
                "snapshots": [],
            }


def _figures(found: Rates) -> dict[str, float | None]:
    return {
        "reads": short(found.reads),
        "writes": short(found.writes),
        "mib_s": short(found.mib_s),
        "outstanding": short(found.outstanding),
        "service_ms": None if found.service_us is None else short(found.service_us / 1e3),
        "busy_percent": short(100 * found.busy),
    }


def _moved(
    before: tuple[DiskReport, ...], after: tuple[DiskReport, ...], counter: str, seconds: float
) -> float:
    """MB/s of a counter of bytes, over the disks of both reports."""
    earlier = {disk.name: getattr(disk, counter) for disk in before}
    moved = sum(getattr(disk, counter) - earlier[disk.name] for disk in after if disk.name in earlier)
    return short(max(moved, 0) / seconds / (1 << 20))
