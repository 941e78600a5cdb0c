"""Paths and multipath settings: in a TOML file, on the command line, out of a multipath.conf."""

from __future__ import annotations

from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.workload import LunMap, Overrides, RunSpec, VolumeSpec
from linerate.workload.multipath import MultipathTable, parse_path, read_conf
from linerate.workload.multipath.conf import parse_conf
from linerate.workload.spec import MultipathSpec, PathSpec
from linerate.workload.toml_file import parse_toml

from .conftest import Read

FILE = """
multipath = { policy = "least_blocks", failback = "10s" }

[[volume]]
name = "v"
count = 2
target = "iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}"
paths = [
    "10.1.0.{n} -> 10.1.0.10",
    "p1 -> 10.1.1.10:3261 weight 10 standby",
    { portal = "[fd00::{n}]", sessions = 2 },
]
multipath = { no_path_queue = "forever", path_timeout = "500ms", bytes_per_path = "64k" }

[[stream]]
name = "s"
"""
VDBENCH = (
    "sd=sd1,lun=iscsi://10.0.0.5/iqn.2026-11.lab:d/0\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,elapsed=5,interval=1\n"
)
LUN = "iscsi://10.0.0.5/iqn.2026-11.lab:d/0"
LEFT, RIGHT = parse_path("10.1.0.1 -> 10.1.0.10"), parse_path("10.1.1.1 -> 10.1.1.10")


def spec_of(text: str) -> RunSpec:
    return next(parse_toml(text, "w.toml", name="w").steps()).spec


def test_paths_of_a_file() -> None:
    first, second = spec_of(FILE).volumes
    assert [path.name for path in second.paths] == ["10.1.0.2-10.1.0.10", "p1-10.1.1.10:3261", "[fd00::2]"]
    assert first.paths == (
        PathSpec(name="10.1.0.1-10.1.0.10", portal="10.1.0.10:3260", source_address="10.1.0.1"),
        PathSpec(name="p1-10.1.1.10:3261", portal="10.1.1.10:3261", interface="p1", weight=10, standby=True),
        PathSpec(name="[fd00::1]", portal="[fd00::1]:3260", sessions=2),
    )
    assert first.multipath == MultipathSpec(
        policy="least_blocks",
        bytes_per_path=64 << 10,
        failback=10.0,
        path_timeout_s=0.5,
        no_path_queue_s=None,
    )
    assert spec_of(FILE).volumes[0] == VolumeSpec.model_validate(first.model_dump())


def test_a_path_may_have_several_connections_in_each_session() -> None:
    path = spec_of(FILE.replace("weight 10 standby", "connections 4 standby")).volumes[0].paths[1]
    assert (path.connections, path.sessions, path.standby) == (4, 1, True)
    text = FILE + '[iscsi]\nconnections = 2\nconnection_policy = "least_queue_depth"\n'
    options = spec_of(text).volumes[0].iscsi
    assert (options.connections, options.connection_policy) == (2, "least_queue_depth")


def test_without_paths_nothing_of_it_is_handed_over() -> None:
    text = f'[[volume]]\nname = "v"\ntarget = "{LUN}"\n[[stream]]\nname = "s"\n'
    volume = spec_of(text).model_dump()["volumes"][0]
    assert not {"paths", "multipath"} & volume.keys()


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('"10.1.0.{n} -> 10.1.0.10"', '"mesh"', "w.toml:9: volume[0].paths[0]: mesh is a layout", "a study"),
        ('"10.1.0.{n} -> 10.1.0.10"', '"a b c"', "paths[0]: 'a b c' is not a path", "10.1.0.1 -> 10.1.0.10"),
        ("10.1.1.10:3261", "10.1.1.10:99999", "w.toml:10: volume[0].paths[1]: '99999'", "65535"),
        ("sessions = 2", "session = 2", "paths[2].session: no such key", "sessions"),
        ("sessions = 2", "connections = 65", "w.toml:11: volume[0].paths[2].connections", ""),
        ("sessions = 2", "sessions = 300", "302 sessions over all paths", "256"),
        (
            "{ portal",
            '{ name = "p1-10.1.1.10:3261", portal',
            "w.toml:11: path p1-10.1.1.10:3261: the name",
            "",
        ),
        ('"least_blocks"', '"fastest"', "w.toml:2: multipath.policy", ""),
        ('"least_blocks"', '"round_robin"', "w.toml:10: path p1", "round_robin_subset"),
        ('"500ms"', '"1ms"', "w.toml:13: volume[0].multipath.path_timeout: 0.001 s", "0.05 s"),
        ('"10s"', '"soon"', "w.toml:2: multipath.failback: 'soon' is not a time", "5m"),
        ("iscsi://10.0.0.5/iqn.2026-11.lab:disks/{n-1}", "null:8g", "the target is no iSCSI LUN", "iscsi://"),
    ],
)
def test_mistakes_in_a_file_have_line_and_key(old: str, new: str, message: str, hint: str) -> None:
    assert old in FILE
    with pytest.raises(UserError) as caught:
        spec_of(FILE.replace(old, new))
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_command_line_gives_a_vdbench_file_paths(read: Read) -> None:
    overrides = Overrides(
        paths=(parse_path("10.1.{n}.1 -> 10.1.{n}.10"), RIGHT.model_copy(update={"name": "right"})),
        multipath_base=MultipathSpec(policy="least_queue_depth", checker_interval_s=5.0),
        multipath=MultipathTable.model_validate({"path_timeout": "2s"}),
    )
    volume = next(read(VDBENCH, overrides=overrides).steps()).spec.volumes[0]
    assert [(path.name, path.portal) for path in volume.paths] == [
        ("10.1.1.1-10.1.1.10", "10.1.1.10:3260"),
        ("right", "10.1.1.10:3260"),
    ]
    assert volume.multipath == MultipathSpec(
        policy="least_queue_depth", checker_interval_s=5.0, path_timeout_s=2.0
    )


