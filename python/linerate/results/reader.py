"""Reads a run directory: finished, failed, or left behind by a killed process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import polars as pl

from linerate.results.histogram import Histogram
from linerate.results.manifest import Manifest
from linerate.results.sample import Event, LatencyKind, Op


class RunDirectory:
    """A run directory opened for reading.

    `manifest` is the typed manifest; `intervals` one row per (step, interval, stream, volume, op); `usage`
    one row per (step, interval). Both have the columns of `columns.py`, units in the names.
    """

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open `path`. `NotARunError` when it is no run directory or of a newer format."""
        raise NotImplementedError

    @property
    def intervals(self) -> pl.DataFrame:
        """Counters per step, interval, stream, volume and operation."""
        raise NotImplementedError

    @property
    def usage(self) -> pl.DataFrame:
        """CPU, TCP and generator figures per step and interval."""
        raise NotImplementedError

    @property
    def events(self) -> Sequence[Event]:
        """What happened, in order."""
        raise NotImplementedError

    def latency(
        self,
        step: str,
        *,
        stream: str | None = None,
        volume: str | None = None,
        op: Op | None = None,
        kind: LatencyKind = "service",
    ) -> Histogram | None:
        """The merged distribution of a step's measured time, of everything that the filters leave;

        None without I/O.
        """
        raise NotImplementedError
