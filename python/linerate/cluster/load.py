"""ClusterLoad: one run on all hosts, as the rest of Linerate sees a run.

Hosts announce their intervals; each is fetched from the host directly and merged. Three silent intervals, or a worker
that has gone, and the host is lost: the load goes on without it and says so in an event. At the end the clocks are
compared once more.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from linerate.cluster.clock import ASKED, UNCERTAINTY_MAX_NS, Drift, Offset, best_offset
from linerate.cluster.divide import Divided
from linerate.cluster.merge import HostMerger, merge
from linerate.cluster.wire import run_text, unpacked
from linerate.errors import HostError, LinerateError
from linerate.results import IntervalSample, TimedEvent
from linerate.run import LoadEnd
from linerate.workload import RunSpec

ROUND_TRIPS_AHEAD = 20
"""The start is so many round trips after the message to the hosts."""
_AHEAD_NS_MIN = 250_000_000
"""A thread that hears of the start may have to wait for a CPU."""
SILENT_INTERVALS = 3
_SILENT_S_MIN = 3.0
_CLOCK_S = 5.0
"""How long a host is asked for the time until its clock is known well enough."""
_ANSWER_S = 15.0
_END_S = 60.0
_SLICE_S = 0.1


class PendingAnswer(Protocol):
    """What a host will have answered."""

    def result(self, timeout: float | None = None) -> Any:
        """Waits for it."""


class Remote(Protocol):
    """A host as the load sees it: ask for a method of its `LoadAgent`."""

    def ask(self, method: str, *arguments: object) -> PendingAnswer:
        """Starts a call."""

    @property
    def alive(self) -> bool:
        """Its worker has not gone."""


Announcements = Callable[[Callable[[Mapping[str, Any]], None]], Callable[[], None]]
"""Subscribes a listener to what hosts announce; gives what ends the subscription."""


@dataclass(slots=True)
class _Host:
    """A host during the run."""

    remote: Remote
    offset: Offset
    heard: float
    """When it last announced something, by this machine's monotonic clock."""


