"""The whole probe: the frames, then each trial, then the judgement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from linerate.errors import LinerateError, UserError
from linerate.host import HostTarget
from linerate.probe.adapter import adapter_of
from linerate.probe.evidence import Evidence, TrialResult
from linerate.probe.frames import frame_sizes
from linerate.probe.judge import LOOPBACK, Diagnosis, judge
from linerate.probe.measure import measure, run_spec
from linerate.probe.trials import Name, Trial, trials
from linerate.results.environment import host_part, port_facts, ports_towards
from linerate.run import Here
from linerate.volumes import Consent, clear
from linerate.workload.spec import VolumeSpec
from linerate.workload.url import portal_of


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What to probe, for how long, and what may be overwritten: without a word, nothing is written."""

    volume: VolumeSpec
    consent: Consent
    seconds: float
    writes: bool = False


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
    if portal is None:
        raise UserError(
            f"{volume.url}: a probe is for a path to an iSCSI volume", "iscsi://host[:port]/target/lun"
        )
    todo = trials(writes=asked.writes)
    parts = sum(trial.share for trial in todo)
    specs = {trial.name: run_spec(volume, trial, asked.seconds * trial.share / parts) for trial in todo}
    if asked.writes:
        clear((specs[trial.name] for trial in todo if trial.is_write), Here().look, asked.consent)
    tell("frame sizes", 0.0)
    port, mtu_bytes, mbit_s = _port(portal)
    frames = frame_sizes(host_part(portal), mtu_bytes)
    done = 0.0
    measured: dict[Name, TrialResult] = {}
    skipped: dict[Name, str] = {}
    for trial in todo:
        try:
            one = measure(specs[trial.name], trial, partial(tell, trial.title, done / parts))
        except LinerateError:
            if measured or not frames.has_black_hole:
                raise
            break  # large frames vanish: no trial can tell more
        if _has_connections(one, trial):
            measured[trial.name] = one
        else:
            skipped[trial.name] = "the array allows one connection per session"
        done += trial.share
    adapter = adapter_of(HostTarget("this host", (port,))) if port and port != LOOPBACK else {}
    evidence = Evidence(measured, frames, port, mbit_s, skipped, adapter)
    return Survey(evidence, judge(evidence))


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
