"""Settings of the host's TCP stack and of its routes to the SAN."""

from __future__ import annotations

from linerate.host.linux.routes import CongestionControl, DelayedAck
from linerate.host.linux.sysctl import SysctlChoice, SysctlNumber, SysctlSwitch
from linerate.host.setting import HostSetting, Names
from linerate.host.windows.knob import TcpSetting
from linerate.setting import Choice, Number, OnOff

_PROVIDERS = (("cubic", "CUBIC"), ("dctcp", "DCTCP"), ("reno", "NewReno"), ("bbr", "BBR2"))
_RECEIVE, _SEND = "4096 131072 6291456", "4096 16384 4194304"
"""net.ipv4.tcp_rmem and tcp_wmem on hosts with 1 GiB of memory or more."""

SETTINGS = (
    HostSetting(
        name="receive_window_autotuning",
        title="Receive-window auto-tuning",
        where="stack",
        scope="host",
        kind=OnOff(),
        default="on",
        linux=SysctlSwitch("net.ipv4.tcp_moderate_rcvbuf"),
        windows=TcpSetting("AutoTuningLevelLocal", ((True, "Normal"), (False, "Disabled"))),
        names=Names(
            linux="net.ipv4.tcp_moderate_rcvbuf",
            windows="AutoTuningLevelLocal",
            published="Receive Window Auto-Tuning Level",
        ),
        doc="""The receiver lets its window grow with the rate of the stream. Off keeps the window of the
        socket's first buffer (receive_buffer_default_bytes), so a session reads at most one window per round
        trip: nothing to see on a short fast path with many sessions, a large loss with delay or few sessions.
        Windows' level disabled also stops window scaling: see window_scaling.""",
    ),
    HostSetting(
        name="window_scaling",
        title="Window scaling",
        where="stack",
        scope="host",
        kind=OnOff(),
        default="on",
        linux=SysctlSwitch("net.ipv4.tcp_window_scaling"),
        names=Names(linux="net.ipv4.tcp_window_scaling", windows="part of AutoTuningLevelLocal"),
        unproven="only this host's offer is read, not what both ends agreed on",
        doc="""RFC 7323: windows above 64 KiB. Off holds every session of this host to 64 KiB in flight in
        both directions, as very old stacks did. It is agreed at connect time, so sessions must log in again.""",
    ),
    HostSetting(
        name="receive_buffer_default_bytes",
        title="Receive buffer at connect",
        where="stack",
        scope="host",
        kind=Number("bytes", 4096, 1 << 30),
        default="131072",
        linux=SysctlNumber("net.ipv4.tcp_rmem", 1, _RECEIVE),
        names=Names(linux="net.ipv4.tcp_rmem (second value)"),
        unproven=(
            "a session with its own buffer size does not use it; the sessions of each run have their "
            "real sizes"
        ),
        doc="""The receive buffer that a new connection starts with; its first window is about half of it.
        With auto-tuning off it stays.""",
    ),
    HostSetting(
        name="receive_buffer_max_bytes",
        title="Largest receive buffer",
        where="stack",
        scope="host",
        kind=Number("bytes", 4096, 1 << 30),
        default="6291456",
        linux=SysctlNumber("net.ipv4.tcp_rmem", 2, _RECEIVE),
        names=Names(linux="net.ipv4.tcp_rmem (third value)"),
        unproven="only the limit is read, not the size of a connection's buffer",
        doc="""The largest receive buffer of auto-tuning. It must be twice the product of line rate and round
        trip, or a single session cannot fill a long line.""",
    ),
    HostSetting(
        name="send_buffer_max_bytes",
        title="Largest send buffer",
        where="stack",
        scope="host",
        kind=Number("bytes", 4096, 1 << 30),
        default="4194304",
        linux=SysctlNumber("net.ipv4.tcp_wmem", 2, _SEND),
        names=Names(linux="net.ipv4.tcp_wmem (third value)"),
        unproven="only the limit is read, not the size of a connection's buffer",
        doc="""The largest send buffer of the kernel: the most unacknowledged write data of one session.""",
    ),
    HostSetting(
        name="delayed_ack",
        title="Delayed ACK",
        where="route",
        scope="port",
        kind=OnOff(),
        default="on",
        linux=DelayedAck(),
        windows=TcpSetting("DelayedAckFrequency", ((True, "2"), (False, "1"))),
        names=Names(
            linux="ip route quickack",
            windows="DelayedAckFrequency, TcpAckFrequency",
            published="Delayed ACK algorithm",
        ),
        doc="""The receiver waits for a second segment, or 40 ms (Windows: up to 200 ms), before it
        acknowledges. It saves a packet per pair. Against a sender with Nagle's algorithm on, each small
        command or short last segment can stall for the whole delay. Off acknowledges at once; Linux says so
        per route, and each unicast route of the SAN's ports is marked.""",
    ),
    HostSetting(
        name="congestion_control",
        title="Congestion control",
        where="stack",
        scope="host",
        kind=Choice(("reno", "cubic", "bbr", "dctcp"), open=True),
        default="cubic",
        linux=CongestionControl(),
        windows=TcpSetting("CongestionProvider", _PROVIDERS),
        names=Names(
            linux="net.ipv4.tcp_congestion_control, or ip route congctl",
            windows="CongestionProvider",
            published="Add-On Congestion Control Provider",
        ),
        doc="""How a sender reacts to loss and delay. This host's choice governs its writes; reads are
        governed by the array's. Where a namespace may not choose a default, the routes of the SAN's ports
        carry the choice. It holds for connections made afterwards.""",
    ),
    HostSetting(
        name="ecn",
        title="Congestion notification (ECN)",
        where="stack",
        scope="host",
        kind=Choice(("off", "passive", "on")),
        default="passive",
        linux=SysctlChoice("net.ipv4.tcp_ecn", (("off", "0"), ("on", "1"), ("passive", "2"))),
        windows=TcpSetting("EcnCapability", (("on", "Enabled"), ("off", "Disabled"))),
        names=Names(linux="net.ipv4.tcp_ecn", windows="EcnCapability", published="ECN Capability"),
        unproven="only this host's offer is read, not whether the other end agrees and switches mark",
        doc="""RFC 3168: a switch marks packets in place of dropping them, and the sender slows down. on asks
        for it, passive agrees when asked, off does neither. It does nothing unless switches mark. It holds
        for connections made afterwards.""",
    ),
    HostSetting(
        name="selective_ack",
        title="Selective acknowledgement",
        where="stack",
        scope="host",
        kind=OnOff(),
        default="on",
        linux=SysctlSwitch("net.ipv4.tcp_sack"),
        names=Names(linux="net.ipv4.tcp_sack"),
        unproven="only this host's offer is read, not what both ends agreed on",
        doc="""RFC 2018: the receiver reports which data arrived after a loss, so only lost data are sent again.
        Off shows how old stacks react to a burst of drops.""",
    ),
    HostSetting(
        name="rto_min_us",
        title="Shortest retransmission timeout",
        where="stack",
        scope="host",
        kind=Number("us", 1000, 1_000_000),
        default="200000",
        linux=SysctlNumber("net.ipv4.tcp_rto_min_us"),
        windows=TcpSetting("MinRtoMs", scale=0.001, shown="MinRto"),
        names=Names(linux="net.ipv4.tcp_rto_min_us", windows="MinRto"),
        unproven="a value on a route replaces it, and the value of a connection cannot be read",
        doc="""The shortest time that a sender waits for an acknowledgement before it sends again. A lost last
        segment delays a command by this time. Values below the receiver's delayed ACK cause needless
        retransmits.""",
    ),
)
