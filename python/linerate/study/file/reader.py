"""Reads a study file: checks it against `file_model`, reads the topologies and workloads that it names, resolves cases.

Errors name file, line and key; all of them are reported at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from linerate.analysis.metric import LARGEST_LOAD
from linerate.analysis.verdict import METRICS, find_metric, shipped_claims
from linerate.cluster import PortRange
from linerate.errors import UserError
from linerate.lab.cpu.idle import WAIT
from linerate.san import Topology, load_topology
from linerate.settings import FAULTS, faults_text
from linerate.studies import STUDIES, SUFFIX, named
from linerate.study.file.backup import backup_of, spec_of, unfit_backups
from linerate.study.file.factors import combinations
from linerate.study.file.hosts import (
    real_host,
    unfit_hosts,
    unfit_load_array,
    unfit_load_host,
    volumes_there,
)
from linerate.study.file.model import CaseTable, ClaimTable, SanTable, StudyFile, WorkloadTable
from linerate.study.file.scale import scale_of, unfit_for_scale, unfit_without_scale
from linerate.study.laboratory.settings import check_on, check_setting
from linerate.study.model import Case, ClaimTest, Repeat, San, Scale, SettingValue, Study, Workload
from linerate.study.plan import StudyPlan, StudyStep
from linerate.toml_lines import Key, key_lines, line_of
from linerate.workload import LunMap, Overrides, PlannedRun, RunSpec, load_workload
from linerate.workload.problems import Problems, SourceLocation
from linerate.workload.toml_read import checked, key_text, read_text
from linerate.workload.url import is_volume, without_secret

_KIND = "study file"
_STAND_IN = "null:1t"
_INTERVALS_MIN = 4
Change = Callable[[StudyFile], StudyFile]


def shipped_studies() -> tuple[str, ...]:
    """Names of the studies that come with Linerate."""
    return tuple(sorted(path.stem for path in STUDIES.glob(f"*{SUFFIX}") if is_study(path)))


def is_study(path: Path) -> bool:
    """Whether a file is meant as a study: it has a [[san]], which no workload file has."""
    try:
        lines = key_lines(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return False
    return ("san",) in lines


def study_schema() -> dict[str, Any]:
    """The JSON Schema of a study file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **StudyFile.model_json_schema()}


def load_study(
    name_or_path: str | Path,
    *,
    quick: bool = False,
    seed: int | None = None,
    blocks: int | None = None,
    change: Change | None = None,
) -> Study:
    """A study file, or a shipped study by its name.

    `quick` scales its times and its number of blocks down as the file's [quick] says; `seed` replaces the file's;
    `blocks` replaces the file's number of blocks; `change` is done to the file before it is resolved. Raises UserError
    with everything that is wrong.
    """
    path = _study_path(str(name_or_path))
    text = read_text(path, _KIND)
    return parse_study(
        text,
        str(path),
        name=path.stem,
        folder=path.parent,
        quick=quick,
        seed=seed,
        blocks=blocks,
        change=change,
    )


def _study_path(word: str) -> Path:
    path = Path(word)
    if path.is_file():
        return path
    shipped = named(word)
    if shipped is not None and is_study(shipped):
        return shipped
    if is_volume(word):
        raise UserError(
            f"{without_secret(word)}: a volume, not a study",
            "a study file names the volumes of its hosts; `linerate run` loads a volume by --target",
        )
    if (path / "study.json").is_file():
        raise UserError(
            f"{word}: a directory with results",
            f"`linerate study resume {word}` goes on with it, `linerate report {word}` shows them",
        )
    raise UserError(f"{word}: no such study", f"give a study file, or one of {', '.join(shipped_studies())}")


def parse_study(
    text: str,
    shown: str = _KIND,
    *,
    name: str = "study",
    folder: Path = STUDIES,
    quick: bool = False,
    seed: int | None = None,
    blocks: int | None = None,
    change: Change | None = None,
) -> Study:
    """The study of a text; `shown` is the file's name in messages, `name` is used if it has none."""
    problems = Problems()
    file = checked(text, shown, StudyFile, _KIND, problems)
    if change is not None:
        file = change(file)
    reader = _Reader(file, shown, key_lines(text), problems, folder, quick, blocks)
    study = reader.study(file.name or name, file.seed if seed is None else seed)
    problems.raise_if_any()
    assert study is not None
    return study