def test_the_command_line_cannot_contradict_itself(read: Read) -> None:
    with pytest.raises(UserError, match="no volume has paths"):
        read(VDBENCH, overrides=Overrides(multipath=MultipathTable(policy="service_time")))
    with pytest.raises(UserError, match=r"volume sd1: path 10.1.0.1-10.1.0.10: the name is used twice"):
        read(VDBENCH, overrides=Overrides(paths=(LEFT, LEFT)))
    with pytest.raises(UserError, match="no volume has paths"):
        read(VDBENCH, overrides=Overrides(paths=(LEFT, RIGHT), luns=LunMap({"*": "null:8g"})))


CONF = """
# a comment
defaults {
    user_friendly_names yes
    path_grouping_policy failover
    polling_interval 10  ! seconds
    no_path_retry 6
}
devices {
    device {
        vendor "LNR ""X"" "
        product ".*"
        path_grouping_policy multibus
        path_selector "queue-length 0"
        failback 10
        fast_io_fail_tmo 3
        rr_min_io_rq 16
    }
}
blacklist {
    devnode "^sd[a-z]"
}
"""


def test_multipath_conf(tmp_path: Path) -> None:
    file = tmp_path / "multipath.conf"
    file.write_text(CONF)
    spec, notices = read_conf(file)
    assert spec == MultipathSpec(
        policy="least_queue_depth",
        ios_per_path=16,
        failback=10.0,
        path_timeout_s=3.0,
        checker_interval_s=10.0,
        no_path_queue_s=60.0,
    )
    assert [str(notice) for notice in notices] == [
        f"{file}:20: blacklist: left out; the workload names its volumes itself",
        f"{file}:4: without effect here: user_friendly_names, vendor, product",
    ]


def test_an_empty_multipath_conf_is_multipath_tools_defaults() -> None:
    spec, notices = parse_conf("", "m.conf")
    assert spec == MultipathSpec(
        policy="failover_only",
        failback="manual",
        path_timeout_s=5.0,
        checker_interval_s=5.0,
        no_path_queue_s=0.0,
    )
    assert "fast_io_fail_tmo 5" in str(notices[0])


@pytest.mark.parametrize(
    ("grouping", "selector", "policy"),
    [
        ("failover", "round-robin 0", "failover_only"),
        ("multibus", "round-robin 0", "round_robin"),
        ("group_by_prio", "round-robin 0", "round_robin_subset"),
        ("group_by_prio", "service-time 0", "service_time"),
        ("group_by_tpg", "queue-length 0", "least_queue_depth"),
    ],
)
def test_groups_and_selectors_are_policies(grouping: str, selector: str, policy: str) -> None:
    text = f'defaults {{\n path_grouping_policy {grouping}\n path_selector "{selector}"\n}}\n'
    assert parse_conf(text, "m.conf")[0].policy == policy


@pytest.mark.parametrize(
    ("inside", "message", "hint"),
    [
        ('path_selector "io-affinity 0"', "m.conf:2: path_selector io-affinity 0", "round-robin"),
        ("path_grouping_policy group_by_serial", "path_grouping_policy group_by_serial", "multibus"),
        ("path_selectr x", "m.conf:2: path_selectr: no such key", "path_selector"),
        ("failback followover", "failback followover", "immediate"),
        ("fast_io_fail_tmo off", "fast_io_fail_tmo off", "a number"),
        ("rr_weight priorities", "rr_weight priorities", "uniform"),
        ("prio rdac", "prio rdac", "alua"),
        ('features "1 pg_init_retries"', "features 1 pg_init_retries", "queue_if_no_path"),
        ("no_path_retry sometimes", "no_path_retry sometimes", "number"),
        ('alias "x', "m.conf:2: a quote without its end", ""),
        ("a b c", "m.conf:2: 'a b c' cannot be read", ""),
        ("device {", "m.conf:1: defaults { is not closed", "}"),
    ],
)
def test_what_cannot_be_had_is_refused_with_its_line(inside: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_conf(f"defaults {{\n{inside}\n}}\n", "m.conf")
    assert message in caught.value.message
    assert hint in caught.value.message + caught.value.hint


def test_several_devices_are_not_guessed_from() -> None:
    text = "devices {\n device {\n failback manual\n }\n device {\n failback immediate\n }\n}\n"
    with pytest.raises(UserError, match=r"m.conf:5: devices: 2 sections say how paths are used"):
        parse_conf(text, "m.conf")
