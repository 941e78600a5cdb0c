"""A configuration as the steps of a plan: each access specification is a run, or several if the test type cycles."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linerate.plural import plural
from linerate.workload.fio.volumes import unused_name
from linerate.workload.hosts import LoadHost, LoadHosts
from linerate.workload.iometer.configuration import AccessSpecification, IcfManager, IcfSetup, IcfWorker
from linerate.workload.iometer.cycles import RunShape, cycles_of, shapes
from linerate.workload.iometer.load import check_lines, check_pauses, random_percent, read_percent, stream_of
from linerate.workload.iometer.specifications import IDLE, Specifications
from linerate.workload.iometer.volumes import DiskUse, DiskVolumes, apart_disks, check_maps, disks_of, key_of
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RUNS_MAX, IometerTest, IometerWorker, PlannedRun, PlanStep, Rate
from linerate.workload.problems import Problems, shorten
from linerate.workload.spec import RunSpec

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker does in one run. number: of the worker in the file, from 1."""

    number: int
    name: str
    worker: IcfWorker
    specification: AccessSpecification


def steps_of(
    setup: IcfSetup,
    specifications: Specifications,
    managers: Sequence[IcfManager],
    overrides: Overrides,
    problems: Problems,
) -> list[PlanStep]:
    """The steps in order; empty after a problem was noted."""
    active = _active(managers)
    _check_managers(active, problems)
    if not _has_times(setup, overrides, problems) or problems.errors:
        return []
    rows = list(_rows(active, specifications, setup, problems))
    _check_cycles(setup, problems)
    for specification in {id(one.specification): one.specification for row in rows for one in row}.values():
        check_lines(specification, problems)
    if problems.errors or not rows:
        return []
    runs = list(itertools.islice(_runs(setup, rows), RUNS_MAX + 1))
    if len(runs) > RUNS_MAX:
        problems.error(setup.place, f"more than {RUNS_MAX:,} runs", "write larger steps, or split the file")
        return []
    builder = _Builder(setup, active, overrides, rows, problems)
    steps = [builder.step(row, shape) for row, shape in runs]
    return [] if problems.errors else [step for step in steps if step is not None]


def hosts_of(steps: Sequence[PlanStep]) -> LoadHosts | None:
    """What each of several managers did; None: there is one."""
    labels: dict[str, None] = {}
    urls: dict[str, dict[str, str]] = {}
    streams: dict[str, tuple[str, ...]] = {}
    for run in (step.run for step in steps):
        at = {volume.name: volume.url for volume in run.spec.volumes}
        for worker in run.iometer.workers if run.iometer else ():
            labels[worker.manager] = None
            streams[worker.stream] = (worker.manager,)
            for volume in worker.targets:
                urls[volume] = {worker.manager: at[volume]}
    if len(labels) < 2:
        return None
    return LoadHosts(tuple(LoadHost(label, "") for label in labels), urls, streams)


def _active(managers: Sequence[IcfManager]) -> list[IcfManager]:
    """Those whose workers have targets."""
    return [one for one in managers if any(worker.targets for worker in one.workers)]


def _check_managers(active: Sequence[IcfManager], problems: Problems) -> None:
    """The workers of several managers all make their load here, side by side."""
    if len(active) < 2:
        return
    names = " and ".join(shorten(one.name) for one in active[:2])
    shown = f"{len(active)} managers with targets ({names})"
    what = (
        f"{shown}: this host makes the load of all, or as many --hosts do; each manager has disks of its own"
    )
    problems.notice(active[1].place, what)


def _has_times(setup: IcfSetup, overrides: Overrides, problems: Problems) -> bool:
    if setup.run_s or overrides.elapsed_s is not None:
        return True
    what = "no 'Run Time, or one of 0: Iometer runs until it is stopped"
    problems.error(setup.place, what, "write hours, minutes and seconds, or give --elapsed")
    return False


