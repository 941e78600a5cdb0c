"""Runs one trial in the data plane and gives its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from linerate import _core
from linerate.analysis import summarise_interval
from linerate.analysis.limits.wire import MSS_USUAL_BYTES
from linerate.analysis.summary import StepSummary, measured
from linerate.errors import HostError
from linerate.probe.evidence import Tcp, TrialResult
from linerate.probe.tcp_state import TcpWatch
from linerate.probe.trials import Trial
from linerate.results import IntervalSample, Usage, interval_from_core
from linerate.workload import RunSpec
from linerate.workload.spec import SizeMix, StreamSpec, VolumeRegion, VolumeSpec

WARM_UP_SHARE = 0.2
INTERVAL_S = 0.5
PULL_S = 0.2
BUFFERS = ("recv_buffer_bytes", "send_buffer_bytes")
NETSTAT = Path("/proc/net/netstat")


def run_spec(volume: VolumeSpec, trial: Trial, seconds: float) -> RunSpec:
    """The trial on this volume; `seconds` with its warm-up. Its sessions are volumes that are the same LUN."""
    iscsi = volume.iscsi
    if trial.connections > 1:
        iscsi = iscsi.model_copy(update={"connections": trial.connections})
    names = [volume.name]
    if trial.sessions > 1:
        names = [f"{volume.name}#{number}" for number in range(1, trial.sessions + 1)]
    outstanding = trial.outstanding // trial.sessions
    region = None
    if trial.only_bytes is not None:
        region = VolumeRegion(unit="bytes", start=0, end=trial.only_bytes)
    return RunSpec(
        name=f"probe {trial.name}",
        warmup_s=WARM_UP_SHARE * seconds,
        elapsed_s=(1 - WARM_UP_SHARE) * seconds,
        interval_s=INTERVAL_S,
        volumes=tuple(
            volume.model_copy(update={"name": name, "outstanding": outstanding, "iscsi": iscsi})
            for name in names
        ),
        streams=(
            StreamSpec(
                name=trial.name,
                volumes=tuple(names),
                sizes=SizeMix(parts=((trial.size_bytes, 100.0),)),
                read_percent=0.0 if trial.is_write else 100.0,
                random_percent=100.0 if trial.is_random else 0.0,
                range=region,
            ),
        ),
    )


def measure(spec: RunSpec, trial: Trial, tick: Callable[[], None] = lambda: None) -> TrialResult:
    """The figures of a trial. Calls `tick` a few times per second. Raises LinerateError, also for I/O errors."""
    before = out_of_order_segments()
    run = _core.Run.start(spec.seam_json())
    facts = run.facts()
    watch = _watch(facts)

    def each() -> None:
        if watch is not None:
            watch.look()
        tick()

    total = run_to_end(run, trial.title, each)
    summary = summarise_interval(total)
    measured = _measured(trial, summary, total.usage, facts, max(0, out_of_order_segments() - before))
    needless = watch.needless_retransmits if watch is not None else 0
    return replace(
        measured,
        tcp=replace(measured.tcp, needless_retransmits=needless),
        tcp_state=watch.state() if watch is not None and trial.is_bulk else None,
        fixed_buffers=tuple(name for name in BUFFERS if name in spec.volumes[0].iscsi.model_dump()),
    )


def run_to_end(run: _core.Run, title: str, each: Callable[[], None]) -> IntervalSample:
    """The whole measured time of a run. Calls `each` a few times per second, and at the end. Raises LinerateError."""
    try:
        while not run.finished:
            run.next_interval(PULL_S)
            each()
        each()
    except BaseException:
        run.stop()
        run.finish()
        raise
    end = run.finish()
    if end.error is not None:
        raise end.error
    total = interval_from_core(end.total)
    errors = sum(row.errors for row in total.rows)
    if errors or not total.ios:
        raise HostError(
            f"{title}: {errors} I/Os failed, {total.ios} were done",
            "see the array's log; `linerate run` on this volume shows each error",
        )
    return total


def _session(facts: Mapping[str, Any]) -> dict[str, Any]:
    return dict(facts["volumes"][0].get("session") or {})


def _watch(facts: Mapping[str, Any]) -> TcpWatch | None:
    """On the connections to the portal that the session is with."""
    address, _, port = str(_session(facts).get("peer_address", "")).rpartition(":")
    return TcpWatch(address, int(port)) if port.isdigit() else None


def _measured(
    trial: Trial, summary: StepSummary, usage: Usage, facts: Mapping[str, Any], gaps: int
) -> TrialResult:
    session = _session(facts)
    total = summary.total
    p50, p99 = total.quantile(0.5), total.quantile(0.99)
    return TrialResult(
        trial=trial,
        iops=total.iops,
        mb_s=total.bytes / summary.seconds / 1e6,
        p50_ms=p50.value_ms if p50 else measured(total.mean_ms),
        p99_ms=p99.value_ms if p99 else measured(total.max_ms),
        load_cores=measured(summary.usage.load_cores),
        workers=int(facts.get("workers") or 0),
        host_busy_percent=summary.usage.cpu_busy_percent,
        tcp=Tcp(
            rtt_us=measured(summary.usage.rtt_us_mean),
            sent_segments=usage.data_segments_sent,
            retransmits=usage.retransmits,
            received_segments=round(usage.bytes_received / max(1, session.get("snd_mss") or MSS_USUAL_BYTES)),
            out_of_order=gaps,
        ),
        session=session,
        block_bytes=int(facts["volumes"][0]["block_bytes"]),
        seconds=summary.seconds,
    )


def out_of_order_segments(netstat: Path = NETSTAT) -> int:
    """TCP segments of this network namespace that came after a gap (TcpExt TCPOFOQueue); 0 if it is not counted."""
    try:
        lines = netstat.read_text("ascii").splitlines()
    except OSError:
        return 0
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names.startswith("TcpExt:"):
            return int(dict(zip(names.split(), values.split(), strict=False)).get("TCPOFOQueue", 0))
    return 0
