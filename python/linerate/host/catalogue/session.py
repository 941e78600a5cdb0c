"""Settings of an iSCSI session and of how many there are: asked for at login, so a change means a new login.

The keys of `SessionOptions` (linerate.workload) are used as names where they say the same.
"""

from __future__ import annotations

from linerate.host.setting import HostSetting, Names
from linerate.host.windows.knob import Initiator, InterfaceValue
from linerate.setting import Choice, Number, OnOff

_RECORD = "node.session.iscsi."
_CONNECTION = "node.conn[0].iscsi."
_LENGTH_MOST = (1 << 24) - 1
_AGREED = "it is negotiated at login; the sessions of each run have the negotiated values"

SETTINGS = (
    HostSetting(
        name="nagle",
        title="Nagle's algorithm",
        where="session",
        scope="session",
        kind=OnOff(),
        default="off",
        windows=InterfaceValue("TcpNoDelay"),
        names=Names(
            linux="TCP_NODELAY of the initiator's sockets",
            windows="TcpNoDelay",
            published="Nagle's algorithm",
        ),
        unproven=_AGREED,
        doc="""The sender holds a small segment back while an earlier one is unacknowledged. Linux initiators
        turn it off; Windows leaves it on. Together with the other side's delayed ACK it can stall small
        commands for 40 ms and more; jumbo frames make more commands small. A sustained deep queue hides it.""",
    ),
    HostSetting(
        name="header_digest",
        title="Header digest",
        where="session",
        scope="session",
        kind=Choice(("none", "crc32c", "offer")),
        default="none",
        names=Names(windows="Connect-IscsiTarget -IsHeaderDigest", open_iscsi=f"{_CONNECTION}HeaderDigest"),
        unproven=_AGREED,
        doc="""CRC32C over each PDU header. It finds errors that TCP's checksum misses, and costs a little CPU
        time on both sides.""",
    ),
    HostSetting(
        name="data_digest",
        title="Data digest",
        where="session",
        scope="session",
        kind=Choice(("none", "crc32c", "offer")),
        default="none",
        names=Names(windows="Connect-IscsiTarget -IsDataDigest", open_iscsi=f"{_CONNECTION}DataDigest"),
        unproven=_AGREED,
        doc="""CRC32C over all data. It costs CPU time on both sides in proportion to throughput.""",
    ),
    HostSetting(
        name="immediate_data",
        title="Immediate data",
        where="session",
        scope="session",
        kind=OnOff(),
        default="on",
        windows=Initiator("ImmediateData"),
        names=Names(windows="ImmediateData", open_iscsi=f"{_RECORD}ImmediateData"),
        unproven=_AGREED,
        doc="""The first write data travels inside the command. Off makes even a small write wait for the
        array's R2T: one more round trip.""",
    ),
    HostSetting(
        name="initial_r2t",
        title="Initial R2T",
        where="session",
        scope="session",
        kind=OnOff(),
        default="off",
        windows=Initiator("InitialR2T"),
        names=Names(windows="InitialR2T", open_iscsi=f"{_RECORD}InitialR2T"),
        unproven=_AGREED,
        doc="""Write data beyond the command waits for the array's R2T. On costs writes a round trip; it lets
        the array decide when its buffers fill.""",
    ),
    HostSetting(
        name="first_burst_bytes",
        title="First burst",
        where="session",
        scope="session",
        kind=Number("bytes", 512, _LENGTH_MOST),
        default="262144",
        windows=Initiator("FirstBurstLength"),
        names=Names(windows="FirstBurstLength", open_iscsi=f"{_RECORD}FirstBurstLength"),
        unproven=_AGREED,
        doc="""The most write data that a command sends without being asked. Writes up to this size need no
        R2T.""",
    ),
    HostSetting(
        name="max_burst_bytes",
        title="Largest burst",
        where="session",
        scope="session",
        kind=Number("bytes", 512, _LENGTH_MOST),
        default="16776192",
        windows=Initiator("MaxBurstLength"),
        names=Names(windows="MaxBurstLength", open_iscsi=f"{_RECORD}MaxBurstLength"),
        unproven=_AGREED,
        doc="""The most data of one R2T or one read sequence. Small bursts cost large writes a round trip
        each.""",
    ),
    HostSetting(
        name="max_recv_data_segment_bytes",
        title="Largest data segment",
        where="session",
        scope="session",
        kind=Number("bytes", 512, _LENGTH_MOST),
        default="262144",
        windows=Initiator("MaxRecvDataSegmentLength"),
        names=Names(windows="MaxRecvDataSegmentLength", open_iscsi=f"{_CONNECTION}MaxRecvDataSegmentLength"),
        unproven=_AGREED,
        doc="""The most data in one PDU that this side accepts: larger ones mean fewer headers for large
        reads.""",
    ),
    HostSetting(
        name="max_outstanding_r2t",
        title="R2Ts per command",
        where="session",
        scope="session",
        kind=Number("R2Ts", 1, 65_535),
        default="1",
        names=Names(open_iscsi=f"{_RECORD}MaxOutstandingR2T"),
        unproven="the array may grant fewer (Linerate's own grants one), and the number it grants cannot be read",
        doc="""How many R2Ts the array may have open for one command; more hide the round trip of large
        writes.""",
    ),
    HostSetting(
        name="recv_buffer_bytes",
        title="Socket receive buffer",
        where="session",
        scope="session",
        kind=Number("bytes", 4096, 1 << 30),
        default="auto-tuned",
        names=Names(linux="SO_RCVBUF", open_iscsi="node.conn[0].tcp.window_size"),
        unproven=_AGREED,
        doc="""A receive buffer of fixed size, which ends auto-tuning for the session. The kernel caps it at
        rmem_max.""",
    ),
    HostSetting(
        name="send_buffer_bytes",
        title="Socket send buffer",
        where="session",
        scope="session",
        kind=Number("bytes", 4096, 1 << 30),
        default="auto-tuned",
        names=Names(linux="SO_SNDBUF"),
        unproven=_AGREED,
        doc="""A send buffer of fixed size, which ends auto-tuning for the session. The kernel caps it at
        wmem_max.""",
    ),
    HostSetting(
        name="sessions_per_volume",
        title="Sessions per volume",
        where="session",
        scope="session",
        kind=Number("sessions", 1, 64),
        default="1",
        names=Names(
            published="iSCSI connections per volume",
            open_iscsi="node.session.nr_sessions",
        ),
        doc="""How many sessions carry a volume's I/O. More sessions help where a window or a single flow's
        path limits one, and spread receive work over queues; a shallow switch buffer suffers from each of
        them.""",
    ),
    HostSetting(
        name="connections",
        title="Connections per session",
        where="session",
        scope="session",
        kind=Number("connections", 1, 64),
        default="1",
        names=Names(windows="iscsicli AddConnection"),
        unproven=_AGREED,
        doc="""How many TCP connections one session has (MC/S). They spread a session's I/O over flows as more
        sessions do, but share one command window, keep its order, and end together when one of them is lost.
        Few initiators offer it: the one of Linux does not.""",
    ),
    HostSetting(
        name="outstanding",
        title="Outstanding I/Os per volume",
        where="session",
        scope="session",
        kind=Number("I/Os", 1, 65_536),
        default="8",
        names=Names(published="threads", open_iscsi="node.session.queue_depth"),
        doc="""I/Os in flight on each volume. More fill the line until it is full; from there on they only
        wait.""",
    ),
)