def _rows(
    managers: Sequence[IcfManager], specifications: Specifications, setup: IcfSetup, problems: Problems
) -> Iterator[list[Assignment]]:
    """The n-th specification of each worker, for each n; workers that pause are left out."""
    taken: set[str] = set()
    lists: list[tuple[int, str, IcfWorker, list[AccessSpecification | None]]] = []
    of_managers = [(manager, worker) for manager in managers for worker in manager.workers]
    for number, (manager, worker) in enumerate(of_managers, start=1):
        own = worker.name or f"Worker {number}"
        name = unused_name(f"{manager.name} {own}" if len(managers) > 1 else own, taken, " ")
        if worker.targets:
            lists.append((number, name, worker, _specifications(worker, specifications, problems)))
    without = len(of_managers) - len(lists)
    if without and lists:
        message = f"{plural(without, 'worker')} without targets: no load, as in Iometer"
        problems.notice(managers[0].place, message)
    for nth in range(max((len(own) for *_, own in lists), default=0)):
        row = [
            Assignment(number, name, worker, found)
            for number, name, worker, own in lists
            if nth < len(own) and (found := own[nth]) is not None
        ]
        if row:
            yield row
        else:
            message = f"run {nth + 1}: all workers are idle: left out; Iometer waits for {setup.run_s} s"
            problems.notice(managers[0].place, message)


def _specifications(
    worker: IcfWorker, specifications: Specifications, problems: Problems
) -> list[AccessSpecification | None]:
    """Those of a worker in order; None: idle."""
    if worker.assigned is None:  # versions before 1998.05.21: all workers do all
        return list(specifications.unnamed)
    found: list[AccessSpecification | None] = []
    for place, name in worker.assigned:
        specification = specifications[name]
        if specification is None and name.lower() != IDLE:
            close = difflib.get_close_matches(name, specifications.names, n=1)
            hint = f"did you mean {shorten(close[0])}?" if close else "define it in 'ACCESS SPECIFICATIONS"
            what = f"worker {shorten(worker.name)}: no access specification {shorten(name)!r}"
            problems.error(place, what, hint)
        elif specification is None or specification.lines:
            found.append(specification)
    return found


def _check_cycles(setup: IcfSetup, problems: Problems) -> None:
    for cycling in cycles_of(setup):
        if cycling.start < 1 or cycling.step < 1:
            what = f"'Test Type {setup.kind.name}: start {cycling.start} and step {cycling.step}"
            problems.error(cycling.place, what, "write 1 or more for both")


def _runs(
    setup: IcfSetup, rows: Sequence[Sequence[Assignment]]
) -> Iterator[tuple[Sequence[Assignment], RunShape]]:
    for row in rows:
        counts = [len(_targets(one.worker)) for one in row]
        for shape in shapes(setup, counts, [one.worker.manager for one in row]):
            yield row, shape


def _targets(worker: IcfWorker) -> list[str]:
    """Keys of its targets; Iometer takes each once."""
    return list(dict.fromkeys(key_of(text) for _, text in worker.targets))


