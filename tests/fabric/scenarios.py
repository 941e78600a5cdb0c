"""What hosts see of the fabric: each function is run by `test_fabric` in a process that may make namespaces."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from linerate.errors import UserError
from linerate.lab.fabric.change import (
    ChangeSpec,
    DirectionFault,
    LinkChange,
    NicChange,
    PortChange,
    SwitchChange,
    TrunkChange,
    WireChange,
)
from linerate.lab.fabric.spec import NicSpec, SwitchSettings, WireSpec
from pyroute2.ethtool.ioctl import IoctlEthtool

from tests.fabric.net import Net

# A machine that is busy with other things delays everything; only what cannot be early is asserted tightly.
QUIET_S = 0.05


def data_arrives_unchanged() -> None:
    """TCP through cutting, merging, loss, reordering of rings and incomplete checksums."""
    data = random.Random(1).randbytes(3_000_000)
    nics = [
        NicSpec(),
        NicSpec(moderation_us=50, rsc=True),
        NicSpec(moderation_us=200, moderation_frames=8, rsc=True),
    ]
    for nic in nics:
        for mtu in (1500, 9000):
            with Net(nic=nic, mtu=mtu) as net:
                assert net.transfer(data) == data
                sent = net.port(1)
                frames, packets = sent["sent"]["frames"], sent["interfaces"]["p0"]["packets_sent"]
                assert frames > len(data) / mtu, "every frame fits the MTU"
                assert packets < frames, "the host left the cutting to its NIC"
    with Net(wire=WireSpec(loss=0.01), nic=nics[1]) as net:
        assert net.transfer(data) == data
        assert net.port(1)["sent"]["drops"]["loss"] > 5


def without_offloads_too() -> None:
    """Frames and checksums that the host makes itself."""
    data = random.Random(2).randbytes(1_000_000)
    with Net(nic=NicSpec(moderation_us=50, rsc=True)) as net:
        net.hosts[0].inside(_offloads_off)
        assert net.transfer(data) == data
        sent = net.port(1)
        assert sent["interfaces"]["p0"]["packets_sent"] >= sent["sent"]["frames"]
        received = net.port(2)
        assert received["interfaces"]["p0"]["packets_received"] < received["nic"]["frames"], "merged"


def _offloads_off() -> None:
    adapter = IoctlEthtool("p0")
    for feature in ("tcp-segmentation-offload", "generic-segmentation-offload", "tx-checksumming"):
        adapter.set_offload_flag(feature, 0)
    adapter.close()


def a_rate_is_a_rate() -> None:
    """2 MB at 20 Mbit/s take 0.82 s with headers; never less, and on any machine not much more."""
    data = bytes(2_000_000)
    with Net(wire=WireSpec(rate_bits_per_s=20_000_000)) as net:
        net.echo()()
        began = time.perf_counter()
        assert net.transfer(data) == data
        took = time.perf_counter() - began
        assert took > len(data) * 8 / 20e6 * 1538 / 1448 * 0.97, took
        assert took < 2.5, took


def delay_is_added_both_ways() -> None:
    """A round trip over two wires of 10 ms takes 40 ms, and half of it after a change."""
    with Net(wire=WireSpec(delay_ns=10_000_000)) as net:
        ask = net.echo()
        ask()
        times = [taken for _ in range(5) if (taken := ask())]
        assert 0.040 <= min(times) < 0.040 + QUIET_S, times
        net.change(ChangeSpec(ports={"h1": PortChange(wire=WireChange(delay_ns=0))}))
        times = [taken for _ in range(5) if (taken := ask())]
        assert 0.020 <= min(times) < 0.020 + QUIET_S, times


def vlans_are_apart() -> None:
    """Hosts 1 and 3 share a VLAN; 2 does not hear them."""
    with Net(hosts=3, vlans={1: 10, 2: 20, 3: 10}) as net:
        assert net.echo()() is None
        assert net.transfer(b"hello", 1, 3) == b"hello"
        assert net.port(2)["received"]["frames"] == 0


def links_go_down_and_up() -> None:
    """A host sees its cable pulled out, and goes on when it is back."""
    with Net() as net:
        ask = net.echo()
        assert ask() is not None
        net.change(ChangeSpec(ports={"h1": PortChange(wire=WireChange(up=False))}))
        assert "NO-CARRIER" in net.hosts[0].command("ip", "link", "show", "p0")
        assert ask() is None
        net.change(ChangeSpec(ports={"h1": PortChange(wire=WireChange(up=True))}))
        answers = (ask() for _ in range(5))
        assert any(answers)


def one_direction_fails_unseen() -> None:
    """What host 2 sends to host 1 is lost; both see their cables plugged in, and the fabric tells what it was told."""
    with Net() as net:
        ask = net.echo()
        assert ask() is not None
        deaf = LinkChange(inbound=DirectionFault(loss=1.0))
        net.change(ChangeSpec(ports={"h1": PortChange(links={0: deaf})}))
        assert ask() is None
        assert "NO-CARRIER" not in net.hosts[0].command("ip", "link", "show", "p0")
        port = net.port(1)
        assert port["received"]["drops"]["loss"] > 0
        assert port["sent"]["drops"]["loss"] == 0
        assert port["settings"]["links"][0]["inbound"] == {"loss": 1.0, "mtu": 0}
        net.change(ChangeSpec(ports={"h1": PortChange(links={0: LinkChange(inbound=DirectionFault())})}))
        assert any(ask() for _ in range(5))


def a_hop_swallows_long_frames() -> None:
    """One link was left at MTU 1500 where both hosts have 9000: short datagrams pass, long ones vanish."""
    with Net(mtu=9000) as net:
        ask = net.echo()
        assert ask(100) is not None
        assert ask(4000) is not None
        net.change(
            ChangeSpec(ports={"h2": PortChange(links={0: LinkChange(outbound=DirectionFault(mtu=1500))})})
        )
        assert ask(100) is not None
        assert ask(4000) is None
        assert net.port(2)["sent"]["drops"]["mtu"] > 0


def a_team_loses_its_carrier_with_its_last_link() -> None:
    """Conversations move to the link that is left; the host sees nothing until that is gone, too."""
    with Net(links=2) as net:
        data = random.Random(3).randbytes(300_000)
        net.fill_links(data, lambda: [link["outbound"]["frames"] for link in net.port(1)["links"]])
        for link, carrier in ((1, True), (0, False)):
            net.change(ChangeSpec(ports={"h1": PortChange(links={link: LinkChange(up=False)})}))
            shown = net.hosts[0].command("ip", "link", "show", "p0")
            assert ("NO-CARRIER" not in shown) == carrier
            assert net.port(1)["carrier"] == carrier
            if carrier:
                assert all(net.transfer(data) == data for _ in range(3))
        assert [link["up"] for link in net.port(1)["links"]] == [False, False]
        net.change(ChangeSpec(ports={"h1": PortChange(links={1: LinkChange(up=True)})}))
        assert net.transfer(data) == data


def a_switch_without_power_takes_every_carrier() -> None:
    """All of its hosts see it at the instant that the change answers with, and all come back."""
    with Net(hosts=3) as net:
        before = time.monotonic_ns()
        at = net.change(ChangeSpec(switches={"sw1": SwitchChange(up=False)}))
        assert before <= at <= time.monotonic_ns()
        shown = [host.command("ip", "link", "show", "p0") for host in net.hosts]
        assert all("NO-CARRIER" in link for link in shown)
        net.change(ChangeSpec(switches={"sw1": SwitchChange(up=True)}))
        assert net.transfer(b"again", 1, 3) == b"again"


def congestion_is_marked_for_those_who_understand() -> None:
    """ECN: a queue above its threshold marks, and the sender slows down instead of losing frames."""
    switch = SwitchSettings(ecn_threshold_bytes=20_000, queue_bytes=400_000)
    with Net(hosts=3, switch=switch, wire=WireSpec(rate_bits_per_s=50_000_000)) as net:
        for host in net.hosts:
            host.command("sysctl", "-qw", "net.ipv4.tcp_ecn=1")
        _both_into_the_third(net, bytes(1_500_000))
        received = net.port(3)["received"]
        assert received["queues"]["0"]["marked"] > 0
        assert sum(received["drops"].values()) == 0
        third = net.hosts[2].inside(lambda: Path("/proc/thread-self/net/netstat").read_text())
        names, values = (line.split() for line in third.splitlines() if line.startswith("IpExt:"))
        assert int(values[names.index("InCEPkts")]) > 0


def two_switches_joined_by_a_lag() -> None:
    """A trunk of two links carries on with one, and hosts on different switches hear each other."""
    with Net(trunk_links=2) as net:
        data = random.Random(4).randbytes(300_000)
        net.fill_links(data, lambda: [link["outbound"]["frames"] for link in net.trunk()["links"]])
        net.change(ChangeSpec(trunks={"isl": TrunkChange(links={0: LinkChange(up=False)})}))
        assert all(net.transfer(data) == data for _ in range(3))
        assert net.trunk()["settings"]["links"][0]["up"] is False


def an_interface_that_is_deleted_takes_nobody_along() -> None:
    """Somebody removes the interface of host 2; the others go on."""
    with Net(hosts=3) as net:
        ask = net.echo()
        assert ask() is not None
        net.hosts[1].command("ip", "link", "delete", "p0")
        assert ask() is None
        assert net.transfer(b"after", 1, 3) == b"after"


def changes_are_all_or_nothing() -> None:
    """A change with one mistake changes nothing; a good one reaches interface, NIC and switch."""
    with Net() as net:
        wrong = '{"ports": {"h1": {"wire": {"rate_bits_per_s": 2000000}}, "h9": {}}}'
        with pytest.raises(UserError, match="h9"):
            net.fabric.change(wrong)
        with pytest.raises(UserError, match="loss"):
            net.fabric.change('{"ports": {"h1": {"wire": {"loss": 2}}}}')
        data = bytes(500_000)
        began = time.perf_counter()
        assert net.transfer(data) == data
        assert time.perf_counter() - began < 1.9, "it would take 2 s at the refused rate"
        net.change(
            ChangeSpec(
                ports={"h1": PortChange(mtu={"p0": 4000}, nic=NicChange(moderation_us=20, rsc=True))},
                switches={"sw1": SwitchChange(flow_control="pause")},
            )
        )
        assert " mtu 4000 " in net.hosts[0].command("ip", "link", "show", "p0")


def pause_keeps_a_shallow_switch_lossless() -> None:
    """Two senders into one receiver: drops without flow control, none with it, nor with PFC."""
    data = bytes(1_500_000)
    for flow_control in ("none", "pause", "pfc"):
        switch = SwitchSettings(
            queue_bytes=16_000,
            flow_control=flow_control,
            lossless_priorities=(0,) if flow_control == "pfc" else (),
            xoff_bytes=20_000,
            xon_bytes=10_000,
        )
        with Net(hosts=3, switch=switch, wire=WireSpec(rate_bits_per_s=50_000_000)) as net:
            _both_into_the_third(net, data)
            drops = net.port(3)["received"]["drops"]
            if flow_control == "none":
                assert drops["queue"] > 0, drops
            else:
                assert sum(drops.values()) == 0, drops
                assert net.port(1)["pauses_asked"] > 0


def _both_into_the_third(net: Net, data: bytes) -> None:
    with ThreadPoolExecutor() as pool:
        received = list(pool.map(lambda sender: net.transfer(data, sender, 3), (1, 2)))
    assert received == [data, data]


def counters_are_there_and_nothing_is_left() -> None:
    """The counters that a measurement is judged by grow with what happens; the end takes the interfaces away."""
    with Net() as net:
        net.echo()()
        stats = net.fabric.stats()
        assert set(stats["lag"]) == {"max_ns", "recent_max_ns", "late_turns", "late_ns", "given_up_ns"}
        assert stats["elapsed_ns"] > 0
        assert stats["cpu_us"] > 0
        assert stats["switches"]["sw1"]["addresses"] == 2
        net.fabric.stop()
        with pytest.raises(subprocess.CalledProcessError):
            net.hosts[0].command("ip", "link", "show", "p0")
        with pytest.raises(UserError):
            net.fabric.stats()


SCENARIOS: dict[str, Callable[[], None]] = {
    work.__name__: work
    for work in (
        data_arrives_unchanged,
        without_offloads_too,
        a_rate_is_a_rate,
        delay_is_added_both_ways,
        vlans_are_apart,
        links_go_down_and_up,
        one_direction_fails_unseen,
        a_hop_swallows_long_frames,
        a_team_loses_its_carrier_with_its_last_link,
        a_switch_without_power_takes_every_carrier,
        congestion_is_marked_for_those_who_understand,
        two_switches_joined_by_a_lag,
        an_interface_that_is_deleted_takes_nobody_along,
        changes_are_all_or_nothing,
        pause_keeps_a_shallow_switch_lossless,
        counters_are_there_and_nothing_is_left,
    )
}