class ClusterLoad:
    """See the module text. Made by `start`."""

    def __init__(
        self, spec: RunSpec, facts: Mapping[str, Any], hosts: dict[str, _Host], start_ns: int
    ) -> None:
        self._spec = spec
        self._facts = facts
        self._hosts = hosts
        self._start_ns = start_ns
        self._merger = HostMerger(hosts)
        self._running = set(hosts)
        self._lost: dict[str, str] = {}
        self._inbox: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._unsubscribe: Callable[[], None] = lambda: None

    @classmethod
    def start(
        cls,
        remotes: Mapping[str, Remote],
        announcements: Announcements,
        divided: Divided,
        *,
        run_id: str,
        spool: str,
        free: Sequence[str] = (),
    ) -> Self:
        """Arms every host that has a part, measures the clocks, and starts all at one instant.

        `free` are paths of devices that each host may hold for itself.

        Raises LinerateError when one of them cannot; the others are discarded then.
        """
        parts, whole = divided
        remotes = {name: remotes[name] for name in parts}
        try:
            prepared = ask_all(
                remotes,
                "prepare",
                {name: (run_id, run_text(parts[name]), spool, list(free)) for name in remotes},
            )
            wall_clocks = {name: _wall_clock(name, remote) for name, remote in remotes.items()}
            offsets = {name: measured_offset(name, remote) for name, remote in remotes.items()}
            start_ns = time.monotonic_ns() + max(
                ROUND_TRIPS_AHEAD * max(offset.round_trip_ns for offset in offsets.values()), _AHEAD_NS_MIN
            )
            hosts = {name: _Host(remotes[name], offsets[name], start_ns / 1e9) for name in remotes}
            load = cls(whole, _facts(prepared, offsets, wall_clocks), hosts, start_ns)
            load._unsubscribe = announcements(lambda said: load._hear(run_id, said))
            ask_all(remotes, "start_at", {name: (offsets[name].remote(start_ns),) for name in remotes})
        except BaseException:
            for remote in remotes.values():
                remote.ask("stop")
            raise
        return load

    @property
    def spec(self) -> RunSpec:
        """All hosts' volumes, under names `host/volume`."""
        return self._spec

    def facts(self) -> Mapping[str, Any]:
        """As of one host, with the volumes of all; `cluster` holds clocks and spools by host."""
        return self._facts

    def next_interval(self, timeout_s: float) -> IntervalSample | None:
        """See `linerate.run.Load`."""
        until = time.monotonic() + timeout_s
        while (interval := self._merger.pop()) is None and not self.finished:
            rest = until - time.monotonic()
            if rest <= 0:
                return None
            try:
                self._take(self._inbox.get(timeout=min(rest, _SLICE_S)))
            except queue.Empty:
                self._watch()
        return interval

    @property
    def finished(self) -> bool:
        """See `linerate.run.Load`."""
        return self._merger.finished

    def stop(self) -> None:
        """See `linerate.run.Load`."""
        for name in self._running:
            self._hosts[name].remote.ask("stop")

    def finish(self) -> LoadEnd:
        """Waits for every host that is left, and merges what they measured.

        A host that was lost counts with nothing. With all of them lost the load has failed.
        """
        while not self.finished:
            self.next_interval(_SLICE_S)
        self._unsubscribe()
        totals: list[IntervalSample] = []
        error: LinerateError | None = None
        for name, host in self._hosts.items():
            if name in self._lost:
                continue
            try:
                self._check_clock(name, host)
                total, failure = host.remote.ask("finish").result(_END_S)
            except (OSError, RuntimeError, TimeoutError) as gone:
                self._lose(name, str(gone))
                continue
            totals.append(unpacked(total))
            error = error or (failure and _of_host(name, failure))
            host.remote.ask("forget")
        if not totals:
            what = "; ".join(f"{name}: {why}" for name, why in self._lost.items())
            nothing = IntervalSample(index=0, start_s=0.0, end_s=0.0, warmup=False, rows=())
            return LoadEnd(
                nothing, HostError(f"every host was lost: {what}", "look at the hosts, then run it again")
            )
        return LoadEnd(merge(totals), error, self._merger.late())

    def _check_clock(self, name: str, host: _Host) -> None:
        """Reports a clock that is no longer where it was at the start. Its load has ended, and is not disturbed."""
        drift = measured_drift(host.remote, host.offset)
        if drift.is_too_far:
            direction = "ahead" if drift.moved_ns > 0 else "behind"
            message = (
                f"the clock of host {name} moved {abs(drift.moved_ns) / 1e6:.1f} ms {direction} during the load "
                f"(give or take {drift.doubt_ns / 1e6:.1f} ms): its intervals are not at the times of the others"
            )
            self._merger.event(TimedEvent(self._now_s, kind="host_clock", message=message, blame="host"))

    @property
    def _now_s(self) -> float:
        """Seconds since the start, not below 0."""
        return max(time.monotonic() - self._start_ns / 1e9, 0.0)

    @property
    def lost(self) -> Mapping[str, str]:
        """Hosts that the result lacks, and why."""
        return self._lost

    def _hear(self, run_id: str, said: Mapping[str, Any]) -> None:
        """Called on dask's thread."""
        if said["run"] == run_id:
            self._inbox.put(said)

    def _take(self, said: Mapping[str, Any]) -> None:
        name, index = said["host"], said["index"]
        if name not in self._running:
            return
        self._hosts[name].heard = time.monotonic()
        if index is None:
            self._running.discard(name)
            self._merger.leave(name)
            return
        try:
            self._merger.add(
                name, unpacked(self._hosts[name].remote.ask("interval", index).result(_ANSWER_S))
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            self._lose(name, str(error) or "it does not answer")

    def _watch(self) -> None:
        """Loses hosts that are gone or silent. Called only when nothing waits to be read."""
        silent_s = max(SILENT_INTERVALS * self._spec.interval_s, _SILENT_S_MIN)
        for name in tuple(self._running):
            host = self._hosts[name]
            if not host.remote.alive:
                self._lose(name, "its worker has ended")
            elif time.monotonic() - max(host.heard, self._start_ns / 1e9) > silent_s + self._spec.interval_s:
                self._lose(name, f"no interval for {silent_s:g} s")

    def _lose(self, name: str, why: str) -> None:
        self._lost[name] = why
        message = f"host {name} was lost ({why}); the result goes on without it and is degraded"
        self._merger.event(TimedEvent(self._now_s, kind="host_lost", message=message, blame="host"))
        self._running.discard(name)
        self._merger.leave(name)


def measured_offset(name: str, remote: Remote) -> Offset:
    """Asks a host for the time, more often than usual while the answers are slow.

    Raises HostError for a clock that cannot be known well enough.
    """
    samples = []
    until = time.monotonic() + _CLOCK_S
    while True:
        with _answering(name):
            samples.append(_sample(remote, "clock_ns", time.monotonic_ns))
        if len(samples) < ASKED:
            continue
        offset = best_offset(samples)
        if offset.uncertainty_ns <= UNCERTAINTY_MAX_NS or time.monotonic() > until:
            break
    if offset.uncertainty_ns > UNCERTAINTY_MAX_NS:
        raise HostError(
            f"host {name}: its clock is known to {offset.uncertainty_ns / 1e6:.1f} ms only",
            "the control network is slow or busy; give it a network of its own",
        )
    return offset


def measured_drift(remote: Remote, before: Offset) -> Drift:
    """How far a host's clock has moved since the start. Asks until that is decided, as often as at the start at most.

    Raises what the host's answers raise.
    """
    samples: list[tuple[int, int, int]] = []
    while True:
        samples.append(_sample(remote, "clock_ns", time.monotonic_ns))
        drift = Drift.between(before, best_offset(samples))
        if drift.is_decided or len(samples) == ASKED:
            return drift


def _wall_clock(name: str, remote: Remote) -> Offset:
    """One answer is enough: seconds matter here."""
    with _answering(name):
        return best_offset([_sample(remote, "wall_clock_ns", time.time_ns)])


def _sample(remote: Remote, question: str, clock_ns: Callable[[], int]) -> tuple[int, int, int]:
    """When a host was asked for a clock, what it answered, and when that was there."""
    asked = clock_ns()
    shown = remote.ask(question).result(_ANSWER_S)
    return asked, shown, clock_ns()


def ask_all(
    remotes: Mapping[str, Remote], method: str, arguments: Mapping[str, Sequence[object]] | None = None
) -> dict[str, Any]:
    """One question to all hosts at once. Raises the first LinerateError, naming its host."""
    asked = {name: remote.ask(method, *(arguments or {}).get(name, ())) for name, remote in remotes.items()}
    answers: dict[str, Any] = {}
    for name, answer in asked.items():
        with _answering(name):
            answers[name] = answer.result(_END_S)
    return answers


@contextmanager
def _answering(name: str) -> Iterator[None]:
    """Names the host in what its answer raises, and in what it raises instead of an answer."""
    try:
        yield
    except LinerateError as error:
        raise _of_host(name, error) from error
    except (OSError, RuntimeError, TimeoutError) as error:
        why = str(error) or "it does not answer"
        raise HostError(f"host {name}: {why}", "see that the host is up, then start again") from error


def _of_host(name: str, error: LinerateError) -> LinerateError:
    """The error, naming its host."""
    return type(error)(f"host {name}: {error.message}", error.hint)


def _facts(
    prepared: Mapping[str, Mapping[str, Any]],
    offsets: Mapping[str, Offset],
    wall_clocks: Mapping[str, Offset],
) -> dict[str, Any]:
    """As of one host, for who does not know of several; then what each host says for itself."""
    first = next(iter(prepared.values()))
    return {
        **first,
        "workers": sum(facts["workers"] for facts in prepared.values()),
        "volumes": [volume for facts in prepared.values() for volume in facts["volumes"]],
        "cluster": {
            name: {
                "clock_offset_ns": offsets[name].offset_ns,
                "clock_uncertainty_ns": offsets[name].uncertainty_ns,
                "round_trip_ns": offsets[name].round_trip_ns,
                "wall_clock_offset_ns": wall_clocks[name].offset_ns,
                "driver": facts["driver"],
                "spool": facts["spool"],
            }
            for name, facts in prepared.items()
        },
    }
