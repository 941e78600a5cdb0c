"""The protocol against hosts on paper: what is prepared, what a lost host changes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linerate.cluster import Offset, divide
from linerate.cluster import load as protocol
from linerate.cluster.clock import APART_MAX_NS, Drift
from linerate.cluster.load import ClusterLoad
from linerate.cluster.wire import packed
from linerate.errors import HostError, LinerateError, UserError
from linerate.results import CounterRow, IntervalSample
from linerate.run import LoadEnd
from linerate.workload import RunSpec

SPEC = RunSpec.model_validate(
    {
        "name": "both",
        "interval_s": 0.05,
        "volumes": [{"name": "v", "url": "null:1048576"}],
        "streams": [{"name": "s", "volumes": ["v"]}],
    }
)


def _interval(host: str, index: int) -> IntervalSample:
    rows = (CounterRow("s", f"{host}/v", "read", 10, 40960),)
    return IntervalSample(
        index=index, start_s=0.05 * index, end_s=0.05 * (index + 1), warmup=False, rows=rows
    )


@dataclass
class _Answer:
    value: Any = None
    error: Exception | None = None

    def result(self, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass
class _Host:
    """Answers as an agent does; `raises` says which question fails."""

    name: str
    skew_ns: int = 0
    wall_skew_ns: int = 0
    delay_s: float = 0.0
    raises: Mapping[str, Exception] = field(default_factory=dict)
    alive: bool = True
    asked: list[str] = field(default_factory=list)
    started_at_ns: int = 0
    fails: Exception | None = None
    """What made its load fail."""

    def ask(self, method: str, *arguments: Any) -> _Answer:
        if method not in ("clock_ns", "wall_clock_ns"):
            self.asked.append(method)
        if method in self.raises:
            return _Answer(error=self.raises[method])
        match method:
            case "prepare":
                facts = {
                    "driver": "epoll",
                    "workers": 1,
                    "volumes": [{"name": f"{self.name}/v"}],
                    "spool": "x",
                }
                return _Answer(facts)
            case "clock_ns":
                time.sleep(self.delay_s)
                return _Answer(time.monotonic_ns() + self.skew_ns)
            case "wall_clock_ns":
                return _Answer(time.time_ns() + self.wall_skew_ns)
            case "start_at":
                self.started_at_ns = arguments[0]
            case "interval":
                return _Answer(packed(_interval(self.name, arguments[0])))
            case "finish":
                return _Answer((packed(_interval(self.name, 0)), self.fails))
        return _Answer()


class _Bus:
    """Carries announcements."""

    def __init__(self) -> None:
        self.listen: Callable[[Mapping[str, Any]], None] | None = None

    def __call__(self, listen: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        self.listen = listen
        return self._end

    def _end(self) -> None:
        self.listen = None

    def say(self, host: str, index: int | None, run: str = "r1") -> None:
        assert self.listen is not None
        self.listen({"host": host, "index": index, "run": run})


def _start(bus: _Bus, *hosts: _Host) -> ClusterLoad:
    remotes = {host.name: host for host in hosts}
    return ClusterLoad.start(remotes, bus, divide(SPEC, tuple(remotes)), run_id="r1", spool="x")


def _pull(load: ClusterLoad) -> IntervalSample:
    for _ in range(100):
        if (interval := load.next_interval(0.2)) is not None:
            return interval
    raise AssertionError("no interval")


def test_all_hosts_start_at_one_instant_of_their_own_clocks() -> None:
    bus, one, two = _Bus(), _Host("h1"), _Host("h2", skew_ns=7_000_000_000)
    before_ns = time.monotonic_ns()
    load = _start(bus, one, two)
    clocks = load.facts()["cluster"]
    bound_ns = clocks["h1"]["clock_uncertainty_ns"] + clocks["h2"]["clock_uncertainty_ns"]
    assert abs(two.started_at_ns - one.started_at_ns - 7_000_000_000) <= bound_ns
    assert one.started_at_ns >= before_ns + 100_000_000, "ahead, however long it took to say"
    assert [volume.name for volume in load.spec.volumes] == ["h1/v", "h2/v"]


def test_intervals_of_all_hosts_become_one_run() -> None:
    bus, one, two = _Bus(), _Host("h1"), _Host("h2")
    load = _start(bus, one, two)
    for host in ("h1", "h2"):
        bus.say(host, 0)
        bus.say(host, 99, run="an earlier run")
        bus.say(host, None)
    assert _pull(load).ios == 20
    assert load.next_interval(5.0) is None
    assert load.finished
    end = load.finish()
    assert (end.error, end.total.ios, load.lost) == (None, 20, {})
    assert one.asked[-2:] == ["finish", "forget"]
    assert bus.listen is None


def test_one_host_that_cannot_arm_discards_the_others() -> None:
    one, two = _Host("h1"), _Host("h2", raises={"prepare": UserError("no such volume", "look")})
    with pytest.raises(UserError, match="host h2: no such volume"):
        _start(_Bus(), one, two)
    assert one.asked == ["prepare", "stop"]


@pytest.mark.parametrize("question", ["prepare", "wall_clock_ns", "clock_ns", "start_at"])
def test_a_host_that_is_gone_before_the_start_is_named(question: str) -> None:
    one, two = _Host("h1"), _Host("h2", raises={question: ConnectionError("its worker has ended")})
    with pytest.raises(HostError, match="host h2: its worker has ended") as caught:
        _start(_Bus(), one, two)
    assert "see that the host is up" in caught.value.hint
    assert one.asked[-1] == "stop"


def test_a_load_that_fails_at_its_end_names_its_host() -> None:
    full = HostError("/tmp/spool: no space left on its disk", "make room there")
    one, bus = _Host("h1"), _Bus()
    load = _start(bus, one)
    bus.say("h1", 0)
    bus.say("h1", None)
    one.fails = full
    end = load.finish()
    assert isinstance(end.error, HostError)
    assert (end.error.message, end.error.hint) == (f"host h1: {full.message}", full.hint)


def test_a_start_that_came_too_late_stops_everyone() -> None:
    one, two = _Host("h1"), _Host("h2", raises={"start_at": HostError("the start is over by 3 us")})
    with pytest.raises(HostError, match="host h2: the start is over"):
        _start(_Bus(), one, two)
    assert one.asked[-1] == "stop"


def test_a_clock_that_cannot_be_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "UNCERTAINTY_MAX_NS", 100_000)
    monkeypatch.setattr(protocol, "_CLOCK_S", 0.1)
    with pytest.raises(HostError, match="host h1: its clock is known to"):
        _start(_Bus(), _Host("h1", delay_s=0.001))


def test_a_slow_answer_or_twenty_do_not_hide_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the first answers may all come late."""
    monkeypatch.setattr(protocol, "UNCERTAINTY_MAX_NS", 2_000_000)
    answers = iter([0.005] * protocol.ASKED)

    class _Busy(_Host):
        def ask(self, method: str, *arguments: Any) -> _Answer:
            self.delay_s = next(answers, 0.0) if method == "clock_ns" else 0.0
            return super().ask(method, *arguments)

    assert _start(_Bus(), _Busy("h1")).facts()["cluster"]["h1"]["clock_uncertainty_ns"] <= 2_000_000


