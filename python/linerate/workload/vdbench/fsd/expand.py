"""From FSDs, FWDs and RDs to steps: which structures, workloads, loops and rates each run has.

The rules are those of vdbench's source (5.04.06):

- A workload is an FWD on one of its FSDs with one operation. The threads of an FWD are divided by the number of its
  FSDs and of the RD's operations; each workload has one at least. So is its skew.
- Workloads without skew share evenly what is left of 100 %.
- A format is a run of its own before each pass of the RD's loops, on the FSDs that the pass uses. It has 8 threads for
  each FSD and blocks of 128k, unless fwd=format says otherwise. Loops over threads and sizes of blocks do not
  change it.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from linerate.quantity import number_text, size_text
from linerate.workload.files import (
    FileOp,
    FileRateSpec,
    FilesLoadSpec,
    FilesRunSpec,
    FileWorkSpec,
    FormatSpec,
    StructureSpec,
)
from linerate.workload.files.results import streams_of, volume_of
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RUNS_MAX, UNTIL_DONE_S, PlannedRun, PlanStep
from linerate.workload.problems import Problems
from linerate.workload.url import is_share
from linerate.workload.vdbench.fsd.data import DataUse, FileData, read_data
from linerate.workload.vdbench.fsd.hosts import FileHosts
from linerate.workload.vdbench.fsd.settings import COPYING, FileLoop, FileRd, Fsd, Fwd, LoopValue, Sizes
from linerate.workload.vdbench.hosts import HostDefinitions
from linerate.workload.vdbench.settings import General
from linerate.workload.vdbench.values import MAX_RATE, matches

_FORMAT_SIZES: Sizes = ((128 << 10, 100.0),)
_FORMAT_THREADS = 8
_MAXIMUM = "max"

Values = Mapping[str, LoopValue]


@dataclass(frozen=True, slots=True)
class FileWorkload:
    """All settings of a file with FSDs."""

    general: General
    hosts: HostDefinitions
    fsds: Sequence[Fsd]
    fwds: Sequence[Fwd]
    rds: Sequence[FileRd]


def expand_files(workload: FileWorkload, overrides: Overrides, problems: Problems) -> list[PlanStep]:
    """The steps of all RDs in order. Raises UserError for options of the command line that mean nothing here."""
    overrides.refuse_volume_settings("change the FSDs and FWDs of the file")
    general = workload.general
    where = workload.fsds[0].place if workload.fsds else workload.rds[0].place
    if general.format_sds:
        problems.error(where, "formatsds=yes goes with SDs", "write format=yes in the RD")
    use = DataUse(workload.fwds, workload.rds, len(workload.fsds), where)
    data = read_data(general, use, problems, verify=general.verify or overrides.verify == "on")
    expander = _Expander(workload, data, problems)
    steps: list[PlanStep] = []
    for rd in workload.rds:
        steps += expander.steps_of(rd, RUNS_MAX - len(steps))
    return steps


class _Expander:
    def __init__(self, workload: FileWorkload, data: FileData, problems: Problems) -> None:
        self._workload = workload
        self._data = data
        self._problems = problems
        self._formats = [fwd for fwd in workload.fwds if fwd.name == "format"]
        self._fwds = {fwd.name: fwd for fwd in workload.fwds if fwd.name != "format"}
        self._fsds = {fsd.name: fsd for fsd in workload.fsds}
        verify = data.verify_unit_bytes is not None
        self._hosts = FileHosts(workload.hosts, self._fsds, problems, verify)

    def steps_of(self, rd: FileRd, most: int) -> list[PlanStep]:
        """Those of one RD."""
        runs = math.prod((*(len(loop.values) for loop in rd.loops), len(rd.rates)))
        if runs * 2 > most:
            what = f"rd={rd.name}: {runs:,} runs; at most {RUNS_MAX:,} with their formats"
            self._problems.error(rd.place, what, "shorten the lists, or split the file")
            return []
        fwds = self._fwds_of(rd)
        return list(self._passes(rd, fwds)) if fwds else []

    def _fwds_of(self, rd: FileRd) -> list[Fwd]:
        found: list[Fwd] = []
        for pattern in rd.fwd_names:
            fits = [fwd for name, fwd in self._fwds.items() if matches(pattern, name)]
            if not fits:
                there = ", ".join(self._fwds) or "none"
                what = f"rd={rd.name}: fwd={pattern}: there is no such fwd"
                self._problems.error(rd.place, what, f"there is {there}")
            found += [fwd for fwd in fits if fwd not in found]
        if not rd.fwd_names:
            self._problems.error(rd.place, f"rd={rd.name}: no workload", "write fwd=name")
        return found

    def _passes(self, rd: FileRd, fwds: Sequence[Fwd]) -> Iterator[PlanStep]:
        is_first = True
        rates = FileLoop("fwdrate", rd.rates, tuple(map(_rate_text, rd.rates)))
        loops = (*rd.loops, rates) if len(rd.rates) > 1 else rd.loops
        for chosen in itertools.product(*(range(len(loop.values)) for loop in loops)):
            values: dict[str, LoopValue] = {
                loop.keyword: loop.values[index] for loop, index in zip(loops, chosen, strict=True)
            }
            texts = tuple(
                (loop.keyword, loop.texts[index]) for loop, index in zip(loops, chosen, strict=True)
            )
            structures = self._structures(rd, fwds, values)
            if not structures:
                return
            formatting = rd.formatting
            if formatting.wanted and (is_first or not formatting.once):
                own = {fwd.name: self._fsd_names(fwd) for fwd in fwds}
                used = {name for names in own.values() for name in names}
                formatted = [structure for structure in structures if structure.name in used]
                hosts = self._hosts.of_format(rd, {fwd.name: fwd for fwd in fwds}, formatted, own)
                if hosts is None:
                    return
                yield self._step_of(rd, values, texts, formatted, None, hosts)
            is_first = False
            if not formatting.only:
                works = self._works(rd, fwds, values, structures)
                if works is None:
                    return
                hosts = self._hosts.of_works(rd, self._fwds, works, structures)
                if hosts is None:
                    return
                yield self._step_of(rd, values, texts, structures, works, hosts)

    def _structures(self, rd: FileRd, fwds: Sequence[Fwd], values: Values) -> list[StructureSpec]:
        """Those that the FWDs use, targets too, in the order of the file."""
        names = {name for fwd in fwds for name in self._fsd_names(fwd)}
        names |= {fwd.target for fwd in fwds if fwd.target is not None}
        changed: dict[str, Any] = {
            key: int(value)
            for key, value in (
                ("depth", values.get("depth")),
                ("width", values.get("width")),
                ("files", values.get("files")),
                ("total_bytes", values.get("totalsize")),
                ("working_set_bytes", values.get("wss")),
            )
            if isinstance(value, float)
        }
        if isinstance(size := values.get("sizes"), float):
            changed["sizes"] = ((int(size), 100.0),)
        fsds = [replace(fsd, **changed) for fsd in self._workload.fsds if fsd.name in names]
        placed = [(fsd, _folder(fsd)) for fsd in fsds]
        for (outer, above), (inner, below) in itertools.permutations(placed, 2):
            if above == below:
                both = f"anchor={outer.anchor} and anchor={inner.anchor}"
                what = f"fsd={outer.name} and fsd={inner.name} have the same folder, {above} ({both})"
            elif below.startswith(f"{above}/"):
                what = f"fsd={inner.name}: its folder {below} is inside that of fsd={outer.name}, {above}"
            else:
                continue
            self._problems.error(inner.place, f"rd={rd.name}: {what}", "give each FSD a folder of its own")
            return []
        return [self._structure(fsd) for fsd in fsds]

    def _structure(self, fsd: Fsd) -> StructureSpec:
        return StructureSpec(
            name=fsd.name,
            anchor=fsd.anchor,
            user=fsd.user,
            secret=fsd.secret,
            depth=fsd.depth,
            width=fsd.width,
            files=fsd.files,
            sizes=fsd.sizes,
            files_in=fsd.files_in,
            total_bytes=fsd.total_bytes,
            working_set_bytes=fsd.working_set_bytes,
            create_anchor=self._workload.general.create_anchors,
        )

    def _fsd_names(self, fwd: Fwd) -> list[str]:
        found: list[str] = []
        for pattern in fwd.fsd_names or ():
            fits = [name for name in self._fsds if matches(pattern, name)]
            if not fits:
                there = ", ".join(self._fsds) or "none"
                what = f"fwd={fwd.name}: fsd={pattern}: there is no such fsd"
                self._problems.error(fwd.place, what, f"there is {there}")
            found += [name for name in fits if name not in found]
        if not fwd.fsd_names:
            self._problems.error(fwd.place, f"fwd={fwd.name}: no fsd=", "write fsd=name, (fsd1-fsd8) or fsd*")
        return found

    def _works(
        self, rd: FileRd, fwds: Sequence[Fwd], values: Values, structures: Sequence[StructureSpec]
    ) -> list[FileWorkSpec] | None:
        """The workloads of a run, with their shares; None after a problem was noted."""
        place = {structure.name: index for index, structure in enumerate(structures)}
        works: list[tuple[float, FileWorkSpec]] = []
        for fwd in fwds:
            operations = rd.operations or (fwd.operation,)
            if "operation" in values:
                operations = (cast("FileOp", values["operation"]),)
            names = self._fsd_names(fwd)
            read_percent = values.get("rdpct", fwd.read_percent)
            if read_percent is not None and not fwd.random_io:
                what = f"rd={rd.name}: rdpct= needs fileio=random in fwd={fwd.name}"
                self._problems.error(rd.place, what, "write fileio=random")
                return None
            if read_percent is not None:
                operations = self._mixed(rd, fwd, operations)
            if not self._targets_fit(rd, fwd, operations, names):
                return None
            threads = int(cast("float", values.get("threads", fwd.threads)))
            parts = len(operations) * len(names)
            for name, operation in itertools.product(names, operations):
                works.append(
                    (
                        (fwd.skew or 0.0) / parts,
                        self._work(rd, fwd, values, (place, name), operation, max(1, threads // parts)),
                    )
                )
        return self._with_shares(rd, works)

    def _mixed(self, rd: FileRd, fwd: Fwd, operations: Sequence[FileOp]) -> tuple[FileOp, ...]:
        """What an FWD with rdpct= does. vdbench asks for rdpct= first, and for operation= only without it."""
        others = [operation for operation in operations if operation not in ("read", "write")]
        if others:
            what = f"fwd={fwd.name}: with rdpct= it reads and writes its files, as in vdbench: no {', '.join(others)}"
            self._problems.notice(rd.place, what)
        return tuple("read" if operation in others else operation for operation in operations)

    def _targets_fit(self, rd: FileRd, fwd: Fwd, operations: Sequence[FileOp], names: Sequence[str]) -> bool:
        """Whether what copies has a target of the same structure."""
        copying = [operation for operation in operations if operation in COPYING]
        if not copying:
            return True
        if fwd.target is None:
            what = f"rd={rd.name}: operations={copying[0]} needs target= in fwd={fwd.name}"
            self._problems.error(rd.place, what, "write target=name, the FSD that files go to")
            return False
        for name in names:
            one, other = self._fsds[name], self._fsds.get(fwd.target)
            if other is None:
                there = ", ".join(self._fsds) or "none"
                what = f"fwd={fwd.name}: target={fwd.target}: there is no such fsd"
                self._problems.error(fwd.place, what, f"there is {there}")
                return False
            if one.name == other.name or not _same_files(one, other):
                what = f"fwd={fwd.name}: target={other.name} needs the structure of fsd={one.name}, in another anchor"
                accepted = "give both the same depth, width, files, sizes, distribution and totalsize"
                self._problems.error(fwd.place, what, accepted)
                return False
        return True

    def _work(
        self,
        rd: FileRd,
        fwd: Fwd,
        values: Values,
        structure: tuple[Mapping[str, int], str],
        operation: FileOp,
        threads: int,
    ) -> FileWorkSpec:
        """`structure` is the places of all, and the name of this one."""
        places, name = structure
        flags = rd.flags or fwd.flags or self._fsds[name].flags
        size = values.get("xfersize")
        read_percent = values.get("rdpct", fwd.read_percent)
        return FileWorkSpec(
            name=fwd.name,
            structure=places[name],
            operation=operation,
            target=places[fwd.target] if operation in COPYING and fwd.target is not None else None,
            read_percent=cast("float | None", read_percent),
            random_io=fwd.random_io,
            shared_files=fwd.shared_files,
            select=fwd.select,
            sizes=((int(size), 100.0),) if isinstance(size, float) else fwd.sizes,
            threads=threads,
            share_percent=1.0,
            stop_after_blocks=fwd.stop_after_blocks,
            stop_after_percent=fwd.stop_after_percent,
            direct=bool(flags and flags.direct),
            durable=bool(flags and flags.durable),
        )

    def _with_shares(
        self, rd: FileRd, works: Sequence[tuple[float, FileWorkSpec]]
    ) -> list[FileWorkSpec] | None:
        asked = math.fsum(skew for skew, _ in works)
        without = sum(1 for skew, _ in works if not skew)
        rest = (100.0 - asked) / without if without else 0.0
        if (without and rest <= 0) or (not without and abs(asked - 100) > 0.0001):
            what = f"rd={rd.name}: the skew of its FWDs adds up to {asked:g}, not 100"
            self._problems.error(rd.place, what, "change skew= of the FWDs")
            return None
        return [work.model_copy(update={"share_percent": skew or rest}) for skew, work in works]

    def _step_of(
        self,
        rd: FileRd,
        values: Values,
        texts: tuple[tuple[str, str], ...],
        structures: Sequence[StructureSpec],
        works: Sequence[FileWorkSpec] | None,
        hosts: tuple[tuple[str, ...], ...],
    ) -> PlanStep:
        """A run, or without workloads its format."""
        is_format = works is None
        name = f"format_for_{rd.name}" if is_format else rd.name
        label = " ".join((name, *(f"{keyword}={text}" for keyword, text in texts)))
        spec = self._spec(rd, values, label, structures, works).model_copy(update={"hosts": hosts})
        rate = _MAXIMUM if is_format else _rate_text(cast("float", values.get("fwdrate", rd.rates[0])))
        warmup_text = f" warmup={number_text(rd.times.warmup_s)}" if rd.times.warmup_s else ""
        timing = f"elapsed={number_text(rd.times.elapsed_s)}{warmup_text}"
        if is_format:
            timing = "" if rd.formatting.limited else f"until it has {_contents_text(structures)}"
        run = PlannedRun(
            spec=spec,
            name=name,
            label=label,
            loops=texts,
            rate_text=rate,
            timing_text=timing,
            pause_s=0.0 if is_format else rd.pause_s,
            start_commands=rd.start_commands,
            end_commands=rd.end_commands,
            error_limit=self._workload.general.error_limit,
            histogram_us=self._workload.general.histogram_us,
            ends_when_done=is_format and not rd.formatting.limited,
            source=str(rd.place),
        )
        return PlanStep(run)

    def _spec(
        self,
        rd: FileRd,
        values: Values,
        label: str,
        structures: Sequence[StructureSpec],
        works: Sequence[FileWorkSpec] | None,
    ) -> FilesLoadSpec:
        times, formatting = rd.times, rd.formatting
        is_format = works is None
        is_endless = is_format and not formatting.limited
        chosen = self._format_works(rd, structures) if works is None else list(works)
        rate = cast("float", values.get("fwdrate", rd.rates[0]))
        is_paced = not is_format and rate != MAX_RATE
        measured_s = (
            times.elapsed_s if times.warmup_s else max(times.elapsed_s - times.interval_s, times.interval_s)
        )
        if is_format:
            measured_s = UNTIL_DONE_S if is_endless else times.elapsed_s
        streams = streams_of(chosen, structures)
        files = FilesRunSpec(
            elapsed_s=None if is_endless else measured_s,
            interval_s=times.interval_s,
            structures=tuple(structures),
            workloads=tuple(chosen),
            streams=tuple(stream for stream, _ in streams),
            rate=FileRateSpec(per_s=rate, process=rd.process) if is_paced else None,
            format=FormatSpec(delete=formatting.delete, folders=not formatting.clean, files=formatting.files)
            if is_format
            else None,
            compression_ratio=cast("float | None", values.get("compratio", self._data.compression_ratio)),
            dedup=self._data.dedup,
            verify_unit_bytes=self._data.verify_unit_bytes,
        )
        return FilesLoadSpec(
            name=label,
            verify="off" if self._data.verify_unit_bytes is None else "on",
            warmup_s=0.0 if is_format else times.warmup_s or times.interval_s,
            elapsed_s=measured_s,
            interval_s=times.interval_s,
            volumes=tuple(volume_of(index, structures[index], chosen) for index in range(len(structures))),
            streams=tuple(stream for _, stream in streams),
            files=files,
            shared=tuple(one.name for one in structures if self._fsds[one.name].shared),
        )

    def _format_works(self, rd: FileRd, structures: Sequence[StructureSpec]) -> list[FileWorkSpec]:
        """One for each structure."""
        own = self._formats[-1] if self._formats else None
        first = own.sizes[0][0] if own and own.sizes != ((4096, 100.0),) else _FORMAT_SIZES[0][0]
        works: list[FileWorkSpec] = []
        for index, structure in enumerate(structures):
            flags = rd.flags or (own.flags if own else None) or self._fsds[structure.name].flags
            works.append(
                FileWorkSpec(
                    name="format",
                    structure=index,
                    operation="write",
                    sizes=((first, 100.0),),
                    threads=own.threads if own else _FORMAT_THREADS,
                    share_percent=100.0 / len(structures),
                    direct=bool(flags and flags.direct),
                    durable=bool(flags and flags.durable),
                )
            )
        return works


def _folder(fsd: Fsd) -> str:
    """The folder of an anchor without symbolic links or `..`, as this host knows them, or the URL of a share."""
    return fsd.anchor.rstrip("/") if is_share(fsd.anchor) else os.path.realpath(fsd.anchor).rstrip("/")


def _same_files(one: Fsd, other: Fsd) -> bool:
    """Whether two FSDs have the same folders and files."""

    def shape(fsd: Fsd) -> tuple[object, ...]:
        return (fsd.depth, fsd.width, fsd.files, fsd.sizes, fsd.files_in, fsd.total_bytes)

    return shape(one) == shape(other)


def _contents_text(structures: Sequence[StructureSpec]) -> str:
    """Such as `1,200 files, about 4.7g`."""
    files = sum(structure.file_count for structure in structures)
    size = sum(structure.mean_bytes for structure in structures)
    is_exact = all(len(one.sizes) == 1 and one.sizes[0][1] and not one.total_bytes for one in structures)
    return f"{files:,} file{'' if files == 1 else 's'}, {size_text(size) if is_exact else f'about {_rounded(size)}'}"


def _rounded(size_bytes: int) -> str:
    """Three digits with a 1024-based suffix."""
    power = min((size_bytes.bit_length() - 1) // 10, 4) if size_bytes else 0
    return f"{float(f'{size_bytes / 1024**power:.3g}'):g}{('', 'k', 'm', 'g', 't')[power]}"


def _rate_text(rate: float) -> str:
    return _MAXIMUM if rate == MAX_RATE else f"{rate:.10g}"
