"""The whole probe: the frames, then each trial, then the judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from linerate.errors import HostError, LinerateError, UserError
from linerate.host import HostTarget
from linerate.probe.evidence import LOOPBACK, Evidence, RawRate, SizeTimes, TrialResult
from linerate.probe.frames import frame_sizes
from linerate.probe.judge import Diagnosis, judge
from linerate.probe.measure import measure, run_spec
from linerate.probe.port.adapter import adapter_of
from linerate.probe.port.watch import PortWatch
from linerate.probe.raw.client import raw_mb_s
from linerate.probe.sizes import SHARE, measure_sizes, sizes_spec
from linerate.probe.trials import Name, Trial, trials
from linerate.results.environment import host_part, port_facts, ports_towards
from linerate.run import Here
from linerate.volumes import Consent, clear
from linerate.workload.spec import RunSpec, VolumeSpec
from linerate.workload.url import has_paths, portal_of

RAW_SHARE = 1.0
"""Of the time of a probe, as `Trial.share`, for each direction of raw TCP."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What to probe, for how long, and what may be overwritten: without a word, nothing is written."""

    volume: VolumeSpec
    consent: Consent
    seconds: float
    writes: bool = False
    raw: tuple[str, int] | None = None
    """Host and port of the far side's `linerate probe --serve`."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was seen, and what it means."""

    evidence: Evidence
    diagnosis: Diagnosis


Tell = Callable[[str, float], None]
"""Is called with what is done now and the share of the whole that is over."""


def survey(asked: ProbeRequest, tell: Tell = lambda _doing, _share: None) -> Survey:
    """Probes one path. Raises LinerateError if a trial that the judgement needs cannot run."""
    volume = asked.volume
    portal = portal_of(volume.url)
    if portal is None or not has_paths(volume.url):
        raise UserError(
            f"{volume.url}: a probe is for a path to an iSCSI volume",
            "name a LUN: iscsi://host[:port]/target/lun; `linerate run --preset dell-nic --target TARGET` loads a "
            "file, a device or a file of a share",
        )
    todo = trials(writes=asked.writes)
    directions = (False, True) if asked.writes else (False,)
    shares = [trial.share for trial in todo] + [SHARE for _ in directions]
    shares += [RAW_SHARE, RAW_SHARE] if asked.raw else []
    part = _Part(tell, asked.seconds, sum(shares))
    specs = {trial.name: run_spec(volume, trial, part.seconds(trial.share)) for trial in todo}
    if asked.writes:
        clear((specs[trial.name] for trial in todo if trial.is_write), Here().look, asked.consent)
    tell("frame sizes", 0.0)
    port, mtu_bytes, mbit_s = _port(portal)
    frames = frame_sizes(host_part(portal), mtu_bytes)
    raw = _raw(asked.raw, part, may_stall=frames.has_black_hole) if asked.raw else ()
    is_line = bool(port) and port != LOOPBACK
    watch = PortWatch(port) if is_line else None
    measured, skipped = _trials(todo, specs, part, watch, may_stall=frames.has_black_hole)
    sizes: list[SizeTimes] = []
    if measured:
        block_bytes = measured["floor"].block_bytes
        for is_write in directions if "write_floor" in measured else (False,):
            spec = sizes_spec(volume, block_bytes, part.seconds(SHARE), is_write=is_write)
            sizes += measure_sizes(
                spec,
                part.begun(f"{'writes' if is_write else 'reads'} of several sizes, depth 1", SHARE),
                is_write=is_write,
            )
    adapter = adapter_of(HostTarget("this host", (port,))) if is_line else {}
    below = watch.seen() if watch is not None else None
    evidence = Evidence(measured, frames, port, mbit_s, skipped, tuple(sizes), raw, adapter, below)
    return Survey(evidence, judge(evidence))


def _raw(peer: tuple[str, int], part: _Part, *, may_stall: bool) -> tuple[RawRate, ...]:
    """Both directions, one after the other. Where large frames vanish, none need end well."""
    rates: list[RawRate] = []
    for is_to_peer in (False, True):
        part.begun(f"raw TCP {'to' if is_to_peer else 'from'} {peer[0]}", RAW_SHARE)()
        try:
            mb_s = raw_mb_s(peer, part.seconds(RAW_SHARE), is_to_peer=is_to_peer)
        except HostError:
            if not may_stall:
                raise
            break
        rates.append(RawRate(peer[0], is_to_peer, mb_s))
    return tuple(rates)


@dataclass(slots=True)
class _Part:
    """How the time of a probe is shared, and how much of it is over."""

    tell: Tell
    whole_s: float
    shares: float
    over: float = 0.0

    def seconds(self, share: float) -> float:
        """Of a part with this share."""
        return self.whole_s * share / self.shares

    def begun(self, title: str, share: float) -> Callable[[], None]:
        """Tells that a part goes on, each time that it is called."""
        tick = partial(self.tell, title, self.over / self.shares)
        self.over += share
        return tick


def _trials(
    todo: Sequence[Trial],
    specs: Mapping[Name, RunSpec],
    part: _Part,
    watch: PortWatch | None,
    *,
    may_stall: bool,
) -> tuple[dict[Name, TrialResult], dict[Name, str]]:
    """The figures of each trial, and why others could not run. Where large frames vanish, no trial need end well."""
    measured: dict[Name, TrialResult] = {}
    skipped: dict[Name, str] = {}
    for trial in todo:
        try:
            one = measure(specs[trial.name], trial, part.begun(trial.title, trial.share))
        except UserError:
            if not (trial.is_write and measured):
                raise
            skipped[trial.name] = "the array protects the volume from writes"
            continue
        except LinerateError:
            if measured or not may_stall:
                raise
            break  # no trial can tell more
        if watch is not None:
            watch.over(trial)
        if _has_connections(one, trial):
            measured[trial.name] = one
        else:
            skipped[trial.name] = "the array allows one connection per session"
    return measured, skipped


def _has_connections(one: TrialResult, trial: Trial) -> bool:
    """Whether the session got as many connections as the trial asked for (MaxConnections)."""
    return trial.connections == 1 or one.session.get("connections") == trial.connections


def _port(portal: str) -> tuple[str, int | None, float | None]:
    """The port of this host on the way to a portal, its MTU in bytes, and its rate in Mbit/s, where they are known."""
    port = next(iter(ports_towards([portal])), None)
    if port is None:
        return "", None, None
    facts = port_facts(port, [portal])
    mtu, speed = facts[f"port.{port}.mtu_bytes"], facts[f"port.{port}.speed_mbit_s"]
    return (
        port,
        mtu if isinstance(mtu, int) else None,
        float(speed) if isinstance(speed, int) and speed > 0 else None,
    )
