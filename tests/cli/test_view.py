"""Views: the same events as plain lines, as JSON lines and as a live table."""

from __future__ import annotations

import io

from linerate.cli.view.events import (
    LINES,
    AnyEvent,
    Figures,
    Happened,
    IntervalMeasured,
    LatencyRecord,
    PathFigures,
    RunEnded,
    RunNotice,
    RunStarted,
    StepEnded,
    StepStarted,
)
from linerate.cli.view.live import LiveView
from linerate.cli.view.ndjson import NdjsonView
from linerate.cli.view.plain import PlainView
from rich.console import Console, ConsoleDimensions

ELLIPSIS = "\u2026"
CLEAR = "\x1b[2J"


def _latency(iops: float) -> LatencyRecord:
    return LatencyRecord(
        iops=iops,
        mib_s=iops / 128,
        mean_ms=0.43,
        max_ms=12.3,
        stddev_ms=0.2,
        p99_ms=1.234,
        response_mean_ms=0.43,
        ios=int(iops),
        bytes=int(iops) * 8192,
        errors=0,
    )


FIGURES = Figures(
    total=_latency(1000.0),
    read=_latency(670.0),
    queue_depth=39.9,
    cpu_percent=88.1,
    cpu_system_percent=None,
    retransmits=3,
)


def _interval(index: int, *, warmup: bool) -> IntervalMeasured:
    return IntervalMeasured(
        step="rd1", index=index, start_s=index, end_s=index + 1, warmup=warmup, figures=FIGURES
    )


EVENTS: tuple[AnyEvent, ...] = (
    RunStarted(name="demo", directory="runs/x", steps=1, planned_s=3),
    RunNotice(message="a.vdb:3: a blank after a comma"),
    StepStarted(
        step="rd1",
        number=1,
        of=1,
        banner="Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=2 warmup=1; For loops: None",
        warmup_s=1,
        elapsed_s=2,
        interval_s=1,
        volumes=8,
        driver="epoll",
    ),
    _interval(0, warmup=True),
    _interval(1, warmup=False),
    Happened(step="rd1", at_s=1.5, kind="session_lost", volume="sd3", message="reset", blame="peer"),
    _interval(2, warmup=False),
    StepEnded(step="rd1", state="complete", figures=FIGURES),
    RunEnded(state="complete", directory="runs/x", exit_code=0),
)

FIGURES_TEXT = (
    "    1000.0      7.81     8192   67.0    0.430    0.430        -"
    "    1.234   12.300    0.200   39.9   88.1      -      3"
)
HEADER_TOP = (
    "    interval        i/o    MB/sec    bytes   read     resp     read    write"
    "     resp     resp   stddev  queue   cpu%   cpu%    re-"
)
HEADER_BOTTOM = (
    "                   rate   1024**2      i/o    pct  time ms  resp ms  resp ms"
    "   p99 ms   max ms  resp ms  depth  sys+u    sys  trans"
)
PLAIN = f"""\
demo: 1 step, takes 3 s; run directory runs/x
note: a.vdb:3: a blank after a comma

Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=2 warmup=1; For loops: None  [8 volumes, epoll]
{HEADER_TOP}
{HEADER_BOTTOM}
          1w {FIGURES_TEXT}
           2 {FIGURES_TEXT}
       1.500 session_lost sd3: reset
           3 {FIGURES_TEXT}
     avg_2-3 {FIGURES_TEXT}
"""


def test_plain_lines() -> None:
    out = io.StringIO()
    with PlainView(out) as view:
        for event in EVENTS:
            view.show(event)
    assert out.getvalue() == PLAIN


def test_a_load_with_a_rate_to_keep_has_a_response_time_beside_the_service_time() -> None:
    waited = _latency(1000.0).model_copy(update={"response_mean_ms": 401.5, "response_p99_ms": 432.1})
    figures = FIGURES.model_copy(update={"total": waited})
    out = io.StringIO()
    with PlainView(out) as view:
        for event in EVENTS:
            match event:
                case StepStarted():
                    event = event.model_copy(update={"paced": True})
                case IntervalMeasured():
                    event = event.model_copy(update={"figures": figures})
                case _:
                    pass
            view.show(event)
    head, below, first = out.getvalue().splitlines()[4:7]
    assert head.split()[-6:-3] == ["with", "wait", "queue"]
    assert "wait ms   p99 ms" in below
    assert first.split()[-6:-4] == ["401.500", "432.100"]
    assert all(len(line) <= len(head) for line in (below, first))


def test_json_lines_come_back_as_the_same_events() -> None:
    out = io.StringIO()
    with NdjsonView(out) as view:
        for event in EVENTS:
            view.show(event)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith('{"schema":"linerate.events/1","type":"run_started"')
    assert tuple(LINES.validate_json(line) for line in lines) == EVENTS


def _live(width: int, events: tuple[AnyEvent, ...]) -> tuple[str, str]:
    """What the live view has printed for good, and what its moving part shows last."""
    printed = io.StringIO()
    console = Console(file=printed, width=width, height=40, force_terminal=True, color_system=None)
    view = LiveView(console)
    for event in events:
        view.show(event)
    with console.capture() as moving:
        console.print(view._render())
    return printed.getvalue(), moving.get()