class _Builder:
    """Makes steps from runs."""

    def __init__(
        self,
        setup: IcfSetup,
        managers: Sequence[IcfManager],
        overrides: Overrides,
        rows: Sequence[Sequence[Assignment]],
        problems: Problems,
    ) -> None:
        self._setup = setup
        self._manager = " + ".join(one.name for one in managers)
        taken: set[str] = set()
        self._labels_of = {
            one.workers[0].manager: unused_name(_UNSAFE.sub("_", one.name) or "manager", taken, "-")
            for one in managers
        }
        self._problems = problems
        workers = [worker for manager in managers for worker in manager.workers]
        self._disks = disks_of(workers)
        seeds = [worker.seed for worker in workers if worker.seed is not None]
        self._seed = seeds[0] if seeds else 1
        self._labels: set[str] = set()
        whole = [self._uses(row, RunShape(tuple(len(_targets(one.worker)) for one in row))) for row in rows]
        apart = apart_disks(whole)
        self._volumes = DiskVolumes(overrides, apart, problems)
        every = [use for uses in whole for use in uses if use.disk.name in apart]
        check_maps(overrides, self._disks, [(self._volumes.name(use), use.disk.text) for use in every])
        self._elapsed_s = float(setup.run_s) or overrides.elapsed_s or 0.0

    def _uses(self, row: Sequence[Assignment], shape: RunShape) -> list[DiskUse]:
        return [
            DiskUse(
                one.number,
                one.worker,
                self._disks[one.worker.manager, key],
                one.specification,
                shape.depth or one.worker.outstanding,
            )
            for one, count in zip(row, shape.targets, strict=True)
            for key in _targets(one.worker)[:count]
        ]

    def step(self, row: Sequence[Assignment], shape: RunShape) -> PlanStep | None:
        """The step of one run; None after a problem was noted."""
        setup, uses = self._setup, self._uses(row, shape)
        volumes = self._volumes.make(uses)
        own = {one.number: [use for use in uses if use.number == one.number] for one in row}
        active = [one for one in row if own[one.number]]
        for one in active:
            slots = sum(use.depth for use in own[one.number])
            check_pauses(one.worker, one.specification, slots, self._problems)
            self._notice(one, own[one.number], uses)
        if volumes is None or not active:
            return None
        first = active[0].specification
        others = len({one.specification.name for one in active}) - 1
        name = f"{first.name}+{others}" if others else first.name
        words = " ".join([name, *(f"{key}={text}" for key, text in shape.loops)])
        label = unused_name(words, self._labels, " #")
        spec = RunSpec(
            name=label,
            seed=self._seed,
            volumes=tuple(volumes),
            streams=tuple(
                stream_of(
                    one.name,
                    one.worker,
                    one.specification,
                    [self._volumes.name(use) for use in own[one.number]],
                )
                for one in active
            ),
            elapsed_s=self._elapsed_s,
            warmup_s=float(setup.ramp_s),
            interval_s=1.0 if self._elapsed_s >= 2 else self._elapsed_s / 2,
        )
        workers = tuple(
            IometerWorker(
                stream=one.name,
                specification=one.specification.name,
                lines=tuple(line.text for line in one.specification.lines),
                targets={self._volumes.name(use): use.disk.text for use in own[one.number]},
                manager=self._labels_of[one.worker.manager],
            )
            for one in active
        )
        run = PlannedRun(
            spec=spec,
            name=name,
            label=label,
            loops=shape.loops,
            iometer=IometerTest(setup.kind.number, setup.description, self._manager, workers),
            source=str(first.place),
        )
        return PlanStep(run, Rate("max"))

    def _notice(self, one: Assignment, own: Sequence[DiskUse], uses: Sequence[DiskUse]) -> None:
        """What may surprise in the load of a worker."""
        specification, problems = one.specification, self._problems
        first, shown = specification.lines[0], shorten(specification.name)
        if any(line.random_percent and not line.align_bytes for line in specification.lines):
            message = (
                f"{shown}: align 0: random places are on sectors of 512 bytes, as in Iometer, also where "
                "storage has blocks of 4096 bytes inside; a volume with 4096-byte sectors refuses it: "
                "write 4096 as align"
            )
            problems.notice(first.place, message)
        if read_percent(specification.lines) < 100 and not one.worker.pattern:
            message = (
                f"{shown}: writes repeat one byte, as in Iometer (Data pattern 0): "
                "an array that compresses stores little of them"
            )
            problems.notice(first.place, message)
        if one.worker.transactions is not None:
            message = (
                f"worker {shorten(one.worker.name)}: test connection rate: after every "
                f"{plural(one.worker.transactions, 'I/O')} on a target, once none is in flight, it is closed and "
                "opened again, and sequential I/Os begin at its start; the session to a LUN stays"
            )
            problems.notice(one.worker.place, message)
        if random_percent(specification.lines) < 100:
            for use in own:
                sharing = len({other.number for other in uses if other.disk is use.disk})
                if sharing > 1:
                    message = (
                        f"{sharing} workers go through {use.disk.name}, each from a position of its own, as "
                        "in Iometer: a cache may answer most of it"
                    )
                    problems.notice(use.disk.place, message)
