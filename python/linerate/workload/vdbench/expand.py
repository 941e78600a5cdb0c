"""From settings to steps: which volumes, streams, loops and rates each run has.

For each RD: its SD sets, then its for loops in order of appearance, then its rates; the last varies fastest.
What vdbench's words mean here:

- threads are outstanding I/Os per SD, shared by all WDs that use it: `VolumeSpec.outstanding`.
- Without warmup vdbench drops the first interval from its averages and counts it in elapsed: one interval of
warm-up
  and elapsed less one interval. With warmup, elapsed comes after it.
- WDs without skew share evenly what is left of 100 %. Skew turns the maximum into vdbench's controlled
maximum.
- A raw device's first block is never touched.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from linerate.quantity import number_text
from linerate.workload.hosts import LoadHosts
from linerate.workload.overrides import Overrides
from linerate.workload.plan import (
    CONTROLLED,
    RUNS_MAX,
    UNCONTROLLED,
    UNTIL_DONE_S,
    PlannedRun,
    PlanStep,
    Rate,
)
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.spec import RunLimits, RunSpec, SizeMix, StreamSpec
from linerate.workload.vdbench.hosts import HostDefinitions
from linerate.workload.vdbench.settings import General, Loop, Rd, Sd, Seek, Wd
from linerate.workload.vdbench.streams import StreamContext, dedup_of, make_streams
from linerate.workload.vdbench.values import CURVE_RATE, MAX_RATE, matches
from linerate.workload.vdbench.volumes import VolumeMaker

_TOTAL_SIZES = 100
"""A maxdata below this is a number of total SD sizes, else bytes."""

LoopValues = dict[str, float | Seek]


@dataclass(frozen=True, slots=True)
class Workload:
    """All settings of a file."""

    general: General
    hosts: HostDefinitions
    sds: Mapping[str, Sd]
    wds: Mapping[str, Wd]
    default_wd: Wd
    rds: Sequence[Rd]


def expand(
    workload: Workload, overrides: Overrides, problems: Problems
) -> tuple[list[PlanStep], LoadHosts | None]:
    """The steps of all RDs in order, with the fill of formatsds=yes before them; and the hosts that run them."""
    expander = _Expander(workload, overrides, problems)
    if expander.too_many_runs():
        return [], None
    steps = [step for rd in workload.rds for step in expander.steps_of(rd)]
    if workload.general.format_sds and steps:
        steps.insert(0, _format_step(steps, workload.general, len(workload.sds)))
    return steps, workload.hosts.load_hosts(expander.urls, expander.streams)


@dataclass(frozen=True, slots=True)
class _SdSet:
    """One selection of SDs: its loop text, and the SD names for each WD."""

    loop_text: tuple[tuple[str, str], ...]
    per_wd: list[list[str]]


@dataclass(frozen=True, slots=True)
class _SlicedSets(Sequence[_SdSet]):
    """Selections that are parts of one list of SDs, each made when it is asked for."""

    names: list[str]
    slices: list[slice]
    wds: int

    def __len__(self) -> int:
        return len(self.slices)

    def __getitem__(self, index: Any) -> Any:
        names = self.names[self.slices[index]]
        text = names[0] if len(names) == 1 else f"{names[0]}-{names[-1]}"
        return _SdSet((("sd", text),), [names] * self.wds)


class _Expander:
    def __init__(self, workload: Workload, overrides: Overrides, problems: Problems) -> None:
        self._workload = workload
        self._overrides = overrides
        self._problems = problems
        self._volumes = VolumeMaker(overrides, problems, workload.hosts.elsewhere)
        self._maximum_known = False
        self.streams: dict[str, tuple[str, ...]] = {}
        """By stream: the labels of its hosts."""

    @property
    def urls(self) -> Mapping[str, Mapping[str, str]]:
        """By volume and host."""
        return self._volumes.urls

    def steps_of(self, rd: Rd) -> Iterator[PlanStep]:
        wds = self._wds_of(rd)
        if not wds:
            return
        self._check_loops(rd)
        for sd_set in self._sd_sets(rd, wds):
            loop_text, per_wd = sd_set.loop_text, sd_set.per_wd
            for chosen in itertools.product(*(range(len(loop.values)) for loop in rd.loops)):
                texts = loop_text + _loop_texts(rd.loops, chosen)
                values: LoopValues = {
                    loop.keyword: loop.values[index] for loop, index in zip(rd.loops, chosen, strict=True)
                }
                run = self._run(rd, wds, per_wd, values, texts)
                if run is None:
                    return
                yield from self._at_rates(rd, run)

    def too_many_runs(self) -> bool:
        """Counts before anything is made: the numbers of several loops multiply."""
        total = 0
        for rd in self._workload.rds:
            rates = sum(1 + len(rd.curve) if rate == CURVE_RATE else 1 for rate in rd.rates or (MAX_RATE,))
            wds = self._wds_of(rd)
            factors = [
                ("sd sets", len(self._sd_sets(rd, wds)) if wds else 0),
                *((f"for{loop.keyword}", len(loop.values)) for loop in rd.loops),
                ("rates", rates),
            ]
            runs = math.prod(number for _, number in factors)
            total += runs
            if total > RUNS_MAX:
                shown = " x ".join(f"{number} {what}" for what, number in factors if number > 1)
                others = f", {total:,} with those before it" if total > runs else ""
                what = f"rd={rd.name}: {runs:,} runs ({shown}){others}; at most {RUNS_MAX:,}"
                self._problems.error(rd.place, what, "shorten the lists, or split the file")
                return True
        return False

    def _wds_of(self, rd: Rd) -> list[Wd]:
        if rd.wd_names is not None:
            found = self._pick(rd.place, "wd", rd.wd_names, list(self._workload.wds))
            wds = [self._workload.wds[name] for name in found]
        elif rd.sd_names is not None:
            wds = [replace(self._workload.default_wd, name=rd.name)]
        else:
            self._problems.error(rd.place, f"rd={rd.name}: no workload", "write wd=name, or sd=name")
            return []
        self._check_together(rd, wds)
        return wds

    def _check_together(self, rd: Rd, wds: Sequence[Wd]) -> None:
        """The rules that WDs of one run must keep between them."""
        ranks = [wd.priority for wd in wds if wd.priority is not None]
        if ranks and sorted(ranks) != list(range(1, len(wds) + 1)):
            what = f"rd={rd.name}: priorities {', '.join(map(str, ranks))} for {len(wds)} WDs"
            self._problems.error(rd.place, what, "give every WD of the run its own: 1, 2, 3 without gaps")
        rated = [wd for wd in wds if wd.rate_iops is not None]
        for wd in rated:
            if wd.priority is None:
                self._problems.error(
                    wd.place, f"wd={wd.name}: iorate without priority", "add priority=1, 2, .."
                )
            if wd.skew is not None:
                self._problems.error(wd.place, f"wd={wd.name}: iorate and skew together", "use one of them")
        shared = [wd.priority or 0 for wd in wds if wd.rate_iops is None]
        if ranks and rated and shared and max(wd.priority or 0 for wd in rated) > min(shared):
            what = f"rd={rd.name}: a WD with iorate ranks below one without"
            self._problems.error(rd.place, what, "give the WDs with iorate the first priorities")
        if any(wd.streams > 1 for wd in wds):
            if len(wds) > 1:
                self._problems.error(
                    rd.place, f"rd={rd.name}: a WD with streams= must be alone", "one WD per RD"
                )
            if any(rate != MAX_RATE for rate in rd.rates):
                self._problems.error(
                    rd.place, f"rd={rd.name}: streams= goes with iorate=max only", "iorate=max"
                )

    def _check_loops(self, rd: Rd) -> None:
        for loop in rd.loops:
            if not loop.values:
                self._problems.error(rd.place, f"rd={rd.name}: for{loop.keyword} has no value", "list values")

    def _sd_sets(self, rd: Rd, wds: Sequence[Wd]) -> Sequence[_SdSet]:
        """The SD selections of an RD."""
        known = list(self._workload.sds)
        own = [
            self._pick(wd.place, "sd", wd.sd_names, known, once=True) if wd.sd_names is not None else []
            for wd in wds
        ]
        if rd.sd_names is None:
            for wd in wds:
                if wd.sd_names is None:
                    self._problems.error(wd.place, f"wd={wd.name}: no sd=", "write sd=name, (sd1-sd8) or sd*")
            return [_SdSet((), own)] if all(own) else []
        word = rd.sd_names[0].lower() if len(rd.sd_names) == 1 else ""
        sets_of = re.fullmatch(r"setsof(\d{1,5})", word)
        if word in known or not (word in ("single", "range") or sets_of):
            names = self._pick(rd.place, "sd", rd.sd_names, known, once=True)
            return [_SdSet((), [names] * len(wds))] if names else []
        everything = [name for name in known if any(name in names for names in own)] or known
        if word == "range":
            slices = [slice(0, count) for count in range(1, len(everything) + 1)]
        else:
            size = max(int(sets_of.group(1)), 1) if sets_of else 1
            slices = [slice(start, start + size) for start in range(0, len(everything), size)]
        return _SlicedSets(everything, slices, len(wds))

    def _pick(
        self,
        place: SourceLocation,
        kind: str,
        patterns: Sequence[str],
        known: Sequence[str],
        *,
        once: bool = False,
    ) -> list[str]:
        """The known names that the patterns mean, in the order of the patterns."""
        picked: list[str] = []
        for pattern in patterns:
            if "*" in pattern[:-1]:
                self._problems.error(
                    place, f"{kind}={pattern}: a * may be at the end only", f"write {kind}={kind}*"
                )
                continue
            found = [name for name in known if matches(pattern, name)]
            if not found:
                there = ", ".join(known[:10]) + (", .." if len(known) > 10 else "") or "none"
                self._problems.error(place, f"{kind}={pattern}: there is no such {kind}", f"there is {there}")
            for name in found:
                if name in picked and once:
                    self._problems.error(place, f"{kind}={name} is used twice", "name each once")
                elif name not in picked:
                    picked.append(name)
        return picked

    def _run(
        self,
        rd: Rd,
        wds: Sequence[Wd],
        per_wd: Sequence[Sequence[str]],
        values: LoopValues,
        texts: tuple[tuple[str, str], ...],
    ) -> PlannedRun | None:
        """The closed run of one pass, or None if something in it is wrong."""
        general = self._workload.general
        on_hosts = self._on_hosts(rd, wds, per_wd)
        if on_hosts is None:
            return None
        per_wd = on_hosts
        names = [name for name in self._workload.sds if any(name in sds for sds in per_wd)]
        sds = [self._workload.sds[name] for name in names]
        outstanding = cast("float | None", values.get("threads"))
        volumes = self._volumes.make(sds, rd, wds, int(outstanding) if outstanding else None)
        if volumes is None:
            return None
        context = StreamContext(general, self._workload.sds, self._volumes.targets, values, self._problems)
        streams = make_streams(rd, wds, per_wd, context)
        if streams is None:
            return None
        controlled = any(wd.skew is not None or wd.priority is not None for wd in wds)
        measured_s = rd.elapsed_s if rd.warmup_s else max(rd.elapsed_s - rd.interval_s, rd.interval_s)
        label = " ".join((rd.name, *(f"{keyword}={text}" for keyword, text in texts)))
        spec = RunSpec(
            name=label,
            warmup_s=rd.warmup_s or rd.interval_s,
            elapsed_s=measured_s,
            interval_s=rd.interval_s,
            verify="on" if general.verify else "off",
            volumes=tuple(volumes),
            streams=tuple(streams),
            shares="controlled" if controlled else "uncontrolled",
            limits=self._limits(rd, sds),
        )
        warmup_text = f" warmup={number_text(rd.warmup_s)}" if rd.warmup_s else ""
        return PlannedRun(
            spec=spec,
            name=rd.name,
            label=label,
            loops=texts,
            rate_text=CONTROLLED if controlled else UNCONTROLLED,
            timing_text=f"elapsed={number_text(rd.elapsed_s)}{warmup_text}",
            pause_s=rd.pause_s,
            start_commands=rd.start_commands,
            end_commands=rd.end_commands,
            error_limit=general.error_limit,
            histogram_us=general.histogram_us,
            source=str(rd.place),
        )

    def _on_hosts(
        self, rd: Rd, wds: Sequence[Wd], per_wd: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[str]] | None:
        """The SDs of each WD that a host of the WD uses, or None after a problem was noted."""
        if self._workload.hosts.are_one_here:
            return per_wd
        found: list[list[str]] = []
        for wd, names in zip(wds, per_wd, strict=True):
            common = {
                name: [one for one in wd.hosts if one in self._workload.sds[name].luns] for name in names
            }
            left = [name for name in names if common[name]]
            if not left:
                what = f"rd={rd.name}: wd={wd.name} has no SD on its hosts ({', '.join(wd.hosts)})"
                self._problems.error(
                    wd.place, what, "host= of the WD and of its SDs must have a host in common"
                )
                return None
            several = [name for name in left if len(common[name]) > 1]
            if wd.streams > 1 and several:
                what = f"wd={wd.name}: streams= on several hosts is not supported: they would read the same blocks"
                self._problems.error(wd.place, what, "give the WD one host: host=label")
                return None
            if wd.range is None and len({self._workload.sds[name].range for name in left}) > 1:
                what = f"wd={wd.name}: SDs that differ in range= are not supported on several hosts"
                self._problems.error(wd.place, what, "give them the same range, or a WD each")
                return None
            if self.streams.setdefault(wd.name, wd.hosts) != wd.hosts:
                what = f"rd={rd.name}: a WD of this name has other hosts"
                self._problems.error(rd.place, what, "give the RD another name")
                return None
            found.append(left)
        return found

    def _limits(self, rd: Rd, sds: Sequence[Sd]) -> RunLimits:
        limits: dict[str, int] = {}
        fields = {"maxdata": "bytes", "maxdataread": "read_bytes", "maxdatawritten": "written_bytes"}
        for keyword, amount in rd.max_data.items():
            total_bytes = amount
            if amount < _TOTAL_SIZES:
                sizes = [self._overrides.size_bytes or sd.size_bytes for sd in sds]
                if None in sizes:
                    what = f"rd={rd.name}: {keyword}={amount:g} times all SDs, but not all have a size"
                    self._problems.error(rd.place, what, "give the SDs size=, or the amount in bytes")
                    continue
                total_bytes = amount * sum(size for size in sizes if size is not None)
            if total_bytes >= 1:
                limits[fields[keyword]] = int(total_bytes)
        return RunLimits.model_validate(limits)

    def _at_rates(self, rd: Rd, run: PlannedRun) -> Iterator[PlanStep]:
        process = cast("Literal['deterministic', 'poisson', 'uniform']", rd.process)
        rates = rd.rates or (MAX_RATE,)
        for rate in rates:
            named = _with_rate_label(run, rate) if len(rates) > 1 else run
            if rate == CURVE_RATE:
                yield from self._curve(rd, named, process)
            elif rate == MAX_RATE:
                self._maximum_known = True
                yield PlanStep(named, Rate("max"))
            elif rate < 0:
                if not self._maximum_known:
                    what = f"rd={rd.name}: iorate={-rate:g}% needs an earlier run at its maximum"
                    self._problems.error(rd.place, what, "put an RD with iorate=max or curve before it")
                yield PlanStep(replace(named, rate_text=f"{-rate:g}%"), Rate("percent", -rate, process))
            else:
                yield PlanStep(replace(named, rate_text=f"{rate:.10g}"), Rate("fixed", rate, process))

    def _curve(
        self, rd: Rd, run: PlannedRun, process: Literal["deterministic", "poisson", "uniform"]
    ) -> Iterator[PlanStep]:
        """A run at the maximum, then one for each percentage of what it achieves."""
        self._maximum_known = True
        text = run.rate_text.replace("MAX", "curve")
        yield PlanStep(replace(run, rate_text=text), Rate("curve_max"))
        for percent in rd.curve:
            name = f"{run.name}_({percent:g}%)"
            label = run.label.replace(run.name, name, 1)
            point = replace(
                run,
                name=name,
                label=label,
                rate_text=f"{percent:g}% of the maximum",
                spec=run.spec.model_copy(update={"name": label}),
            )
            yield PlanStep(point, Rate("curve_point", percent, process), rd.stop_curve_ms)


def _loop_texts(loops: Sequence[Loop], chosen: Sequence[int]) -> tuple[tuple[str, str], ...]:
    return tuple((loop.keyword, loop.texts[index]) for loop, index in zip(loops, chosen, strict=True))


def _with_rate_label(run: PlannedRun, rate: float) -> PlannedRun:
    words = {MAX_RATE: "max", CURVE_RATE: "curve"}
    label = f"{run.label} iorate={words.get(rate, f'{-rate:g}%' if rate < 0 else f'{rate:.10g}')}"
    return replace(run, label=label, spec=run.spec.model_copy(update={"name": label}))


def _format_step(steps: Sequence[PlanStep], general: General, sds: int) -> PlanStep:
    """Sequential writes over every volume of the plan, to its end. sds: their number in the file."""
    volumes = {volume.name: volume for step in steps for volume in step.run.spec.volumes}
    update: dict[str, Any] = {"durable_writes": False}
    first = steps[0].run
    stream = StreamSpec(
        name="format",
        volumes=tuple(volumes),
        sizes=SizeMix.one(general.format_bytes),
        read_percent=0,
        random_percent=0,
        stop_at_end=True,
        dedup=dedup_of(general, sds),
    )
    spec = first.spec.model_copy(
        update={
            "name": "format",
            "volumes": tuple(volume.model_copy(update=update) for volume in volumes.values()),
            "streams": (stream,),
            "warmup_s": 0.0,
            "elapsed_s": UNTIL_DONE_S,
            "interval_s": 1.0,
            "verify": "off",
            "shares": "uncontrolled",
            "limits": RunLimits(),
        }
    )
    run = replace(
        first, spec=spec, name="format", label="format", loops=(), rate_text=UNCONTROLLED, pause_s=0.0
    )
    return PlanStep(
        replace(
            run,
            timing_text="until every volume is full",
            start_commands=(),
            end_commands=(),
            ends_when_done=True,
        ),
        Rate("max"),
    )
