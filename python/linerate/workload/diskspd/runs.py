"""Commands as the steps of a plan: each command is a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from linerate.quantity import number_text, size_text
from linerate.workload.diskspd.settings import CommandSettings
from linerate.workload.diskspd.volumes import CommandVolumes, disk_names
from linerate.workload.fio.volumes import unused_name
from linerate.workload.overrides import Overrides
from linerate.workload.plan import RUNS_MAX, UNCONTROLLED, PlannedRun, PlanStep, Rate
from linerate.workload.problems import Problems
from linerate.workload.spec import ByteSpan, RunSpec, SizeMix, StreamSpec, ThinkTime, VolumeSpec

_PATTERN_RATIO = 512.0
"""Write data of a repeated pattern: as compressible as the data plane makes it."""


def steps_of(
    runs: Sequence[Sequence[CommandSettings]], overrides: Overrides, problems: Problems
) -> list[PlanStep]:
    """The steps in order; empty after a problem was noted. Each run has groups of targets with the same options."""
    commands = [command for groups in runs for command in groups]
    if len(runs) > RUNS_MAX:
        problems.error(commands[0].place, f"more than {RUNS_MAX:,} commands", "split the file")
        return []
    names = disk_names(commands)
    overrides.luns.check([(name, text) for text, name in _texts(commands, names)])
    volumes = CommandVolumes(names, overrides, problems)
    labels: set[str] = set()
    steps = [_step(groups, volumes.make(groups), labels) for groups in runs]
    for command in commands:
        _notice(command, problems)
    return [] if problems.errors else [step for step in steps if step is not None]


def _texts(commands: Sequence[CommandSettings], names: dict[str, str]) -> list[tuple[str, str]]:
    """(text as written, volume name) of each target, once."""
    texts = {target.text.lower(): target.text for command in commands for target in command.targets}
    return [(text, names[key]) for key, text in texts.items()]


def _step(
    groups: Sequence[CommandSettings], volumes: Sequence[Sequence[VolumeSpec]], labels: set[str]
) -> PlanStep | None:
    if not all(volumes):
        return None
    first = groups[0]
    name = _name(first) + (f" +{len(groups) - 1}" if len(groups) > 1 else "")
    label = unused_name(name, labels, " #")
    duration_s = float(first.duration_s)
    streams = [_stream(one, own) for one, own in zip(groups, volumes, strict=True)]
    rates = [_rate_iops(one) for one in groups]
    streams, rate = _with_rates(streams, rates)
    spec = RunSpec(
        name=label,
        seed=first.seed,
        volumes=tuple(volume for own in volumes for volume in own),
        streams=tuple(streams),
        elapsed_s=duration_s,
        warmup_s=float(first.warmup_s),
        interval_s=1.0 if duration_s >= 2 else duration_s / 2,
    )
    run = PlannedRun(
        spec=spec,
        name=name,
        label=label,
        rate_text=number_text(rate.value) if rate.kind == "fixed" else UNCONTROLLED,
        source=str(first.place),
    )
    return PlanStep(run, rate)


def _rate_iops(command: CommandSettings) -> float | None:
    """Of all threads on all targets."""
    if command.rate_iops is None:
        return None
    return command.rate_iops * sum(target.threads or command.threads for target in command.targets)


def _with_rates(
    streams: Sequence[StreamSpec], rates: Sequence[float | None]
) -> tuple[list[StreamSpec], Rate]:
    """Streams that all have a rate become shares of one; beside streams without one they keep their own."""
    named = [
        stream if len(streams) == 1 else stream.model_copy(update={"name": f"{stream.name}.{number}"})
        for number, stream in enumerate(streams, start=1)
    ]
    given = [rate for rate in rates if rate is not None]
    if len(given) < len(rates):
        pairs = zip(named, rates, strict=True)
        return [stream.model_copy(update={"rate_iops": rate}) for stream, rate in pairs], Rate()
    total = sum(given)
    if len(named) > 1:
        shares = [100 * rate / total for rate in given]
        named = [
            stream.model_copy(update={"share_percent": share})
            for stream, share in zip(named, shares, strict=True)
        ]
    return named, Rate("fixed", total, "deterministic")


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
        skip = ByteSpan(min_bytes=bytes_between, max_bytes=bytes_between, passes=command.passes)
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
    if command.tool == "sqlio" and command.stride_bytes is not None and command.end_bytes is not None:
        used = size_text(command.end_bytes - command.base_bytes)
        notice(
            f"stripes of {size_text(command.stride_bytes)}: {used} of each target are used, again and again"
        )
    elif several and command.random_percent < 100 and not command.is_interlocked:
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