def test_the_time_that_the_whole_run_still_takes_is_shown() -> None:
    started = RunStarted(name="demo", directory="runs/x", steps=3, planned_s=600)
    first = EVENTS[2].model_copy(update={"of": 3, "warmup_s": 60, "elapsed_s": 120})
    printed, moving = _live(140, (started, first))
    assert "demo: 3 steps, takes 10 min; run directory runs/x" in printed
    assert "warm-up, 3 min left; run 10 min left" in moving
    last = first.model_copy(update={"number": 3})
    assert "run " not in _live(140, (started, first, last))[1]


def test_a_terminal_of_another_size_is_cleared_and_drawn_anew() -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=140, height=40, force_terminal=True, color_system=None)
    with LiveView(console) as view:
        for event in EVENTS[:-2]:
            view.show(event)
        before = printed.getvalue()
        assert CLEAR not in before
        console.size = ConsoleDimensions(80, 24)
        view.show(_interval(3, warmup=False))
    after = printed.getvalue().removeprefix(before)
    assert after.count(CLEAR) == 1
    drawn = after.partition(CLEAR)[2]
    assert "demo: 1 step" in drawn
    assert drawn.index("session_lost sd3") < drawn.index("step 1 of 1")


def test_live_table_shows_banner_progress_and_intervals() -> None:
    _, moving = _live(140, EVENTS[:-2])
    assert "Starting RD=rd1" in moving
    assert "step 1 of 1" in moving
    assert "8 volumes, epoll" in moving
    assert "1 warm-up" in moving
    assert moving.count("1000.0") == 3
    assert "i/o rate" in moving


def test_a_narrow_terminal_drops_columns_and_wraps_none() -> None:
    _, moving = _live(80, EVENTS[:-2])
    rows = [line for line in moving.splitlines() if "1000.0" in line]
    assert len(rows) == 3
    assert all(len(row.rstrip()) <= 80 and row.rstrip().endswith("3") for row in rows)


def test_a_narrow_terminal_has_room_for_paths_and_a_load_with_a_rate() -> None:
    paths = (
        _path("10.231.1.1-10.231.1.101", "active_non_optimized", 21640.0),
        _path("10.231.2.1-10.231.2.101", "failed", 0.0, requeued=512),
    )
    step = EVENTS[2].model_copy(update={"paced": True, "of": 12, "warmup_s": 90, "elapsed_s": 7200})
    latest = _interval(3, warmup=False).model_copy(update={"paths": paths})
    printed, moving = _live(80, (EVENTS[0], step, latest))
    lines = moving.splitlines()
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert ELLIPSIS not in moving
    assert sum("step 1 of 12" in line and "left; run" in line for line in lines) == 1
    assert any("10.231.1.1-10.231.1.101 non_optimized" in line and "21640.0" in line for line in lines)
    assert any("with" in line and "queue" in line for line in lines)
    ended = StepEnded(step="rd1", state="complete", figures=FIGURES, paths=paths)
    printed, _ = _live(80, (EVENTS[0], step, latest, ended))
    assert ELLIPSIS not in printed


def test_a_finished_step_leaves_its_average_behind() -> None:
    printed, moving = _live(140, EVENTS)
    assert "complete  RD=rd1" in printed
    assert "average" in printed
    assert "session_lost sd3: reset" in printed
    assert moving.strip() == ""


def _path(name: str, state: str, iops: float, requeued: int = 0) -> PathFigures:
    return PathFigures(
        path=name,
        state=state,
        iops=iops,
        mib_s=iops / 128,
        mean_ms=0.5,
        max_ms=7.25,
        queue_depth=4.0,
        requeued=requeued,
        retransmits=1,
    )


PATHS = (_path("left", "active_optimized", 640.0), _path("right", "failed", 0.0, requeued=5))
PATH_LINES = """\
             path   state             i/o rate  MB/sec  resp ms  max ms  queue  requeued  retrans
             left   active_optimized     640.0    5.00    0.500   7.250    4.0         0        1
             right  failed                 0.0    0.00    0.500   7.250    4.0         5        1
"""


def test_paths_stand_below_the_average_of_plain_lines() -> None:
    out = io.StringIO()
    fault = Happened(
        step="rd1", at_s=1.25, kind="path_failed", volume="v1", path="right", message="reset", blame="peer"
    )
    ended = StepEnded(step="rd1", state="complete", figures=FIGURES, paths=PATHS)
    with PlainView(out) as view:
        for event in (*EVENTS[:-2], fault, ended):
            view.show(event)
    assert "1.250 path_failed v1 right: reset\n" in out.getvalue()
    assert out.getvalue().endswith(f"{FIGURES_TEXT}\n{PATH_LINES}")


def test_the_live_table_shows_the_latest_paths_and_not_too_many() -> None:
    many = tuple(_path(f"p{n}", "standby", 1.0) for n in range(11))
    for width, paths, shown in ((140, PATHS, "right"), (100, many, "and 3 more")):
        latest = _interval(3, warmup=False).model_copy(update={"paths": paths})
        _, moving = _live(width, (*EVENTS[:-2], latest))
        assert shown in moving
        assert "p8" not in moving