def _to_the_end(bus: _Bus, load: ClusterLoad, *hosts: _Host) -> LoadEnd:
    for host in hosts:
        bus.say(host.name, 0)
        bus.say(host.name, None)
    assert _pull(load).ios == 10 * len(hosts)
    return load.finish()


@pytest.mark.parametrize("moved_ms", [80, -80])
def test_a_clock_that_moves_during_the_load_is_told(moved_ms: int) -> None:
    bus, one, two = _Bus(), _Host("h1"), _Host("h2", skew_ns=10**12)
    load = _start(bus, one, two)
    two.skew_ns += moved_ms * 10**6
    (event,) = _to_the_end(bus, load, one, two).events
    assert (event.kind, event.blame) == ("host_clock", "host")
    found = re.search(r"the clock of host h2 moved ([\d.]+) ms (ahead|behind)", event.message)
    assert found is not None
    assert float(found.group(1)) == pytest.approx(80, abs=5)
    assert found.group(2) == ("ahead" if moved_ms > 0 else "behind")


def test_clocks_that_differ_and_stay_so_are_corrected_and_not_told() -> None:
    bus, one, two = (
        _Bus(),
        _Host("h1", skew_ns=-(10**15)),
        _Host("h2", skew_ns=10**12, wall_skew_ns=-(10**13)),
    )
    load = _start(bus, one, two)
    assert _to_the_end(bus, load, one, two).events == ()
    wall_ns = load.facts()["cluster"]["h2"]["wall_clock_offset_ns"]
    assert wall_ns == pytest.approx(-(10**13), abs=10**8), "it is recorded"


@given(st.integers(-(10**8), 10**8), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_clock_has_moved_too_far_only_where_that_is_sure(
    moved_ns: int, before_ns: int, after_ns: int
) -> None:
    drift = Drift.between(Offset(0, before_ns, 0), Offset(moved_ns, after_ns, 0))
    possible = (moved_ns - before_ns - after_ns, moved_ns + before_ns + after_ns)
    assert drift.is_too_far == (possible[0] > APART_MAX_NS or possible[1] < -APART_MAX_NS)
    assert drift.is_decided == (drift.is_too_far or max(map(abs, possible)) <= APART_MAX_NS)


@pytest.mark.parametrize("how", ["its worker ends", "it falls silent", "it does not answer"])
def test_a_lost_host_degrades_the_result_and_is_not_replaced(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_SILENT_S_MIN", 0.3)
    bus, one, two = _Bus(), _Host("h1"), _Host("h2")
    load = _start(bus, one, two)
    bus.say("h1", 0)
    bus.say("h2", 0)
    assert _pull(load).ios == 20
    if how == "its worker ends":
        two.alive = False
    elif how == "it does not answer":
        two.raises = {"interval": OSError("connection lost")}
        bus.say("h2", 1)
    events = []
    for index in range(1, 200):
        bus.say("h1", index)
        interval = load.next_interval(0.1)
        if interval is not None and interval.events:
            events += interval.events
            break
    assert [(event.kind, event.blame) for event in events] == [("host_lost", "host")]
    assert "host h2 was lost" in events[0].message
    bus.say("h1", None)
    end = load.finish()
    assert list(load.lost) == ["h2"]
    assert [row.volume for row in end.total.rows] == ["h1/v"]
    assert "finish" not in two.asked


def test_a_host_that_is_lost_after_its_last_interval_is_not_lost_in_silence() -> None:
    bus, one, two = _Bus(), _Host("h1"), _Host("h2", raises={"finish": OSError("connection lost")})
    load = _start(bus, one, two)
    for host in ("h1", "h2"):
        bus.say(host, 0)
        bus.say(host, None)
    assert _pull(load).events == ()
    end = load.finish()
    assert [row.volume for row in end.total.rows] == ["h1/v"]
    assert [(event.kind, event.blame) for event in end.events] == [("host_lost", "host")]
    assert "host h2 was lost (connection lost)" in end.events[0].message


def test_without_any_host_left_the_load_has_failed() -> None:
    bus, one = _Bus(), _Host("h1")
    load = _start(bus, one)
    one.alive = False
    end = load.finish()
    assert isinstance(end.error, LinerateError)
    assert "h1: its worker has ended" in end.error.message
    assert end.total.ios == 0
