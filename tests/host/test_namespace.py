"""Every setting that this kernel has is written, read back by another way, and put back, on real namespaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from linerate.errors import HostError
from linerate.host import HostJournal, HostTarget, apply, catalogue, plan, read, restore
from linerate.host.linux.kernel import Kernel
from linerate.host.target import inside
from linerate.setting import Value

from tests.host.conftest import Namespace, may_make_namespaces

EVERYWHERE: dict[str, Value] = {
    "mtu": 9000,
    "checksum_offload": "rx",
    "lso": False,
    "gso_max_segments": 1,
    "rsc": True,
    "receive_window_autotuning": False,
    "window_scaling": False,
    "receive_buffer_default_bytes": 65_536,
    "receive_buffer_max_bytes": 1 << 20,
    "send_buffer_max_bytes": 2 << 20,
    "delayed_ack": False,
    "congestion_control": "reno",
    "ecn": "on",
    "selective_ack": False,
    "rto_min_us": 50_000,
}
"""Settings that a veth's namespace has for everybody, with a value that is not the default."""
ONLY_ROOT: dict[str, Value] = {"interrupt_moderation_us": 50}
"""Needs root outside of any user namespace."""
NOT_HERE = ("rx_ring_frames", "tx_ring_frames", "flow_control")
"""A veth has no rings to size and no pause frames."""

_STEPS = """
import json, sys
from pathlib import Path
from linerate.host import HostTarget, HostJournal, apply, read, restore

target = HostTarget("h1", ("p0", "p1"), sys.argv[1])
values = json.loads(sys.argv[2])

def values_now():
    return {f"{one.setting.name} {one.device}": one.value for one in read(target, values)}

before = values_now()
with HostJournal(Path(sys.argv[3])) as journal:
    applied = apply(target, values, journal)
    after = values_now()
    back = restore(journal)
    left = len(journal.pending)
print(json.dumps({"before": before, "after": after, "end": values_now(), "readback": dict(applied.readback),
                  "refused": [str(one) for one in applied.refused],
                  "failed": [str(one) for one in back.failed], "left": left}))
"""


@pytest.mark.long
@pytest.mark.parametrize("rootless", [True, False])
def test_every_setting_is_written_read_back_and_put_back(
    rootless: bool, make_namespace: Callable[[bool], Namespace], tmp_path: Path
) -> None:
    if not rootless and not may_make_namespaces():
        pytest.skip("needs root; test_rootless runs it inside a user namespace")
    namespace = make_namespace(rootless)
    program = tmp_path / "steps.py"
    program.write_text(_STEPS)
    first = Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    wanted = EVERYWHERE | (ONLY_ROOT if first and not rootless else {})
    process = namespace.python(program, json.dumps(wanted), str(tmp_path / "journal.jsonl"))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["refused"] == []
    assert found["readback"] == wanted
    for place, value in found["after"].items():
        assert value == wanted[place.split()[0]], place
        assert value != found["before"][place], f"{place}: the test's value is the default, it shows nothing"
    assert found["end"] == found["before"]
    assert (found["failed"], found["left"]) == ([], 0)


def test_other_tools_see_what_was_written(namespace: Namespace, tmp_path: Path) -> None:
    with HostJournal(tmp_path / "journal") as journal:
        assert apply(namespace.target, EVERYWHERE, journal).refused == ()
        link = json.loads(namespace.run("ip", "-json", "-details", "link", "show", "dev", "p1"))[0]
        assert (link["mtu"], link["gso_max_segs"]) == (9000, 1)
        for name, text in (
            ("tcp_moderate_rcvbuf", "0"),
            ("tcp_window_scaling", "0"),
            ("tcp_congestion_control", "reno"),
            ("tcp_ecn", "1"),
            ("tcp_sack", "0"),
            ("tcp_rto_min_us", "50000"),
        ):
            assert namespace.run("cat", f"/proc/sys/net/ipv4/{name}").strip() == text, name
        assert namespace.run("cat", "/proc/sys/net/ipv4/tcp_rmem").split()[1:] == ["65536", str(1 << 20)]
        routes = namespace.run("ip", "-4", "route", "show", "table", "all", "type", "unicast").splitlines()
        assert len(routes) == 4
        assert all("quickack 1" in route for route in routes), routes
        restore(journal)


def test_routes_keep_their_order_and_metrics(namespace: Namespace, tmp_path: Path) -> None:
    show = ("ip", "-4", "route", "show", "table", "all", "type", "unicast")
    before = namespace.run(*show)
    one_port = HostTarget("h1", ("p0",), namespace.target.namespace)
    with HostJournal(tmp_path / "journal") as journal:
        assert apply(one_port, {"delayed_ack": "off"}, journal).readback == {"delayed_ack": False}
        marked = namespace.run(*show).splitlines()
        assert [("quickack" in line, "dev p0" in line) for line in marked] == [
            (False, False),
            (True, True),
            (False, False),
            (True, True),
        ]
        assert marked[3].split()[-4:] == ["mtu", "1400", "quickack", "1"]
        restore(journal)
    assert namespace.run(*show) == before


