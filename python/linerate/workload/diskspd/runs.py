"""Commands as the steps of a plan: each command is a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from linerate.workload.diskspd.settings import CommandSettings
from linerate.workload.diskspd.volumes import CommandVolumes, disk_names
from linerate.workload.fio.volumes import unused_name
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RUNS_MAX, UNCONTROLLED, PlannedRun, PlanStep, Rate
from linerate.workload.problems import Problems
from linerate.workload.spec import ByteSpan, RunSpec, SizeMix, StreamSpec, ThinkTime, VolumeSpec
from linerate.workload.units import number_text, size_text

_PATTERN_RATIO = 512.0
"""Write data of a repeated pattern: as compressible as the data plane makes it."""


def steps_of(commands: Sequence[CommandSettings], overrides: Overrides, problems: Problems) -> list[PlanStep]:
    """The steps in order; empty after a problem was noted."""
    if len(commands) > RUNS_MAX:
        problems.error(commands[0].place, f"more than {RUNS_MAX:,} commands", "split the file")
        return []
    names = disk_names(commands)
    overrides.luns.check([(name, text) for text, name in _texts(commands, names)])
    volumes = CommandVolumes(names, overrides, problems)
    labels: set[str] = set()
    steps = [_step(command, volumes.make(command), labels) for command in commands]
    for command in commands:
        _notice(command, problems)
    return [] if problems.errors else [step for step in steps if step is not None]


def _texts(commands: Sequence[CommandSettings], names: dict[str, str]) -> list[tuple[str, str]]:
    """(text as written, volume name) of each target, once."""
    texts = {target.text.lower(): target.text for command in commands for target in command.targets}
    return [(text, names[key]) for key, text in texts.items()]


def _step(command: CommandSettings, volumes: Sequence[VolumeSpec], labels: set[str]) -> PlanStep | None:
    if not volumes:
        return None
    name = _name(command)
    label = unused_name(name, labels, " #")
    duration_s = float(command.duration_s)
    spec = RunSpec(
        name=label,
        seed=command.seed,
        volumes=tuple(volumes),
        streams=(_stream(command, volumes),),
        elapsed_s=duration_s,
        warmup_s=float(command.warmup_s),
        interval_s=1.0 if duration_s >= 2 else duration_s / 2,
    )
    rate = Rate()
    if command.rate_iops is not None:
        threads = sum(target.threads or command.threads for target in command.targets)
        rate = Rate("fixed", command.rate_iops * threads, "deterministic")
    run = PlannedRun(
        spec=spec,
        name=name,
        label=label,
        rate_text=number_text(rate.value) if rate.kind == "fixed" else UNCONTROLLED,
        source=str(command.place),
    )
    return PlanStep(run, rate)


def _name(command: CommandSettings) -> str:
    """Such as `8k random 70% reads, 4 threads x 32`."""
    order = {0: "sequential", 100: "random"}.get(command.random_percent, f"{command.random_percent}% random")
    if command.stride_bytes is not None:
        order = f"each {size_text(command.stride_bytes)}"
    counts = {target.threads or command.threads for target in command.targets}
    threads = max(counts)
    return (
        f"{size_text(command.size_bytes)} {order} {command.read_percent}% reads "
        f"{threads}x{command.outstanding}"
    )


def _stream(command: CommandSettings, volumes: Sequence[VolumeSpec]) -> StreamSpec:
    writes = command.read_percent < 100
    skip, align = None, command.grid_bytes
    if command.stride_bytes is not None:
        bytes_between = command.stride_bytes - command.size_bytes
        skip = ByteSpan(min_bytes=bytes_between, max_bytes=bytes_between)
        align = math.gcd(command.stride_bytes, command.size_bytes)
    return StreamSpec(
        name=command.tool,
        volumes=tuple(volume.name for volume in volumes),
        sizes=SizeMix.one(command.size_bytes),
        read_percent=float(command.read_percent),
        random_percent=100.0 if skip else float(command.random_percent),
        stride=skip,
        align_bytes=align,
        distribution=command.distribution,
        think_time=ThinkTime(pause_s=command.pause_s, after_ios=command.burst) if command.pause_s else None,
        compression_ratio=_PATTERN_RATIO if writes and command.compresses else None,
    )


def _notice(command: CommandSettings, problems: Problems) -> None:
    """What may surprise in the load of a command."""

    def notice(message: str) -> None:
        problems.notice(command.place, message)

    several = any((target.threads or command.threads) > 1 for target in command.targets)
    if several and command.random_percent < 100 and not command.is_interlocked:
        if not command.thread_stride_bytes:
            again = ": a cache may answer most of it" if command.read_percent else ""
            notice(f"each thread goes through the same blocks, from a position of its own{again}")
        else:
            notice("behind the end a thread goes on at its own first byte; diskspd at that of the used part")
        if command.tool == "sqlio":
            notice("where the threads of sqlio begin is not documented; here all begin at the first byte")
    if command.read_percent < 100 and command.compresses:
        notice(
            f"writes repeat a pattern, as those of {command.tool}: an array that compresses stores little of them"
        )
    if not command.direct and any(not target.text.startswith("#") for target in command.targets):
        notice("files are read and written through the page cache, as the command says (-Sh goes past it)")
    if command.rate_iops is not None:
        notice("I/Os begin when they are due, also while earlier ones are late; diskspd would wait for them")
