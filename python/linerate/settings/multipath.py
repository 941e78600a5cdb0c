"""Multipath settings: the paths to each volume, and how I/O is spread over them.

multipath.paths = "one-to-one"        or partial, mesh, or a list: ["h1.p0 -> a1.p0", "h1.p1 -> a1.p1 standby"]
multipath.policy = "round_robin"
multipath.path_timeout = "1s"
"""

from __future__ import annotations

from typing import Any, get_args

from linerate.san import Layout
from linerate.san.paths import PATHS_FORM, asked_paths
from linerate.setting import Choice, Number, Value, Written
from linerate.settings.san_setting import AS_BUILT, ModelField, SanSetting, read_seconds, seconds_text
from linerate.workload.spec import MultipathPolicy

PREFIX = "multipath."
PATHS = f"{PREFIX}paths"
FOR_EVER = "forever"
_TIME_FORM = 'a time, for example "1s"'
_TIME = Written(_TIME_FORM, read_seconds, seconds_text)
_COUNT_MAX = 1 << 20


def _paths(value: Value) -> Layout | tuple[str, ...]:
    """A list of paths is one text in a study: commas separate its parts."""
    listed = (
        [part.strip() for part in value.split(",")] if isinstance(value, str) and "->" in value else value
    )
    return asked_paths(listed)


def _paths_text(paths: Layout | tuple[str, ...]) -> str:
    return paths if isinstance(paths, str) else ", ".join(paths)


def _failback(value: Value) -> str | float:
    return str(value) if value in ("immediate", "manual") else read_seconds(value)


def _no_path_queue(value: Value) -> float | None:
    return None if value == FOR_EVER else read_seconds(value)


def _time_or_word(value: Any) -> str:
    return FOR_EVER if value is None else value if isinstance(value, str) else seconds_text(value)


SETTINGS = (
    SanSetting(
        name=PATHS,
        title="Paths",
        applier="multipath",
        kind=Written(PATHS_FORM, _paths, _paths_text),
        default=AS_BUILT,
        doc="""Which paths each volume has: a layout, or a list of port pairs. one-to-one connects the ports in
        their order, mesh connects each port of a host with each port of the array. A path may be on standby or
        have a weight: "h1.p1 -> a1.p1 standby".""",
    ),
    SanSetting(
        name=f"{PREFIX}policy",
        title="Load balancing policy",
        applier="multipath",
        kind=Choice(get_args(MultipathPolicy)),
        default="round_robin",
        field=ModelField("multipath", "policy"),
        elsewhere=(
            ("Windows MPIO", "Load balance policy"),
            ("multipath.conf", "path_grouping_policy, path_selector"),
        ),
        doc="""Which path the next I/O takes, among the active paths with the best priority.""",
    ),
    SanSetting(
        name=f"{PREFIX}ios_per_path",
        title="I/Os per path",
        applier="multipath",
        kind=Number("I/Os", 1, _COUNT_MAX),
        default="1",
        field=ModelField("multipath", "ios_per_path"),
        elsewhere=(("Windows MPIO", "1, fixed"), ("multipath.conf", "rr_min_io_rq")),
        doc="""After how many I/Os round robin goes to the next path. 1 spreads I/O evenly; a larger number
        keeps sequential I/Os together.""",
    ),
    SanSetting(
        name=f"{PREFIX}bytes_per_path",
        title="Bytes per path",
        applier="multipath",
        kind=Number("bytes", 1, 1 << 40),
        default="not used",
        field=ModelField("multipath", "bytes_per_path"),
        doc="""After how many bytes round robin goes to the next path. Without it, round robin counts I/Os.""",
    ),
    SanSetting(
        name=f"{PREFIX}failback",
        title="Failback",
        applier="multipath",
        kind=Written(f"immediate, manual, or {_TIME_FORM}", _failback, _time_or_word),
        default="immediate",
        field=ModelField("multipath", "failback"),
        elsewhere=(
            ("Windows MPIO", "immediate, for the preferred path"),
            ("multipath.conf", "failback"),
        ),
        doc="""When a restored path with a better priority is used again: immediately, after a time, or only if
        no other path is left (manual).""",
    ),
    SanSetting(
        name=f"{PREFIX}path_timeout",
        title="Path timeout",
        applier="multipath",
        kind=_TIME,
        default="1s",
        field=ModelField("multipath", "path_timeout_s"),
        elsewhere=(
            ("Windows MPIO", "TCP and iSCSI timeouts: LinkDownTime 15 s"),
            ("multipath.conf", "fast_io_fail_tmo"),
        ),
        doc="""A path fails when nothing is received over it for this time. Idle paths are pinged. A short time
        means a fast failover; a time below a busy array's response time fails paths that work.""",
    ),
    SanSetting(
        name=f"{PREFIX}checker_interval",
        title="Path checker interval",
        applier="multipath",
        kind=_TIME,
        default="1s",
        field=ModelField("multipath", "checker_interval_s"),
        elsewhere=(
            ("Windows MPIO", "PathVerificationPeriod 30 s"),
            ("multipath.conf", "polling_interval"),
        ),
        doc="""How often a failed path is tried again.""",
    ),
    SanSetting(
        name=f"{PREFIX}no_path_queue",
        title="Queueing without a path",
        applier="multipath",
        kind=Written(f"{_TIME_FORM}, or {FOR_EVER}", _no_path_queue, _time_or_word),
        default="30s",
        field=ModelField("multipath", "no_path_queue_s"),
        elsewhere=(
            ("Windows MPIO", "PDORemovePeriod 20 s"),
            ("multipath.conf", "no_path_retry x polling_interval"),
        ),
        doc="""How long I/O waits when no path is left. Then the application gets an error.""",
    ),
    SanSetting(
        name=f"{PREFIX}sessions",
        title="Sessions per path",
        applier="multipath",
        kind=Number("sessions", 1, 256),
        default="1",
        field=ModelField("path", "sessions"),
        doc="""How many iSCSI sessions each path has. Each session counts as a path of its own.""",
    ),
    SanSetting(
        name=f"{PREFIX}connections",
        title="Connections per session (MC/S)",
        applier="multipath",
        kind=Number("connections", 1, 64),
        default="1",
        field=ModelField("path", "connections"),
        doc="""How many TCP connections each session of a path has (MC/S). They count as one path.""",
    ),
)
