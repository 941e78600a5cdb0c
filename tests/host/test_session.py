"""Session settings reach the volumes of a run, and several sessions share a volume's load."""

from __future__ import annotations

from typing import Any

from linerate import _core
from linerate.array import EmbeddedArray, eight_volumes
from linerate.host import catalogue, parse_settings
from linerate.host.session import with_session_settings
from linerate.setting import Value
from linerate.workload import RunSpec, SessionSpec, StreamSpec, VolumeSpec

AT_LOGIN: dict[str, Value] = {
    "nagle": True,
    "header_digest": "crc32c",
    "data_digest": "crc32c",
    "immediate_data": False,
    "initial_r2t": True,
    "first_burst_bytes": 4096,
    "max_burst_bytes": 65_536,
    "max_recv_data_segment_bytes": 8192,
    "recv_buffer_bytes": 131_072,
    "send_buffer_bytes": 262_144,
    "sessions_per_volume": 3,
    "connections": 2,
}
"""What our array agrees to as it is asked for; the socket tells its buffers twice as large, as Linux does."""
URL = "iscsi://10.9.0.5:3260/iqn.2026-11.lab:a/0"


def _run(**volume: object) -> RunSpec:
    return RunSpec(
        name="r",
        volumes=(
            VolumeSpec(name="v1", url=URL, outstanding=5, session="shared", **volume),
            VolumeSpec(name="v2", url=URL, outstanding=1),
        ),
        streams=(StreamSpec(name="all", volumes=("v1", "v2")), StreamSpec(name="one", volumes=("v2",))),
    )


def test_every_session_setting_changes_a_run() -> None:
    wanted: dict[str, Value] = {
        "nagle": "on",
        "header_digest": "crc32c",
        "data_digest": "offer",
        "immediate_data": "off",
        "initial_r2t": "on",
        "first_burst_bytes": "4k",
        "max_burst_bytes": "64k",
        "max_recv_data_segment_bytes": "8k",
        "max_outstanding_r2t": 4,
        "recv_buffer_bytes": "128k",
        "send_buffer_bytes": "256k",
        "sessions_per_volume": 2,
        "connections": 4,
        "outstanding": 7,
    }
    assert wanted.keys() == {setting.name for setting in catalogue().values() if setting.where == "session"}
    changed = with_session_settings(_run(), parse_settings(wanted))
    assert changed.volumes[0].iscsi == SessionSpec(
        nodelay=False,
        header_digest="crc32c",
        data_digest="offer",
        immediate_data=False,
        initial_r2t=True,
        first_burst_bytes=4096,
        max_burst_bytes=65_536,
        max_recv_data_segment_bytes=8192,
        max_outstanding_r2t=4,
        recv_buffer_bytes=131_072,
        send_buffer_bytes=262_144,
        connections=4,
    )
    assert [(volume.name, volume.outstanding) for volume in changed.volumes] == [
        ("v1", 4),
        ("v1.2", 3),
        ("v2", 4),
        ("v2.2", 3),
    ]


def test_sessions_share_the_outstanding_of_their_volume() -> None:
    changed = with_session_settings(_run(), {"sessions_per_volume": 3})
    assert [(volume.name, volume.outstanding, volume.url) for volume in changed.volumes] == [
        ("v1", 2, URL),
        ("v1.2", 2, URL),
        ("v1.3", 1, URL),
        ("v2", 1, URL),
    ]
    assert changed.streams[0].volumes == ("v1", "v1.2", "v1.3", "v2")
    assert changed.streams[1].volumes == ("v2",)
    assert {volume.session for volume in changed.volumes} == {"own"}, "a shared session would be one again"
    assert RunSpec.model_validate_json(changed.seam_json()) == changed


def test_nothing_asked_for_is_nothing_changed() -> None:
    run = _run(iscsi=SessionSpec(immediate_data=False))
    assert with_session_settings(run, {}) == run


def test_options_of_a_volume_stay_where_nothing_else_is_asked() -> None:
    run = _run(iscsi=SessionSpec(immediate_data=False, nodelay=True))
    changed = with_session_settings(run, {"nagle": True})
    assert changed.volumes[0].iscsi == SessionSpec(immediate_data=False, nodelay=False)


def test_a_login_agrees_to_what_was_asked_for() -> None:
    """A real session with a real array, as its two ends and the socket see it afterwards."""
    with EmbeddedArray(eight_volumes(1 << 20)) as array:
        plain = RunSpec(
            name="r",
            volumes=(VolumeSpec(name="v", url=array.url(0), outstanding=6),),
            streams=(StreamSpec(name="s", volumes=("v",)),),
        )
        before, after = _sessions(plain), _sessions(with_session_settings(plain, AT_LOGIN))
    assert (len(before), len(after)) == (1, 3)
    assert len({session["local_address"] for session in after}) == 3, "a connection for each session"
    wanted = {name: value for name, value in AT_LOGIN.items() if name not in ("nagle", "sessions_per_volume")}
    wanted |= {"nodelay": False}
    for session in after:
        found = {name: session[name] for name in wanted}
        found |= {name: found[name] // 2 for name in ("recv_buffer_bytes", "send_buffer_bytes")}
        assert found == wanted
    assert {name for name in wanted if before[0][name] == after[0][name]} == set(), "it was so before"


def _sessions(run: RunSpec) -> list[dict[str, Any]]:
    going = _core.Run.start(run.seam_json())
    try:
        return [volume["session"] for volume in going.facts()["volumes"]]
    finally:
        going.stop()
        going.finish()