@dataclass(slots=True)
class _Reader:
    file: StudyFile
    shown: str
    lines: dict[Key, int]
    problems: Problems
    folder: Path
    quick: bool
    blocks: int | None
    sans: list[San] = field(default_factory=list)
    kept: tuple[str, ...] = ()
    """Workloads that are run."""

    def study(self, name: str, seed: int) -> Study | None:
        self.sans = [self._san(("san", index), table) for index, table in enumerate(self.file.san)]
        self._once("san", [san.name for san in self.sans])
        if len({bool(san.hosts) for san in self.sans}) > 1:
            self._error(("san",), "topologies and hosts in one study", "compare like with like: two studies")
        known = [table.name for table in self.file.workload]
        patterns = self.file.quick.workloads if self.quick else ("*",)
        self.kept = self._pick(("quick", "workloads"), patterns, known, "workload")
        tables = enumerate(self.file.workload)
        read = [self._workload(("workload", index), one) for index, one in tables if one.name in self.kept]
        workloads = [workload for workload in read if workload is not None]
        self._once("workload", known)
        every = self._cases()
        self._once("case", [case.name for case in every])
        for index, one in enumerate(self.file.workload):
            self._pick(("workload", index, "cases"), one.cases, [case.name for case in every], "case")
        for key, wrong, accepted in unfit_backups(self.file, workloads, self.sans):
            self._error(key, wrong, accepted)
        claims = self._claims(every)
        scale = self._scale(workloads)
        if self.problems.errors:
            return None
        cases = [case for case in every if case.workloads]
        if len(cases) < 2:
            self._error(("quick", "workloads"), "no case runs under any of these", "keep more of them")
            return None
        names = {case.name for case in cases}
        study = Study(
            name=name,
            title=self.file.title,
            description=self.file.description,
            margin=self.file.margin_percent / 100,
            seed=seed,
            quick=self.quick,
            sans=tuple(san for san in self.sans if any(one.san == san.name for one in workloads)),
            workloads=tuple(workloads),
            cases=tuple(cases),
            claims=tuple(test for test in claims if {test.case, test.against} <= names),
            repeat=self._repeat(),
            scale=scale,
        )
        if (what := StudyPlan(study).too_long(study.repeat.blocks_max)) is not None:
            self._error(("repeat", "blocks_max"), what, "ask for fewer blocks, cases or workloads")
            return None
        self._check_distinct(study)
        self._can_be_had(study)
        return study

    def _can_be_had(self, study: Study) -> None:
        """Hosts are of a SAN, paths and faults of a topology and of a run's length."""
        numbers = {table.name: number for number, table in enumerate(self.file.case)}
        for case in study.cases:
            key: Key = ("case", numbers[case.name]) if case.name in numbers else ("baseline",)
            for workload in map(study.workload, case.workloads):
                san, settings = study.san(workload.san), study.settings(workload.san, case.name)
                for unfit in (unfit_load_host, unfit_load_array):
                    for what, accepted in unfit(san, workload, settings):
                        self._error(key, what, accepted)
                topology = san.topology
                if topology is None or workload.spec is None:
                    continue
                try:
                    check_on(topology, settings, workload.elapsed_s)
                except UserError as error:
                    self._error(key, f"under {workload.name}: {error.message}", error.hint)

    def _check_distinct(self, study: Study) -> None:
        """Steps whose names come to one key would be taken for one step: all but the first would never run."""
        keys: dict[str, StudyStep] = {}
        for step in StudyPlan(study).block(1):
            other = keys.setdefault(step.key, step)
            if other is not step:
                self._error(
                    ("case",),
                    f"{other.workload}, {other.case} and {step.workload}, {step.case} come to one run name, {step.key}",
                    "let names differ in letters or digits",
                )

    def _error(self, key: Key, what: str, accepted: str = "") -> None:
        shown_key = key_text(key)
        self.problems.error(
            SourceLocation(self.shown, line_of(self.lines, key)),
            f"{shown_key}: {what}" if shown_key else what,
            accepted,
        )

    def _once(self, kind: str, names: Sequence[str]) -> None:
        for name in (name for name, number in Counter(names).items() if number > 1):
            self._error((kind,), f"{name} is named twice", "give each its own name")

    def _san(self, key: Key, table: SanTable) -> San:
        hosts = tuple(real_host(host) for host in table.host)
        for what, accepted in unfit_hosts(hosts):
            self._error((*key, "host"), what, accepted)
        topology: Topology | None = None
        if (table.topology is None) == (not hosts):
            self._error(key, "a topology or hosts", 'write topology = "base-san", or [[san.host]] tables')
        elif table.topology is not None:
            topology = self._topology((*key, "topology"), table.topology)
        name = table.name or (topology.name if topology else "hosts")
        if table.clock == "virtual" and not _is_computable(topology):
            what = "needs a topology with one array, and disks in it"
            self._error((*key, "clock"), f"virtual {what}", 'write clock = "real"')
        if table.control_ports is not None:
            try:
                PortRange.parse(table.control_ports)
            except UserError as error:
                self._error((*key, "control_ports"), error.message, error.hint)
        self._check_settings((*key, "settings"), table.settings)
        return San(
            name=name,
            topology=topology,
            hosts=hosts,
            fabric=table.fabric,
            clock=table.clock,
            settings=table.settings,
            control_address=table.control_address,
            control_ports=table.control_ports,
        )

    def _topology(self, key: Key, name: str) -> Topology | None:
        beside = self.folder / name
        try:
            return load_topology(beside if beside.is_file() else name)
        except UserError as error:
            self._error(key, error.message, error.hint)
            return None

    def _workload(self, key: Key, table: WorkloadTable) -> Workload | None:
        san = self._san_of(key, table)
        if san is None:
            return None
        elapsed_s = self.file.quick.elapsed if self.quick else table.elapsed
        until_steady = table.warm_up == "steady" and not self.quick
        warmup_s = table.warm_up_max if table.warm_up == "steady" else table.warm_up
        if self.quick:
            warmup_s = min(self.file.quick.warm_up, warmup_s)
        metric = self._metric(key, table)
        known = [stream.name for stream in san.topology.lan] if san.topology else []
        for name in table.lan:
            if name not in known:
                there = f"there is {', '.join(known)}" if known else f"{san.name} has none"
                self._error((*key, "lan"), f"no LAN stream {name}", there)
        if table.file is None and not table.lan and table.backup is None:
            self._error(key, "neither a file nor lan", "name a workload file, LAN streams, or both")
        if table.file is None and table.warm_up == "steady":
            self._error(
                (*key, "warm_up"), "LAN traffic alone has no I/O rate to become steady", 'write a time, "10s"'
            )
        spec = None if table.file is None else self._spec(key, table, san, elapsed_s, warmup_s)
        backup = None if table.backup is None else backup_of(table.backup)
        if backup is not None:
            spec = spec_of(table.name, backup, elapsed_s)
        return Workload(
            name=table.name,
            title=table.title or table.name,
            san=san.name,
            metric=metric,
            spec=spec,
            backup=backup,
            lan=table.lan,
            elapsed_s=spec.elapsed_s if spec else elapsed_s,
            warmup_s=spec.warmup_s if spec else warmup_s,
            until_steady=until_steady,
        )

    def _metric(self, key: Key, table: WorkloadTable) -> str:
        if self.file.scale is not None:
            if table.metric not in (None, LARGEST_LOAD):
                self._error((*key, "metric"), f"{table.metric}, and the file has [scale]", "leave it out")
            return LARGEST_LOAD
        if table.metric is None:
            self._error((*key, "metric"), "missing", f"one of {', '.join(METRICS)}")
            return ""
        try:
            find_metric(table.metric)
        except UserError as error:
            self._error((*key, "metric"), error.message, error.hint)
        if table.metric == LARGEST_LOAD:
            self._error((*key, "metric"), f"{LARGEST_LOAD} is of searches", "add a [scale] table")
        return table.metric

    def _scale(self, workloads: Sequence[Workload]) -> Scale | None:
        table = self.file.scale
        if table is None:
            for one, what, accepted in unfit_without_scale(self.file):
                self._error(one, what, accepted)
            return None
        unfit = list(unfit_for_scale(self.file, workloads, self.sans, self.blocks))
        for one, what, accepted in unfit:
            self._error(one, what, accepted)
        return None if unfit else scale_of(table, workloads, self.sans)

    def _san_of(self, key: Key, table: WorkloadTable) -> San | None:
        if table.san is None:
            return self.sans[0]
        found = next((san for san in self.sans if san.name == table.san), None)
        if found is None:
            self._error(
                (*key, "san"),
                f"there is no SAN {table.san}",
                f"there is {', '.join(san.name for san in self.sans)}",
            )
        return found

    def _spec(
        self, key: Key, table: WorkloadTable, san: San, elapsed_s: float, warmup_s: float
    ) -> RunSpec | None:
        run = self._run_of(key, table, elapsed_s, warmup_s)
        if run is None:
            return None
        smallest = (
            min((volume.size_bytes for array in san.topology.arrays for volume in array.volumes), default=0)
            if san.topology
            else 0
        )
        there = volumes_there(san)
        # Where there is no network, workload volumes may share an array's volume.
        is_shared = san.clock == "virtual" and there > 0 and len(run.spec.volumes) % there == 0
        if len(run.spec.volumes) > there and not is_shared:
            self._error(
                (*key, "file"),
                f"{len(run.spec.volumes)} volumes are needed and {san.name} has {there}",
                "give its arrays more volumes, or take a workload with fewer",
            )
        spec = run.spec.model_copy(update={"name": table.name})
        if san.topology and spec.wait == "auto":
            spec = spec.model_copy(update={"wait": WAIT})
        if table.size is None and smallest:
            used = tuple(
                volume.model_copy(update={"size_bytes": min(volume.size_bytes or smallest, smallest)})
                for volume in spec.volumes
            )
            spec = spec.model_copy(update={"volumes": used})
        return spec

    def _run_of(self, key: Key, table: WorkloadTable, elapsed_s: float, warmup_s: float) -> PlannedRun | None:
        assert table.file is not None
        beside, shipped = self.folder / table.file, STUDIES / table.file
        if not (beside.exists() or shipped.exists()):
            what = f"there is no workload file {beside}, and no shipped one of this name"
            self._error((*key, "file"), what, "give its path, counted from the folder of the study file")
            return None
        overrides = Overrides(
            elapsed_s=elapsed_s,
            warmup_s=warmup_s,
            interval_s=min(table.interval, elapsed_s / _INTERVALS_MIN),
            size_bytes=table.size,
            outstanding=table.outstanding,
            luns=LunMap({"*": _STAND_IN}),
        )
        try:
            plan = load_workload(beside if beside.is_file() else shipped, overrides=overrides)
        except UserError as error:
            self._error((*key, "file"), error.message, error.hint)
            return None
        if plan.hosts is not None:
            what = f"{table.file} names the hosts of its load, which a study names itself"
            self._error(
                (*key, "file"), what, "leave the hd= lines out of the file, and write [[san.host]] tables"
            )
            return None
        runs = {run.label: run for run in plan.steps() if table.run in (None, run.name, run.label)}
        if len(runs) == 1:
            return next(iter(runs.values()))
        names = ", ".join(dict.fromkeys(run.label for run in plan.steps()))
        self._error(
            (*key, "run"), f"{len(runs)} runs of {table.file} are meant, not one", f"name one of {names}"
        )
        return None

    def _cases(self) -> list[Case]:
        baseline = self.file.baseline
        if self.file.case and self.file.factors:
            self._error(("factors",), "[[case]] and [factors]", "give the one or the other")
        elif not self.file.case and not self.file.factors:
            self._error((), "nothing is compared", "add [[case]] tables, or [factors]")
        if self.file.factors:
            return self._factorial()
        common = _settings_of(baseline)
        self._check_settings(("baseline", "settings"), common)
        cases = [self._case(("baseline",), baseline, common, ())]
        for index, table in enumerate(self.file.case):
            key: Key = ("case", index)
            own = _settings_of(table)
            self._check_settings((*key, "settings"), own)
            changed = tuple(name for name, value in own.items() if common.get(name) != value)
            if own and not changed:
                self._error(
                    (*key, "settings"),
                    "nothing differs from the baseline",
                    "change a setting; a case without settings compares the baseline with itself",
                )
            cases.append(self._case(key, table, {**common, **own}, changed))
        return cases

    def _check_settings(self, key: Key, settings: Mapping[str, SettingValue]) -> None:
        for name, value in settings.items():
            try:
                check_setting(name, value)
            except UserError as error:
                self._error(key, error.message, error.hint)

    def _factorial(self) -> list[Case]:
        baseline, common = self.file.baseline, _settings_of(self.file.baseline)
        for name, values in self.file.factors.items():
            for value in values:
                self._check_settings(("factors", name), {name: value})
        cases: list[Case] = []
        try:
            for settings in combinations(self.file.factors, self.file.factorial.fraction):
                table = baseline
                changed = tuple(
                    name for name, value in settings.items() if value != self.file.factors[name][0]
                )
                if cases:
                    named = " ".join(f"{name}={_text(settings[name])}" for name in changed)
                    table = baseline.model_copy(update={"name": named, "title": named})
                cases.append(self._case(("baseline",), table, {**common, **settings}, changed))
        except UserError as error:
            self._error(("factorial", "fraction"), error.message, error.hint)
        return cases

    def _claims(self, cases: Sequence[Case]) -> list[ClaimTest]:
        baseline, names, known = self.file.baseline, [case.name for case in cases], shipped_claims()
        tables: list[tuple[Key, CaseTable]] = [(("baseline",), baseline)]
        tables += [(("case", index), table) for index, table in enumerate(self.file.case)]
        tests = [
            ((*key, "claims"), ClaimTest(claim=claim, case=table.name, against=baseline.name))
            for key, table in tables
            for claim in table.claims
        ]
        tests += [
            (("claim", index), self._claim(("claim", index), table))
            for index, table in enumerate(self.file.claim)
        ]
        for key, test in tests:
            if test.claim not in known:
                close = ", ".join(get_close_matches(test.claim, known, n=3))
                self._error(key, f"there is no claim {test.claim}", f"is it {close}?" if close else "")
            for name in (test.case, test.against):
                if name not in names:
                    self._error(key, f"there is no case {name}", f"there is {', '.join(names)}")
        return [test for _, test in tests]

    def _claim(self, key: Key, table: ClaimTable) -> ClaimTest:
        every = [workload.name for workload in self.file.workload]
        named = self._pick((*key, "workloads"), table.workloads, every, "workload")
        workloads = () if len(named) == len(every) else named
        return ClaimTest(claim=table.id, case=table.case, against=table.against, workloads=workloads)

    def _case(
        self, key: Key, table: CaseTable, settings: Mapping[str, SettingValue], changed: tuple[str, ...]
    ) -> Case:
        return Case(
            name=table.name,
            title=table.title or table.name,
            settings=dict(settings),
            changed=changed,
            workloads=self._workloads_of((*key, "workloads"), table),
            source=table.source,
        )

    def _workloads_of(self, key: Key, table: CaseTable) -> tuple[str, ...]:
        """Those that the case names, are kept, and name the case; the baseline runs under all that it names."""
        tables = self.file.workload
        named = self._pick(key, table.workloads, [one.name for one in tables], "workload")
        asked = {one.name for one in tables if any(_fits(table.name, pattern) for pattern in one.cases)}
        if table.name == self.file.baseline.name:
            asked.update(named)
        return tuple(name for name in named if name in asked and name in self.kept)

    def _pick(self, key: Key, patterns: Sequence[str], known: Sequence[str], kind: str) -> tuple[str, ...]:
        picked: list[str] = []
        for pattern in patterns:
            found = [name for name in known if _fits(name, pattern)]
            if not found:
                self._error(key, f"{pattern!r}: there is no such {kind}", f"there is {', '.join(known)}")
            picked += [name for name in found if name not in picked]
        return tuple(picked)

    def _repeat(self) -> Repeat:
        table = self.file.repeat
        if self.file.scale is not None:
            settle_s = min(self.file.quick.settle, table.settle) if self.quick else table.settle
            return Repeat(blocks_min=1, blocks_max=1, settle_s=settle_s, baselines=1)
        if self.quick or self.blocks is not None:
            blocks = self.blocks or self.file.quick.blocks
            settle_s = min(self.file.quick.settle, table.settle) if self.quick else table.settle
            baselines = (self.file.quick.baselines if self.quick else None) or table.baselines
            return Repeat(
                blocks_min=blocks,
                blocks_max=blocks,
                settle_s=settle_s,
                baselines=baselines,
            )
        if table.blocks_max < table.blocks_min:
            self._error(("repeat", "blocks_max"), "less than blocks_min", f"at least {table.blocks_min}")
        return Repeat(
            blocks_min=table.blocks_min,
            blocks_max=table.blocks_max,
            budget_s=table.budget,
            settle_s=table.settle,
            baselines=table.baselines,
        )


def _settings_of(table: CaseTable) -> dict[str, SettingValue]:
    """A case's faults are a setting like its others."""
    if table.faults is None:
        return dict(table.settings)
    return {**table.settings, FAULTS: faults_text(one.fault() for one in table.faults)}


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is the pattern, or begins like it where it ends in `*`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _is_computable(topology: Topology | None) -> bool:
    """Whether a topology has all that there is in modelled time, and knows how long it takes."""
    return topology is not None and len(topology.arrays) == 1 and topology.arrays[0].storage is not None


def _text(value: SettingValue) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
