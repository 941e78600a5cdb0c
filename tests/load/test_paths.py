"""A run over four sessions on two paths, one of which fails and comes back: no error, no wrong block, all is told."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest
from linerate.array import ArrayConfig, EmbeddedArray, TargetConfig, VolumeConfig
from linerate.results import WorkloadSource
from linerate.run import Execution, RunEvent, carry_out
from linerate.run.events import IntervalMeasured, StepEnded
from linerate.volumes import Consent
from linerate.workload.toml_file import parse_toml

from tests.load.relay import Relay

TARGET = "iqn.2026-11.lab.linerate:paths"
CUT_AFTER, MENDED_AFTER = 2, 6
"""Indices of intervals."""
PATH_TIMEOUT_S, SLACK_S = 0.5, 1.0
WORKLOAD = """\
name = "paths"
elapsed = 5
warm_up = 0
interval = 0.25
verify = true

[[volume]]
name = "v1"
target = "{url}"
outstanding = 16
paths = [
    {{ name = "left", portal = "{left}", sessions = 2 }},
    {{ name = "right", portal = "{right}", sessions = 2 }},
]
multipath = {{ policy = "{policy}", checker_interval = "200ms", path_timeout = "500ms" }}

[[stream]]
name = "s"
size = {{ min = "512", max = "64k", align = "512" }}
read = 50
"""


@pytest.mark.long
def test_data_stay_right_while_a_path_fails_and_comes_back(tmp_path: Path) -> None:
    volume = VolumeConfig(lun=0, name="v", size_bytes=64 << 20)
    portals = ("127.0.0.1:0", "127.0.0.1:0")
    config = ArrayConfig(name="lab", portals=portals, targets=(TargetConfig(name=TARGET, volumes=(volume,)),))
    with EmbeddedArray(config) as array, Relay(array.portals[0]) as left, Relay(array.portals[1]) as right:
        for policy in ("round_robin", "least_queue_depth"):
            text = WORKLOAD.format(url=array.url(0), left=left.portal, right=right.portal, policy=policy)
            shown: list[RunEvent] = []
            cut_ns: list[int] = []

            def follow(event: RunEvent, shown: list[RunEvent] = shown, cut_ns: list[int] = cut_ns) -> None:
                shown.append(event)
                if isinstance(event, IntervalMeasured) and event.index == CUT_AFTER:
                    left.cut()
                    cut_ns.append(time.monotonic_ns())
                elif isinstance(event, IntervalMeasured) and event.index == MENDED_AFTER:
                    left.mend()

            plan = parse_toml(text, "paths.toml", name="paths")
            source = WorkloadSource(name="paths.toml", text=text)
            outcome = carry_out(Execution(plan, source, tmp_path / policy, Consent.nothing()), follow)

            assert outcome.state == "complete", outcome.reason
            run = outcome.run
            assert run.intervals["errors"].sum() == 0
            told = [(event.kind, event.path) for event in run.events if event.path]
            for session in ("left#1", "left#2"):
                assert ("path_failed", session) in told
                assert ("path_restored", session) in told
            facts = run.manifest.steps[0].facts
            cut_at_s = (cut_ns[0] - facts["started_monotonic_ns"]) / 1e9
            elsewhere_at_s = min(event.at_s for event in run.events if event.kind == "failover")
            assert cut_at_s < elsewhere_at_s < cut_at_s + PATH_TIMEOUT_S + SLACK_S

            by_path = run.paths.group_by("path").agg(pl.col("requeued", "write_ios", "read_ios").sum())
            assert set(by_path["path"]) == {"left#1", "left#2", "right#1", "right#2"}
            assert by_path.filter(pl.col("path").str.starts_with("left"))["requeued"].sum() > 0
            assert by_path.filter(pl.col("path").str.starts_with("right"))["requeued"].sum() == 0
            last = run.paths.filter(pl.col("interval") == run.paths["interval"].max())
            assert set(last["state"]) == {"active_optimized"}
            ended = shown[-1]
            assert isinstance(ended, StepEnded)
            assert [path.path for path in ended.paths] == ["left#1", "left#2", "right#1", "right#2"]
