"""What a probe asks the data plane for, and what it reads from it."""

from __future__ import annotations

from pathlib import Path

from linerate.probe import trials
from linerate.probe.measure import out_of_order_segments, run_spec
from linerate.workload.spec import SessionSpec, VolumeSpec

VOLUME = VolumeSpec(
    name="volume", url="iscsi://10.0.0.5:3260/iqn.2026-11.lab:disks/0", iscsi=SessionSpec(nodelay=False)
)


def test_sessions_and_connections_share_the_same_depth() -> None:
    by_name = {trial.name: run_spec(VOLUME, trial, 10.0) for trial in trials(writes=True)}
    depth = {name: sum(volume.outstanding for volume in spec.volumes) for name, spec in by_name.items()}
    assert depth["large"] == depth["sessions"] == depth["connections"]
    assert len(by_name["sessions"].volumes) == 4
    assert {volume.url for volume in by_name["sessions"].volumes} == {VOLUME.url}
    assert by_name["connections"].volumes[0].iscsi.connections == 4
    assert by_name["large"].volumes[0].iscsi.connections is None


def test_trials_keep_the_options_of_the_session_and_the_time() -> None:
    for trial in trials(writes=True):
        spec = run_spec(VOLUME, trial, 10.0)
        assert all(volume.iscsi.nodelay is False for volume in spec.volumes)
        assert spec.warmup_s + spec.elapsed_s == 10.0
        assert spec.streams[0].read_percent == (0 if trial.is_write else 100)


def test_cached_reads_stay_in_the_first_part() -> None:
    (cached,) = (trial for trial in trials(writes=False) if trial.name == "cached")
    (stream,) = run_spec(VOLUME, cached, 1.0).streams
    assert stream.range is not None
    assert (stream.range.unit, stream.range.start, stream.range.end) == ("bytes", 0, 64 << 10)


def test_out_of_order_segments_are_read_by_name(tmp_path: Path) -> None:
    file = tmp_path / "netstat"
    file.write_text("TcpExt: SyncookiesSent TCPOFOQueue X\nTcpExt: 1 42 3\nIpExt: InNoRoutes\nIpExt: 7\n")
    assert out_of_order_segments(file) == 42
    file.write_text("IpExt: InNoRoutes\nIpExt: 7\n")
    assert out_of_order_segments(file) == 0
    assert out_of_order_segments(tmp_path / "missing") == 0
