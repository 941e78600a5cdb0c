"""Follows a run directory and tells what is new in it.

Order matters: an interval is on disk before the manifest that ends its step, and its latencies before the interval. So
the intervals are read first, and the files that they refer to afterwards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from linerate.results import Manifest, NotARunError, RunDirectory, StepRecord
from linerate.results.files import EVENTS, MANIFEST
from linerate.watch.feed import Update
from linerate.watch.growing import ChangedFile, GrowingFile
from linerate.watch.run.lines import Intervals, Latencies, Line
from linerate.watch.run.point import point
from linerate.watch.run.step import StepFigures
from linerate.watch.run.totals import RunTotals

RUN_KINDS = ("run", "progress", "step", "point", "mark")
"""The kinds of messages of a run."""
SILENCE_S = 3.0
"""After so long without news it is checked whether the process that writes the run still lives."""


class RunSource:
    """A run directory whose manifest is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.totals = RunTotals()
        self.manifest: Manifest | None = None
        self.state = "running"
        self._manifest_file = ChangedFile(path / MANIFEST)
        self._intervals = Intervals(path)
        self._latencies = Latencies(path)
        self._events = GrowingFile(path / EVENTS)
        self._steps: dict[str, StepFigures] = {}
        self._news_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Nothing more is to come."""
        return self.state != "running"

    def poll(self) -> Iterator[Update]:
        """What is new. Raises LinerateError when the directory cannot be read."""
        changed = self._opened()
        lines = list(self._intervals.new())
        self._latencies.read()
        events = list(self._events.lines())
        changed = self._opened() or changed
        if not lines and not self.is_over and time.monotonic() - self._news_at > SILENCE_S:
            self.state = RunDirectory.open(self.path).state
            changed = changed or self.is_over
            self._news_at = time.monotonic()
        if changed:
            yield Update("run", self._head(), "run")
        if lines or events or changed:
            self._news_at = time.monotonic()
            yield from self._told(lines, events)
            yield Update("progress", self._progress(), "progress")

    def _opened(self) -> bool:
        """Reads the manifest if it is another one than before; True if it is."""
        if not self._manifest_file.changed():
            return False
        opened = RunDirectory.open(self.path)
        self.manifest, self.state = opened.manifest, opened.state
        return True

    def close(self) -> None:
        """Closes its files."""
        for one in (self._intervals, self._latencies, self._events):
            one.close()

    def _told(self, lines: list[Line], events: list[str]) -> Iterator[Update]:
        records = {record.key: record for record in self._manifest().steps}
        touched: dict[str, StepFigures] = {}
        for line in lines:
            record = records[line.step]
            offset_s = self._offset_s(record)
            latencies = self._latencies.take(line.step, offset_s + line.start_s)
            service = latencies.get("service", [])
            step = self._steps.setdefault(line.step, StepFigures(list(records).index(line.step), record))
            step.add(line, service)
            self.totals.add(line, service)
            touched[line.step] = step
            yield Update("point", point(line, step.number, offset_s, latencies))
        for step in touched.values():
            yield Update("step", step.shown(), f"step {step.number}")
        for text in events:
            if (mark := self._mark(text, records)) is not None:
                yield Update("mark", mark)

    def _mark(self, text: str, records: dict[str, StepRecord]) -> dict[str, Any] | None:
        try:
            event = json.loads(text)
        except ValueError:
            return None
        record = records.get(event.get("step", ""))
        offset_s = self._offset_s(record) if record else 0.0
        shown = {name: event.get(name, "") for name in ("kind", "message", "volume", "path", "step", "blame")}
        return {"t": round(offset_s + float(event.get("at_s", 0.0)), 3), **shown}

    def _head(self) -> dict[str, Any]:
        manifest = self._manifest()
        return {
            "directory": self.path.name,
            "name": manifest.name,
            "workload": manifest.workload.name,
            "state": self.state,
            "reason": manifest.reason,
            "started_at": manifest.started_at.isoformat(),
            "ended_at": manifest.ended_at.isoformat() if manifest.ended_at else None,
            "stamp": manifest.validity.stamp if manifest.validity else None,
            "findings": [
                {"severity": one.severity, "reason": one.reason, "advice": one.advice, "step": one.step}
                for one in (manifest.validity.findings if manifest.validity else ())
            ],
            "steps": [self._step_head(record) for record in manifest.steps],
            "steps_planned": manifest.planned.steps if manifest.planned else None,
        }

    def _step_head(self, record: StepRecord) -> dict[str, Any]:
        arrival = record.spec.get("arrival", {})
        return {
            "key": record.key,
            "label": record.label or record.key,
            "requested_rate": record.requested_rate,
            "is_open": arrival.get("kind") == "open",
            "start_s": round(self._offset_s(record), 3),
            "warmup_s": record.spec.get("warmup_s", 0.0),
            "elapsed_s": record.spec.get("elapsed_s", 0.0),
            "state": self.state if record.state == "running" else record.state,
            "reason": record.reason,
        }

    def _progress(self) -> dict[str, Any]:
        """Seconds done and left of what was planned; null where the run does not say what it planned."""
        manifest = self._manifest()
        begun_s = sum(_planned_s(record) for record in manifest.steps)
        left_of_step_s = 0.0
        for record in manifest.steps:
            if record.ended_at is None:
                figures = self._steps.get(record.key)
                left_of_step_s = max(_planned_s(record) - (figures.end_s if figures else 0.0), 0.0)
        planned_s = manifest.planned.seconds if manifest.planned else None
        left_s = None
        if planned_s is not None:
            left_s = 0.0 if self.is_over else max(planned_s - begun_s, 0.0) + left_of_step_s
        return {
            "done_s": round(begun_s - left_of_step_s, 1),
            "left_s": None if left_s is None else round(left_s, 1),
            "left_of_step_s": round(left_of_step_s, 1),
        }

    def _manifest(self) -> Manifest:
        if self.manifest is None:
            raise NotARunError(f"{self.path} is not a run directory", "give one that `linerate run` wrote")
        return self.manifest

    def _offset_s(self, record: StepRecord) -> float:
        return (record.started_at - self._manifest().started_at).total_seconds()


def _planned_s(record: StepRecord) -> float:
    return float(record.spec.get("warmup_s", 0.0)) + float(record.spec.get("elapsed_s", 0.0))
