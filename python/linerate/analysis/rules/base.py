"""What a rule is, and what it sees of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from linerate.analysis.summary import StepSummary
from linerate.results import RunDirectory, StepRecord
from linerate.results.manifest import Severity

PACE_KEPT = 0.98
"""Of the rate asked for: below, the SAN or the generator cannot follow."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A finding without the rule's name and the step, which the engine adds. Made by `note`, `caution` and `void`."""

    severity: Severity
    reason: str
    advice: str
    effect: str = ""


def note(reason: str, advice: str) -> Doubt:
    """Something to know when reading the figures; it makes none of them wrong."""
    return Doubt("note", reason, advice)


def caution(reason: str, effect: str, advice: str) -> Doubt:
    """Something that may shift a result. `effect` says which figure and by how much, from what was measured."""
    return Doubt("caution", reason, advice, effect)


def void(reason: str, advice: str) -> Doubt:
    """A reason not to use the result."""
    return Doubt("void", reason, advice)


class StepView:
    """One step as the rules see it.

    What was asked (`spec`), what was read back (`facts`), what was measured.
    """

    def __init__(self, run: RunDirectory, record: StepRecord, summary: StepSummary) -> None:
        self.run = run
        self.record = record
        self.summary = summary

    @property
    def spec(self) -> Mapping[str, Any]:
        """The RunSpec of the step, without secrets."""
        return self.record.spec

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Measured rows of the interval table."""
        return self.run.measured_rows(self.record.key)

    @cached_property
    def usage(self) -> pl.DataFrame:
        """Measured rows of the usage table."""
        return self.run.measured_usage(self.record.key)

    @cached_property
    def iops(self) -> list[float]:
        """IOPS of each measured interval, in order."""
        counts = self.rows.group_by("interval").agg(pl.col("ios").sum())
        table = self.usage.join(counts, on="interval", how="left").sort("interval")
        seconds = table["end_s"] - table["start_s"]
        return [float(value) for value in (table["ios"].fill_null(0) / seconds).to_list()]

    @property
    def closed_loop(self) -> bool:
        """Whether a finished I/O makes room for the next one."""
        return bool(self.spec.get("arrival", {}).get("kind", "closed") == "closed")

    @property
    def computed(self) -> bool:
        """Whether the step was computed in virtual time: no host, network or cache has a part in it."""
        return bool(self.record.facts.get("driver") == "virtual")

    @property
    def in_laboratory(self) -> bool:
        """Whether host, network and array share one machine, whose CPUs have rules of their own."""
        return "machine.busy_s" in self.record.counters

    @property
    def rate_kept(self) -> bool:
        """Whether the load had a rate to keep, and kept it."""
        return pace_kept(self.summary)

    @property
    def streams(self) -> list[Mapping[str, Any]]:
        """The stream specs."""
        return list(self.spec.get("streams", ()))

    @property
    def volume_facts(self) -> list[Mapping[str, Any]]:
        """What was read back about each volume."""
        return list(self.record.facts.get("volumes") or ())

    @property
    def sessions(self) -> list[Mapping[str, Any]]:
        """What was read back about each volume's iSCSI session."""
        return [session for volume in self.volume_facts if (session := volume.get("session"))]


def pace_kept(summary: StepSummary) -> bool:
    """Whether a load had a rate to keep, and kept it."""
    asked = summary.rate_asked_iops
    return asked is not None and summary.total.iops >= PACE_KEPT * asked


def short_ms(value: float) -> str:
    """Milliseconds in a sentence: three digits, and no exponent."""
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


@dataclass(frozen=True, slots=True)
class StepRule:
    """A rule about one step."""

    id: str
    judge: Callable[[StepView], Iterator[Doubt]]


@dataclass(frozen=True, slots=True)
class RunRule:
    """A rule about the run as a whole."""

    id: str
    judge: Callable[[RunDirectory], Iterator[Doubt]]
