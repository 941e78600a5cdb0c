"""Each rule of `check` fires on what it is meant for, and a sound run passes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from linerate.analysis import check_run, summarise
from linerate.analysis.rules import RUN_RULES, STEP_RULES
from linerate.results import Finding, RunDirectory, RunWriter, TimedEvent, WorkloadSource, files
from linerate.results.manifest import FactValue
from linerate.workload.plan import UNTIL_DONE_S

from tests.support.samples.path_run import PathLoad, Way, make_path_run
from tests.support.samples.synthetic import (
    CPUS,
    ENVIRONMENT,
    Clock,
    Load,
    intervals_of,
    make_run,
    spec_of,
    summary_of,
)

SOUND = Load(intervals=60, warmup=5, volumes=4, outstanding=12, iops=40_000, volume_bytes=64 << 30)
OPEN = {"arrival": {"kind": "open", "process": "poisson", "rate_iops": 40_000.0}}


def spec_with(load: Load, **stream: Any) -> dict[str, Any]:
    spec = spec_of(load)
    spec["streams"][0].update(stream)
    return spec


def of_user(user: str | None) -> dict[str, Any]:
    """Volumes with this user."""
    return {"volumes": [{**volume, "user": user} for volume in spec_of(SOUND)["volumes"]]}


def lab(busy_s: float, ours_s: float) -> dict[str, float]:
    """Counters of a virtual SAN on two CPUs over a minute."""
    return {
        "machine.clock_s": 60.0,
        "machine.busy_s": busy_s,
        "machine.idle_s": 120.0 - busy_s,
        "host.h1.cpu_s": ours_s / 2,
        "array.a1.cpu_s": ours_s / 2,
    }


def late(percent: float) -> dict[str, float]:
    """Counters of a user fabric that was late in this part of a minute."""
    return {"machine.clock_s": 60.0, "fabric.lag_ns_max": 4e6, "fabric.late_ns": percent / 100 * 60e9}


def test_a_fabric_that_was_late_for_a_moment_is_believed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [replace(SOUND, counters=late(percent=0.5), points=10)])
    assert "fabric-late" not in found(run)


@pytest.mark.parametrize("trouble", [{"iops": 0}, {"errors": 100_000}])
def test_where_too_much_io_fails_nothing_is_said_of_what_the_storage_could_do(
    tmp_path: Path, trouble: dict[str, int]
) -> None:
    busy = {"load_cpu_user_s": 0.7, "host_cpu_user_s": CPUS * 9.0}
    load = replace(SOUND, usage=busy, **trouble)  # type: ignore[arg-type]
    run = make_run(tmp_path / "run", [load])
    limits = {"generator-limited", "load-host-saturated", "depth-missed"}
    assert not limits & found(run).keys()
    whole = make_run(tmp_path / "whole", [replace(SOUND, usage=busy)])
    assert {"generator-limited", "load-host-saturated"} <= found(whole).keys()


@dataclass(frozen=True)
class Case:
    rule: str
    severity: str
    load: Load = SOUND
    environment: dict[str, FactValue] | None = None


CASES = [
    Case("too-short", "note", replace(SOUND, intervals=6)),
    Case("too-short", "caution", replace(SOUND, intervals=30, spec={"elapsed_s": 60.0})),
    Case("too-short", "note", replace(SOUND, intervals=30)),
    Case("too-short", "note", replace(SOUND, intervals=30, spec={"elapsed_s": UNTIL_DONE_S})),
    Case("too-short", "note", replace(SOUND, intervals=30, spec={"elapsed_s": 60.0, "limits": {"bytes": 1}})),
    Case(
        "too-short",
        "caution",
        replace(SOUND, intervals=30, spec={"elapsed_s": 60.0, "limits": {"bytes": 1 << 50}}),
    ),
    Case(
        "too-short",
        "note",
        replace(SOUND, intervals=30, spec={"elapsed_s": 60.0, "streams": [{"stop_at_end": True}]}),
    ),
    Case("too-few-intervals", "note", replace(SOUND, intervals=4)),
    Case("not-steady", "caution", replace(SOUND, jitter=0.8, intervals=20)),
    Case("not-steady", "caution", replace(SOUND, trend=0.6)),
    Case("warmup-too-short", "note", replace(SOUND, warmup=0)),
    Case("load-host-saturated", "caution", replace(SOUND, usage={"host_cpu_user_s": CPUS * 9.0})),
    Case("generator-limited", "caution", replace(SOUND, usage={"load_cpu_user_s": 0.7})),
    Case(
        "late-arrivals",
        "caution",
        replace(SOUND, spec=OPEN, wait_ms=0.5, usage={"late_arrivals": 1000, "backlog_max": 50}),
    ),
    Case(
        "late-arrivals",
        "note",
        replace(SOUND, spec=OPEN, usage={"late_arrivals": 1000, "backlog_max": 50}),
    ),
    Case("late-arrivals", "caution", replace(SOUND, spec=OPEN, iops=30_000)),
    Case("depth-missed", "caution", replace(SOUND, outstanding=30)),
    Case("skew-missed", "caution", replace(SOUND, spec=spec_with(SOUND, share_percent=60.0))),
    Case("closed-loop", "note"),
    Case("polling", "note", replace(SOUND, usage={"load_cpu_polled_s": 0.4})),
    Case("retransmits", "note", replace(SOUND, usage={"retransmits": 1})),
    Case("retransmits", "caution", replace(SOUND, usage={"retransmits": 5000})),
    Case("retransmits", "note", replace(SOUND, usage={"retransmits": 3, "data_segments_sent": 20_000})),
    Case("retransmits", "note", replace(SOUND, usage={"retransmits": 5000, "data_segments_sent": 0})),
    Case("receive-window-limited", "note", replace(SOUND, usage={"rwnd_limited_us": 60_000})),
    Case("send-buffer-limited", "note", replace(SOUND, usage={"sndbuf_limited_us": 60_000})),
    Case(
        "fabric-late",
        "caution",
        replace(SOUND, counters={"fabric.lag_ns_max": 4e6, "fabric.given_up_ns": 2e8}),
    ),
    Case("fabric-late", "caution", replace(SOUND, counters=late(percent=2))),
    Case("fabric-late", "void", replace(SOUND, counters=late(percent=7))),
    Case("fabric-late", "void", replace(SOUND, counters={**late(percent=0.4), "fabric.lag_ns_max": 2.5e8})),
    Case(
        "fabric-late", "void", replace(SOUND, counters={"fabric.lag_ns_max": 4e7, "fabric.given_up_ns": 9e9})
    ),
    Case(
        "fabric-late", "void", replace(SOUND, counters={"fabric.lag_ns_max": 4e6, "fabric.late_turns": 4e4})
    ),
    Case("machine-full", "caution", replace(SOUND, counters=lab(busy_s=115.0, ours_s=114.0))),
    Case("other-work", "caution", replace(SOUND, counters=lab(busy_s=60.0, ours_s=30.0))),
    Case("stolen-time", "caution", replace(SOUND, counters={**lab(40.0, 40.0), "machine.stolen_s": 10.0})),
    Case("first-touch", "caution", replace(SOUND, counters={"array.a1.page_faults": 1e6})),
    Case("congestion-control", "note", replace(SOUND, session={"congestion_control": "bbr"})),
    Case("guest-session", "note", replace(SOUND, spec=of_user("joe"), session={"guest": True})),
    Case("io-errors", "caution", replace(SOUND, errors=5)),
    Case("io-errors", "void", replace(SOUND, errors=100_000)),
    Case("events", "note", replace(SOUND, errors=5)),
    Case("no-io", "void", replace(SOUND, iops=0)),
    Case("cache-sized-volume", "note", replace(SOUND, volume_bytes=30 << 20)),
    Case("compressible-data", "note", replace(SOUND, spec=spec_with(SOUND, compression_ratio=2.0))),
    Case("verify-on", "note", replace(SOUND, spec={"verify": "on"})),
    Case("thin-tail", "note", replace(SOUND, iops=500, latency_ms=90)),
    Case("busy-host", "note", environment={**ENVIRONMENT, "host.load_average_1m": 5.0}),
    Case("slow-governor", "note", environment={**ENVIRONMENT, "cpu.governor": "powersave"}),
]


def found(run: RunDirectory) -> dict[str, Finding]:
    return {finding.rule: finding for finding in check_run(run).findings}


@pytest.mark.parametrize(
    ("kind", "words"), [("iscsi", "the network, not disks"), ("file", "a cache, not disks")]
)
def test_a_small_file_of_this_host_measures_no_network(kind: str, words: str, tmp_path: Path) -> None:
    load = replace(SOUND, volume_bytes=30 << 20, volume_kind=kind)
    reason = found(make_run(tmp_path / "run", [load]))["cache-sized-volume"].reason
    assert words in reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.severity}")
def test_a_rule_fires(case: Case, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [replace(case.load, points=10)], environment=case.environment)
    finding = found(run)[case.rule]
    assert finding.severity == case.severity
    assert finding.reason
    assert finding.advice
    stamp = check_run(run).stamp
    assert stamp == "void" if case.severity == "void" else stamp in ("valid", "caution")
    cautions = [one for one in check_run(run).findings if one.severity == "caution"]
    assert all(re.search(r"\d", one.effect) for one in cautions), "a caution says by how much"
    assert bool(finding.effect) == (case.severity == "caution")


def test_a_sound_run_is_valid(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [SOUND], judge=check_run)
    assert run.manifest.validity is not None
    assert run.manifest.validity.stamp == "valid"
    assert {finding.rule for finding in run.manifest.validity.findings} <= {"closed-loop", "tail-not-steady"}


def test_a_sound_run_in_a_quiet_laboratory_is_valid(tmp_path: Path) -> None:
    quiet = {**lab(busy_s=60.0, ours_s=58.0), "fabric.lag_ns_max": 4e5, "fabric.given_up_ns": 0.0}
    run = make_run(tmp_path / "run", [replace(SOUND, counters=quiet)], judge=check_run)
    assert run.manifest.validity is not None
    assert run.manifest.validity.stamp == "valid"


def test_a_sound_open_loop_is_not_lectured(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [replace(SOUND, spec=OPEN)])
    assert not found(run).keys() & {"closed-loop", "late-arrivals", "depth-missed"}


def test_a_ramp_asks_for_more_warmup(tmp_path: Path) -> None:
    """The made-up ramp takes ten intervals; with the warm-up declared as zero, they are all measured."""
    with RunWriter.create(
        tmp_path / "run", name="x", workload=WorkloadSource(name="x"), now=Clock()
    ) as writer:
        writer.begin_step("rd1", spec=spec_of(SOUND), facts={})
        for interval in ramp(SOUND, 10):
            writer.interval(interval)
        run = writer.close("complete")
    finding = found(run)["warmup-too-short"]
    assert finding.severity == "caution"
    assert "steady only from second" in finding.reason


def ramp(load: Load, length: int) -> list[Any]:
    import random

    from tests.support.samples.synthetic import intervals_of

    parts = [
        replace(load, intervals=1, warmup=0, iops=load.iops * (n + 1) / length, points=5)
        for n in range(length)
    ]
    parts += [replace(load, intervals=1, warmup=0, points=5)] * 50
    return [
        replace(next(intervals_of(part, random.Random(n))), index=n, start_s=float(n), end_s=float(n + 1))
        for n, part in enumerate(parts)
    ]


@pytest.mark.long
def test_how_a_run_ended_matters(tmp_path: Path) -> None:
    failed = make_run(tmp_path / "failed", [SOUND], state="failed", reason="the array went away")
    assert found(failed)["run-ended-badly"].severity == "void"
    assert "the array went away" in found(failed)["run-ended-badly"].reason
    stopped = make_run(tmp_path / "stopped", [SOUND], state="interrupted")
    assert found(stopped)["run-ended-badly"].severity == "caution"
    with RunWriter.create(tmp_path / "empty", name="x", workload=WorkloadSource(name="x")) as writer:
        assert found(RunDirectory.open(writer.path))["run-ended-badly"].severity == "caution"
        empty = writer.close("complete")
    assert found(empty)["nothing-measured"].severity == "void"


def test_a_changed_file_voids_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [SOUND])
    (run.path / files.LATENCY).chmod(0o600)
    (run.path / files.LATENCY).write_text("")
    verdict = check_run(RunDirectory.open(run.path))
    assert verdict.stamp == "void"
    assert {"files-damaged", "clipped-histogram"} <= {finding.rule for finding in verdict.findings}


def test_congestion_control_is_compared_with_the_order(tmp_path: Path) -> None:
    spec = spec_of(SOUND)
    for volume in spec["volumes"]:
        volume["iscsi"] = {"congestion_control": "dctcp"}
    run = make_run(tmp_path / "run", [replace(SOUND, spec={"volumes": spec["volumes"]})])
    assert found(run)["congestion-control"].severity == "caution"


@pytest.mark.parametrize(("user", "is_guest"), [("joe", False), (None, True)])
def test_a_guest_session_is_only_told_of_a_user_that_was_named(
    tmp_path: Path, user: str | None, is_guest: bool
) -> None:
    run = make_run(tmp_path / "run", [replace(SOUND, spec=of_user(user), session={"guest": is_guest})])
    assert "guest-session" not in found(run)


def on_hosts(
    folder: Path, *events: TimedEvent, wall_clocks_s: tuple[float, float] = (0.0, 0.0)
) -> RunDirectory:
    """A sound run on two hosts, with what their load reported."""
    known = {
        f"h{number}": {"wall_clock_offset_ns": int(ahead_s * 1e9)}
        for number, ahead_s in enumerate(wall_clocks_s, start=1)
    }
    with RunWriter.create(folder, name="x", workload=WorkloadSource(name="x"), now=Clock()) as writer:
        writer.begin_step("rd1", spec=spec_of(SOUND), facts={"cluster": known})
        for interval in intervals_of(SOUND, Random(1)):
            writer.interval(interval)
        for event in events:
            writer.event(event)
        writer.end_step(summary_of(SOUND, Random(2)))
        return writer.close("complete", judge=check_run)


@pytest.mark.parametrize(("kind", "rule"), [("host_lost", "hosts-lost"), ("host_clock", "host-clock-moved")])
def test_a_host_that_was_lost_or_whose_clock_moved_marks_the_result(
    kind: str, rule: str, tmp_path: Path
) -> None:
    run = on_hosts(tmp_path / "run", TimedEvent(7.5, kind, "h2: what happened", blame="host"))
    assert run.manifest.validity is not None
    assert run.manifest.validity.stamp == "caution"
    finding = {one.rule: one for one in run.manifest.validity.findings}[rule]
    assert (finding.severity, finding.reason) == ("caution", "h2: what happened")
    assert "1 of 2 hosts" in finding.effect
    assert "events" not in found(run), "told once"


@pytest.mark.long
def test_hosts_that_disagree_about_the_time_of_day_are_told_and_change_nothing(tmp_path: Path) -> None:
    run = on_hosts(tmp_path / "apart", wall_clocks_s=(0.9, -3600.0))
    assert run.manifest.validity is not None
    assert run.manifest.validity.stamp == "valid"
    finding = found(run)["wall-clocks-apart"]
    assert finding.severity == "note"
    assert "h2 is 3600.0 s behind; no figure is changed" in finding.reason
    assert "wall-clocks-apart" not in found(on_hosts(tmp_path / "close", wall_clocks_s=(0.9, -0.9)))


def test_rule_names_are_unique() -> None:
    names = [rule.id for rule in RUN_RULES] + [rule.id for rule in STEP_RULES]
    assert len(names) == len(set(names))
    untested = set(names) - {case.rule for case in CASES}
    assert untested == {
        "run-ended-badly",
        "files-damaged",
        "nothing-measured",
        "intervals-missing",
        "tail-not-steady",
        "clipped-histogram",
        "virtual-time",
        "hosts-lost",
        "host-clock-moved",
        "wall-clocks-apart",
        "imported",
        "trace-cut",
    }


def test_a_run_with_faults_need_not_be_steady(tmp_path: Path) -> None:
    uneven = PathLoad([Way("h1.p0-a1.p0", [20 + 20 * n for n in range(20)])], intervals=20)
    assert found(make_path_run(tmp_path / "bad", [uneven]))["not-steady"].severity == "caution"
    broken = replace(uneven, events=[TimedEvent(1.6, "fault", "cable h1.p0")])
    doubt = found(make_path_run(tmp_path / "broken", [broken]))["not-steady"]
    assert doubt.severity == "note"
    assert "cable h1.p0" in doubt.reason


@pytest.mark.parametrize(("idle_cpus", "advice"), [("polling", "other guests"), ("sleeping", "run as root")])
def test_stolen_time_is_laid_to_sleep_until_no_cpu_sleeps(
    idle_cpus: str, advice: str, tmp_path: Path
) -> None:
    """The laboratory keeps the fact in its own record, as `linerate.study` writes it."""
    load = replace(SOUND, counters={**lab(40.0, 40.0), "machine.stolen_s": 10.0})
    clock = Clock()
    with RunWriter.create(tmp_path / "run", name="x", workload=WorkloadSource(name="x"), now=clock) as writer:
        writer.begin_step("rd1", spec=spec_of(load), facts={}, san={"facts": {"idle_cpus": idle_cpus}})
        for interval in intervals_of(load, Random(1)):
            writer.interval(interval)
        writer.end_step(summary_of(load, Random(1)), counters=load.counters)
        run = writer.close("complete")
    assert advice in found(run)["stolen-time"].advice


def test_memory_that_was_used_before_is_not_doubted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [replace(SOUND, counters={"array.a1.page_faults": 300.0})])
    assert "first-touch" not in found(run)


def test_what_the_user_chose_is_no_doubt(tmp_path: Path) -> None:
    """A short run of few intervals with verify: three notes, and the stamp of a valid run."""
    quick = replace(SOUND, intervals=4, warmup=0, spec={"elapsed_s": 4.0, "verify": "on"})
    run = make_run(tmp_path / "run", [quick])
    verdict = check_run(run)
    assert verdict.stamp == "valid"
    assert {"too-short", "too-few-intervals", "verify-on"} <= {one.rule for one in verdict.findings}


def test_rules_have_floors(tmp_path: Path) -> None:
    """Chance among few I/Os is no finding: 30 IOPS whose rounds differ, and a share that is off by chance."""
    few = replace(SOUND, iops=30, volumes=1, outstanding=1, latency_ms=30, jitter=0.35, intervals=10)
    assert "not-steady" not in found(make_run(tmp_path / "few", [few], seed=3))
    many = replace(few, iops=30_000, latency_ms=0.03)
    assert "not-steady" in found(make_run(tmp_path / "many", [many], seed=3))


@pytest.mark.long
def test_effects_are_computed_from_the_measurement(tmp_path: Path) -> None:
    deep = found(make_run(tmp_path / "deep", [replace(SOUND, outstanding=30)]))["depth-missed"]
    achieved = summarise(make_run(tmp_path / "same", [replace(SOUND, outstanding=30)]))[0].queue_depth
    assert (
        deep.effect == f"with the whole depth the rate may be up to {100 * (120 / achieved - 1):.0f} % higher"
    )
    others = found(make_run(tmp_path / "busy", [replace(SOUND, counters=lab(busy_s=60.0, ours_s=30.0))]))
    assert "up to 33 % higher; up to 25 % of the I/Os" in others["other-work"].effect
    short = found(make_run(tmp_path / "slow", [replace(SOUND, spec=OPEN, iops=30_000)]))["late-arrivals"]
    assert short.effect.startswith("the rate is 2")