def test_congestion_control_that_a_namespace_may_not_choose_goes_on_its_routes(
    namespace: Namespace, tmp_path: Path
) -> None:
    allowed = namespace.run("cat", "/proc/sys/net/ipv4/tcp_allowed_congestion_control").split()
    known = namespace.run("cat", "/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    if not (refused := [name for name in known if name not in allowed]):
        pytest.skip(f"this kernel lets a namespace choose any of {', '.join(known)}")
    before = namespace.run("ip", "-4", "route", "show", "table", "all")
    with HostJournal(tmp_path / "journal") as journal:
        applied = apply(namespace.target, {"congestion_control": refused[0]}, journal)
        assert applied.readback == {"congestion_control": refused[0]}
        assert f"congctl {refused[0]}" in namespace.run("ip", "-4", "route", "get", "10.9.0.9")
        restore(journal)
    assert namespace.run("ip", "-4", "route", "show", "table", "all") == before


def test_queues_of_a_port(namespace: Namespace, tmp_path: Path) -> None:
    most = inside(namespace.target, _queues_most)
    if most < 2:
        pytest.skip("a veth has one queue on a machine with one CPU")
    with HostJournal(tmp_path / "journal") as journal:
        assert apply(namespace.target, {"rss": "on"}, journal).before == {"rss": False}
        assert apply(namespace.target, {"rss_queues": "max"}, journal).readback == {"rss_queues": most}
        assert apply(namespace.target, {"rss": "off"}, journal).readback == {"rss": False}
        over = apply(namespace.target, {"rss_queues": 255}, journal)
        assert f"more than the {most} queues" in over.refused[0].reason
        restore(journal)
    assert [one.value for one in read(namespace.target, ["rss_queues"])] == [1, 1]


def _queues_most() -> int:
    with Kernel(("p0",)) as kernel:
        return int(kernel.ethtool("channels", "p0")["rx_max"])


def test_what_a_veth_lacks_is_said_and_nothing_is_half_applied(namespace: Namespace, tmp_path: Path) -> None:
    for name in NOT_HERE:
        with HostJournal(tmp_path / name) as journal:
            value = "off" if name == "flow_control" else "max"
            applied = apply(namespace.target, {"mtu": 4000, name: value}, journal)
            assert [one.setting for one in applied.refused] == [name, name]
            assert "no such setting" in applied.refused[0].reason
            assert applied.readback == {}
            assert journal.pending == ()
    assert [one.value for one in read(namespace.target, ["mtu"])] == [1500, 1500]


def test_a_port_that_is_not_there_stops_the_change(namespace: Namespace, tmp_path: Path) -> None:
    target = HostTarget("h1", ("p0", "nowhere"), namespace.target.namespace)
    with HostJournal(tmp_path / "journal") as journal:
        applied = apply(target, {"mtu": 4000}, journal)
    assert [str(one) for one in applied.refused] == [
        "mtu of nowhere: there is no device nowhere (there is lo, x0, p0, x1, p1)"
    ]
    assert [one.value for one in read(namespace.target, ["mtu"])] == [1500, 1500]


def test_commands_of_a_plan_do_what_apply_does(namespace: Namespace) -> None:
    """Those that need no tool beyond ip and sysctl are run as a person would; undo brings everything back."""
    wanted = {name: value for name, value in EVERYWHERE.items() if _without_ethtool(name)}
    made = plan(namespace.target, wanted)
    assert made.refused == ()
    before = [one.value for one in read(namespace.target, wanted)]
    routes = namespace.run("ip", "-4", "route", "show", "table", "all")
    for command in made.commands:
        namespace.run("sh", "-c", command)
    for one in read(namespace.target, wanted):
        assert one.value == wanted[one.setting.name], one.setting.name
    for command in made.undo:
        namespace.run("sh", "-c", command)
    assert [one.value for one in read(namespace.target, wanted)] == before
    assert namespace.run("ip", "-4", "route", "show", "table", "all") == routes


def _without_ethtool(name: str) -> bool:
    knob = catalogue()[name].linux
    return knob is not None and not knob.source.startswith("ethtool")


def test_two_cannot_change_one_host(namespace: Namespace, tmp_path: Path) -> None:
    with HostJournal(tmp_path / "one") as one, HostJournal(tmp_path / "two") as two:
        apply(namespace.target, {"mtu": 4000}, one)
        with pytest.raises(HostError, match="another Linerate is changing its settings"):
            apply(namespace.target, {"mtu": 5000}, two)
        restore(one)
    with HostJournal(tmp_path / "two") as two:
        assert apply(namespace.target, {"mtu": 5000}, two).readback == {"mtu": 5000}
        restore(two)


def test_a_host_that_has_vanished(namespace: Namespace, tmp_path: Path) -> None:
    gone = HostTarget("h2", ("p0",), "/proc/999999999/ns/net")
    with HostJournal(tmp_path / "journal") as journal:
        with pytest.raises(HostError, match="host h2 has vanished"):
            apply(gone, {"mtu": 4000}, journal)
        assert apply(namespace.target, {"mtu": 4000}, journal).refused == ()
        restore(journal)
    with pytest.raises(HostError, match="host h2 has vanished"):
        read(gone)
