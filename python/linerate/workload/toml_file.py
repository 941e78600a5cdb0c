"""Reads a Linerate workload file (TOML): checks it against `toml_model` and makes the steps of its plan.

Errors name file, line and key; all of them are reported at once.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linerate.errors import UserError
from linerate.quantity import number_text, size_text
from linerate.toml_lines import Key, key_lines, line_of
from linerate.workload.multipath import contradiction, filled_paths
from linerate.workload.overrides import Overrides, fill_number
from linerate.workload.plan import CONTROLLED, RUNS_MAX, UNCONTROLLED, PlannedRun, PlanStep, Rate, RunPlan
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import (
    MultipathSpec,
    PathSpec,
    RunLimits,
    RunSpec,
    SizeMix,
    StreamSpec,
    VolumeSpec,
)
from linerate.workload.toml_model import (
    LimitTable,
    RunSettings,
    RunTable,
    StreamTable,
    SweepTable,
    VolumeTable,
    WorkloadFile,
)
from linerate.workload.toml_read import checked, read_text
from linerate.workload.url import NO_DEVICE, has_paths, in_dev, parse_target, path_of

_MAXIMA = {"uncontrolled": UNCONTROLLED, "controlled": CONTROLLED, "total": "MAX, shares kept in total"}
_CURVE = (10.0, 50.0, 70.0, 80.0, 90.0, 100.0)
_SHARE_TOLERANCE = 1e-4
_DEFAULT_OUTSTANDING = 8

SweepValue = tuple[str, Any, str]
"""Keyword, value, text."""


def load_toml(path: Path, *, overrides: Overrides | None = None) -> RunPlan:
    """The plan of a workload file. Raises UserError with everything that is wrong."""
    text = read_text(path, "workload file")
    return parse_toml(text, str(path), name=path.stem, overrides=overrides)


def parse_toml(text: str, shown: str, *, name: str, overrides: Overrides | None = None) -> RunPlan:
    """The plan of a workload file's text; `shown` is the file's name in messages, `name` is used if it has
    none."""
    wanted = overrides or Overrides()
    problems = Problems()
    file = checked(text, shown, WorkloadFile, "workload file", problems)
    reader = _Reader(file, shown, key_lines(text), wanted, problems)
    steps = list(reader.steps(name))
    problems.raise_if_any()
    return wanted.apply(RunPlan(reader.file.name or name, steps, problems.notices))


@dataclass(frozen=True, slots=True)
class _Settings:
    """A run's settings: its own, else the file's, else the defaults."""

    run: RunSettings
    file: WorkloadFile

    def get(self, key: str, default: Any) -> Any:
        for table in (self.run, self.file):
            if (value := getattr(table, key)) is not None:
                return value
        return default


class _Reader:
    def __init__(
        self, file: WorkloadFile, shown: str, lines: dict[Key, int], overrides: Overrides, problems: Problems
    ) -> None:
        self.file = file
        self._shown = shown
        self._lines = lines
        self._overrides = overrides
        self._problems = problems
        self._maximum_known = False

    def steps(self, name: str) -> Iterator[PlanStep]:
        self._overrides.luns.check(
            [(one, table.target or "") for table in self.file.volume for one in _names(table)]
        )
        volumes = [
            volume for index, table in enumerate(self.file.volume) for volume in self._volumes(index, table)
        ]
        self._check_names("volume", [volume.name for volume in volumes])
        self._check_names("stream", [stream.name for stream in self.file.stream])
        self._check_names("run", [run.name for run in self.file.run])
        if self._problems.errors:
            return
        runs: list[tuple[Key, RunTable]] = [(("run", index), run) for index, run in enumerate(self.file.run)]
        if not runs:
            runs = [((), RunTable(name=self.file.name or name))]
        if self._too_many(runs):
            return
        for key, run in runs:
            yield from self._steps_of(key, run, volumes)

    def _error(self, key: Key, what: str, accepted: str = "") -> None:
        self._problems.error(SourceLocation(self._shown, line_of(self._lines, key)), what, accepted)

    def _check_names(self, kind: str, names: Sequence[str]) -> None:
        for name in (name for name, number in Counter(names).items() if number > 1):
            self._error((kind,), f"{kind} {name}: the name is used twice", "give each its own")

    def _volumes(self, index: int, table: VolumeTable) -> Iterator[VolumeSpec]:
        key: Key = ("volume", index)
        for number, name in enumerate(_names(table), 1):
            try:
                text = self._overrides.luns.resolve(name, table.target or "") or table.target
                if text is None:
                    self._error(key, f"volume {name}: no target", "add target = .. here, or give --map")
                    continue
                if table.count > 1:
                    text = fill_number(text, str(number), "")
                target = parse_target(text)
                path = path_of(target.url)
                if table.create and path and not os.path.exists(path) and in_dev(path):
                    raise UserError(f"{path}: no such device", NO_DEVICE)
            except UserError as error:
                self._error((*key, "target"), f"volume {name}: {error.message}", error.hint)
                return
            multipath = table.multipath.over(self.file.multipath.over(MultipathSpec()))
            paths = self._paths((*key, "paths"), table, name, number, multipath)
            if paths is None:
                return
            if paths and not has_paths(target.url):
                what = f"volume {name}: paths, and the target is no iSCSI LUN"
                self._error((*key, "paths"), what, "write target = iscsi://host/target/lun")
                return
            yield VolumeSpec(
                name=name,
                url=target.url,
                user=table.user or target.user,
                secret=table.secret or target.secret,
                mutual_user=table.mutual_user or target.mutual_user,
                mutual_secret=table.mutual_secret or target.mutual_secret,
                first_byte=table.first_byte,
                size_bytes=table.size or None,
                outstanding=table.outstanding or self.file.outstanding or _DEFAULT_OUTSTANDING,
                direct=table.direct,
                create=table.create and target.can_be_made,
                durable_writes=table.durable_writes,
                session=table.session,
                iscsi=self.file.iscsi.merged(target.iscsi).merged(table.iscsi),
                smb=self.file.smb.merged(table.smb),
                paths=paths,
                multipath=multipath,
            )

    def _paths(
        self, key: Key, table: VolumeTable, name: str, number: int, multipath: MultipathSpec
    ) -> tuple[PathSpec, ...] | None:
        """None if they are wrong."""
        try:
            paths = filled_paths(table.paths, lambda text: fill_number(text, str(number), ""))
        except UserError as error:
            self._error(key, f"volume {name}: {error.message}", error.hint)
            return None
        except ValueError as error:
            what, _, accepted = str(error).partition("; ")
            self._error(key, f"volume {name}: {what}", accepted)
            return None
        if (wrong := contradiction(paths, multipath)) is not None:
            self._error(key if wrong.path is None else (*key, wrong.path), wrong.what, wrong.accepted)
            return None
        return paths

    def _steps_of(self, key: Key, run: RunTable, volumes: Sequence[VolumeSpec]) -> Iterator[PlanStep]:
        settings = _Settings(run, self.file)
        names = [stream.name for stream in self.file.stream]
        chosen = self._pick((*key, "streams"), "stream", run.streams, names)
        tables = [(i, table) for i, table in enumerate(self.file.stream) if table.name in chosen]
        rates: tuple[Rate, ...] = settings.get("rate", (Rate("max"),))
        if not tables:
            return
        shares = self._shares(key, [table for _, table in tables], rates)
        made = [
            self._stream(index, table, share, volumes)
            for (index, table), share in zip(tables, shares, strict=True)
        ]
        streams = [stream for stream in made if stream is not None]
        if self._problems.errors:
            return
        sweep = _sweep_axes(settings.get("sweep", None))
        for values in itertools.product(*sweep):
            planned = self._run(key, run, settings, volumes, streams, values)
            yield from self._at_rates(key, planned, settings, rates)

    def _too_many(self, runs: Sequence[tuple[Key, RunTable]]) -> bool:
        """Counts before anything is made: the numbers of several axes multiply."""
        total = 0
        for key, run in runs:
            settings = _Settings(run, self.file)
            curve = settings.get("curve", _CURVE)
            rates = settings.get("rate", (Rate("max"),))
            per_rate = sum(1 + len(curve) if rate.kind == "curve_max" else 1 for rate in rates)
            axes = _sweep_axes(settings.get("sweep", None))
            factors = [*((axis[0][0], len(axis)) for axis in axes), ("rates", per_rate)]
            number = math.prod(count for _, count in factors)
            total += number
            if total > RUNS_MAX:
                shown = " x ".join(f"{count} {what}" for what, count in factors if count > 1)
                others = f", {total:,} with those before it" if total > number else ""
                what = f"run {run.name}: {number:,} runs ({shown}){others}; at most {RUNS_MAX:,}"
                self._error(key, what, "shorten the sweep, or split the file")
                return True
        return False

    def _pick(self, key: Key, kind: str, patterns: Sequence[str], known: Sequence[str]) -> list[str]:
        picked: list[str] = []
        for pattern in patterns:
            prefix = pattern[:-1] if pattern.endswith("*") else None
            found = [n for n in known if (n == pattern if prefix is None else n.startswith(prefix))]
            if not found:
                self._error(key, f"{pattern!r}: there is no such {kind}", f"there is {', '.join(known[:10])}")
            picked += [name for name in found if name not in picked]
        return picked

    def _shares(self, key: Key, tables: Sequence[StreamTable], rates: Sequence[Rate]) -> list[float | None]:
        """Percent for each stream; None for all when nothing asks for shares."""
        for table in tables:
            if table.rate is not None and table.share is not None:
                self._error((*key, "streams"), f"stream {table.name}: a rate and a share", "give one of them")
        closed = all(rate.kind in ("max", "curve_max") for rate in rates)
        if closed and all(table.share is None for table in tables):
            return [None] * len(tables)
        sharing = [table for table in tables if table.rate is None]
        given = sum(table.share for table in sharing if table.share is not None)
        without = sum(table.share is None for table in sharing)
        rest = (100 - given) / without if without else 0.0
        uneven = sharing and not without and abs(given - 100) > _SHARE_TOLERANCE
        if uneven or (without and rest <= _SHARE_TOLERANCE):
            what = f"the shares of the streams add up to {given:g}, not 100"
            self._error((*key, "streams"), what, "mend share = in the streams")
        return [
            None if table.rate is not None else table.share if table.share is not None else max(rest, 0.0)
            for table in tables
        ]

    def _stream(
        self, index: int, table: StreamTable, share: float | None, volumes: Sequence[VolumeSpec]
    ) -> StreamSpec | None:
        key: Key = ("stream", index, "volumes")
        names = self._pick(key, "volume", table.volumes, [volume.name for volume in volumes])
        if not names:
            return None
        return StreamSpec(
            name=table.name,
            volumes=tuple(names),
            share_percent=share,
            rate_iops=table.rate,
            priority=table.priority,
            sizes=table.size,
            read_percent=table.read,
            random_percent=table.random,
            stride=table.stride.span() if table.stride else None,
            range=table.range,
            hotband=table.hotband,
            align_bytes=table.align,
            hit_area=table.hit_area.area() if table.hit_area else None,
            skip_first_block=table.skip_first_block,
            stop_at_end=table.stop_at_end,
            cursors=table.cursors,
            compression_ratio=table.compression,
        )

    def _run(
        self,
        key: Key,
        run: RunTable,
        settings: _Settings,
        volumes: Sequence[VolumeSpec],
        streams: Sequence[StreamSpec],
        values: Sequence[SweepValue],
    ) -> PlannedRun:
        """The closed run of one combination of the sweep."""
        swept = {keyword: value for keyword, value, _ in values}
        outstanding = swept.get("outstanding", run.outstanding)
        used = {name for stream in streams for name in stream.volumes}
        shared = any(stream.share_percent is not None for stream in streams) and len(streams) > 1
        limit: LimitTable = settings.get("limit", LimitTable())
        label = " ".join((run.name, *(f"{keyword}={text}" for keyword, _, text in values)))
        spec = RunSpec(
            name=label,
            seed=self.file.seed,
            warmup_s=settings.get("warm_up", 5.0),
            elapsed_s=settings.get("elapsed", 30.0),
            interval_s=settings.get("interval", 1.0),
            workers=self.file.workers,
            cpus=self.file.cpus,
            driver=self.file.driver,
            wait=self.file.wait,
            verify="on" if settings.get("verify", False) else "off",
            volumes=tuple(
                volume.model_copy(update={"outstanding": outstanding}) if outstanding else volume
                for volume in volumes
                if volume.name in used
            ),
            streams=tuple(_swept(stream, swept) for stream in streams),
            shares=settings.get("shares", "total") if shared else "uncontrolled",
            limits=RunLimits(
                bytes=limit.total or None, read_bytes=limit.read or None, written_bytes=limit.written or None
            ),
        )
        return PlannedRun(
            spec=spec,
            name=run.name,
            label=label,
            loops=tuple((keyword, text) for keyword, _, text in values),
            rate_text=_MAXIMA[spec.shares],
            pause_s=settings.get("pause", 0.0),
            source=str(SourceLocation(self._shown, line_of(self._lines, key))),
        )

    def _at_rates(
        self, key: Key, run: PlannedRun, settings: _Settings, rates: Sequence[Rate]
    ) -> Iterator[PlanStep]:
        process = settings.get("arrival", "poisson")
        for rate in rates:
            named = run
            if len(rates) > 1:
                named = _labelled(run, f"{run.label} rate={_rate_text(rate)}", run.name)
            if rate.kind in ("max", "curve_max"):
                self._maximum_known = True
            if rate.kind == "max":
                yield PlanStep(named, rate)
            elif rate.kind == "curve_max":
                yield from self._curve(named, settings, process)
            else:
                if rate.kind == "percent" and not self._maximum_known:
                    what = "rate: a percentage needs an earlier run at its maximum"
                    self._error((*key, "rate"), what, 'put rate = "max" or "curve" before it')
                yield PlanStep(replace(named, rate_text=_rate_text(rate)), replace(rate, process=process))

    def _curve(self, run: PlannedRun, settings: _Settings, process: Any) -> Iterator[PlanStep]:
        yield PlanStep(replace(run, rate_text=run.rate_text.replace("MAX", "curve")), Rate("curve_max"))
        for percent in settings.get("curve", _CURVE):
            name = f"{run.name}_({percent:g}%)"
            point = _labelled(run, run.label.replace(run.name, name, 1), name)
            rate = Rate("curve_point", percent, process)
            text = f"{percent:g}% of the maximum"
            yield PlanStep(replace(point, rate_text=text), rate, settings.get("stop_curve_ms", None))


def _names(table: VolumeTable) -> list[str]:
    """The names of the volumes of a table."""
    if table.count == 1:
        return [table.name.replace("{n}", "1")]
    pattern = table.name if "{n" in table.name else table.name + "{n}"
    return [fill_number(pattern, str(number), "") for number in range(1, table.count + 1)]


def _labelled(run: PlannedRun, label: str, name: str) -> PlannedRun:
    return replace(run, name=name, label=label, spec=run.spec.model_copy(update={"name": label}))


def _rate_text(rate: Rate) -> str:
    words = {"max": "max", "curve_max": "curve"}
    return words.get(rate.kind) or number_text(rate.value) + ("%" if rate.kind == "percent" else "")


def _sweep_axes(sweep: SweepTable | None) -> list[list[SweepValue]]:
    """The swept values by axis, in the order in which the file has them."""
    if sweep is None:
        return []
    axes: list[list[SweepValue]] = []
    for keyword in sweep.order:
        values = getattr(sweep, keyword) or ()
        text = size_text if keyword == "size" else number_text
        axes.append([(keyword, value, text(value)) for value in values])
    return axes


def _swept(stream: StreamSpec, swept: dict[str, Any]) -> StreamSpec:
    update: dict[str, Any] = {}
    if "size" in swept:
        update["sizes"] = SizeMix.one(swept["size"])
    if "read" in swept:
        update["read_percent"] = swept["read"]
    if "random" in swept:
        update["random_percent"] = swept["random"]
    return stream.model_copy(update=update)
