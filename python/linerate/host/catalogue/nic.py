"""Settings of the network adapter and its driver, one value per port."""

from __future__ import annotations

from linerate.host.linux.adapter import Checksum, FeatureSwitch, LinkNumber, Pause, Ring
from linerate.host.linux.queues import Moderation, Queues, Scaling
from linerate.host.setting import HostSetting, Names
from linerate.host.windows.knob import AdvancedProperty, Offload, RssProfile
from linerate.setting import Choice, Number, OnOff

_ETHERNET_HEADER_BYTES = 14
_SEGMENTATION = (
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation",
)
_PROFILES = (
    ("closest", "Closest"),
    ("closest-static", "ClosestStatic"),
    ("numa", "NUMA"),
    ("numa-static", "NUMAStatic"),
    ("conservative", "Conservative"),
)
_COALESCING = ("rx-gro", "rx-lro", "rx-gro-hw")

SETTINGS = (
    HostSetting(
        name="mtu",
        title="Jumbo frames",
        where="nic",
        scope="port",
        kind=Number("bytes", 576, 16_110),
        default="1500",
        linux=LinkNumber("MTU", "mtu", "MAX_MTU"),
        windows=AdvancedProperty(("*JumboPacket",), add=_ETHERNET_HEADER_BYTES),
        names=Names(
            linux="ip link mtu",
            windows="*JumboPacket (with 14 bytes of Ethernet header)",
            published="Jumbo packet, MTU",
            open_iscsi="iface.mtu",
        ),
        doc="""The largest IP packet of the port. Jumbo frames (9000) carry six times the data per header:
        about 5 % more payload on a full line and far fewer packets for both CPUs. Switches and array ports
        must carry them too, or large packets are lost. A small loss costs more, because each lost frame is
        larger.""",
    ),
    HostSetting(
        name="checksum_offload",
        title="Checksum offload",
        where="nic",
        scope="port",
        kind=Choice(("on", "rx", "tx", "off")),
        default="on",
        linux=Checksum(),
        windows=AdvancedProperty(
            ("*TCPChecksumOffloadIPv4", "*TCPChecksumOffloadIPv6"),
            words=(("on", 3), ("rx", 2), ("tx", 1), ("off", 0)),
        ),
        names=Names(
            linux="ethtool -K rx tx",
            windows="*TCPChecksumOffloadIPv4, *TCPChecksumOffloadIPv6",
            published="TCP/UDP Checksum Offload, TCP Checksum Offload",
        ),
        doc="""Whether the adapter or the host's CPU computes TCP checksums. Without offload it costs the
        host CPU time; large send offload goes with it, because a segment that the adapter cuts needs a
        checksum from the adapter. One study saw unstable connections with it off, which is a fault of that
        adapter and not of the setting.""",
    ),
    HostSetting(
        name="lso",
        title="Large send offload",
        where="nic",
        scope="port",
        kind=OnOff(),
        default="on",
        linux=FeatureSwitch(_SEGMENTATION, shown=_SEGMENTATION[:1]),
        windows=AdvancedProperty(("*LsoV2IPv4", "*LsoV2IPv6"), switch=True),
        names=Names(
            linux="ethtool -K tso gso",
            windows="*LsoV2IPv4, *LsoV2IPv6",
            published="Large Send Offload V2",
        ),
        doc="""The host hands up to 64 KiB to the adapter, which cuts it into frames. It saves the sender's
        CPU; a receiver notices bursts of frames at line rate. Off turns hardware (TSO) and device-level
        software segmentation (GSO) off; Linux's TCP still builds large packets inside: see gso_max_segments.""",
    ),
    HostSetting(
        name="gso_max_segments",
        title="Largest burst of the TCP stack",
        where="nic",
        scope="port",
        kind=Number("segments", 1, 65_535),
        default="65535",
        linux=LinkNumber("GSO_MAX_SEGS", "gso_max_segs"),
        names=Names(linux="ip link gso_max_segs"),
        doc="""How many frames Linux's TCP prepares as one packet. 1 makes each frame a packet of its own from
        the socket down: what a host without any segmentation offload pays in CPU. Other systems have no such
        setting.""",
    ),
    HostSetting(
        name="rsc",
        title="Receive segment coalescing",
        where="nic",
        scope="port",
        kind=OnOff(),
        default="on",
        linux=FeatureSwitch(_COALESCING, shown=_COALESCING),
        windows=Offload("ReceiveSegmentCoalescing", AdvancedProperty(("*RscIPv4", "*RscIPv6"), switch=True)),
        names=Names(
            linux="ethtool -K gro lro rx-gro-hw",
            windows="*RscIPv4, *RscIPv6, ReceiveSegmentCoalescing",
            published="Recv Segment Coalescing",
        ),
        doc="""Frames of one stream that arrive together are merged before TCP sees them (GRO, LRO). It saves
        the receiver's CPU on large reads and can add latency to small I/O, since the driver must wait and see
        what follows.""",
    ),
    HostSetting(
        name="interrupt_moderation_us",
        title="Interrupt moderation",
        where="nic",
        scope="port",
        kind=Number("us", 0, 10_000, words=("adaptive",), zero_word="off"),
        default="adaptive",
        linux=Moderation(),
        windows=AdvancedProperty(("*InterruptModeration",), switch=True),
        names=Names(
            linux="ethtool -C rx-usecs adaptive-rx",
            windows="*InterruptModeration",
            published="Interrupt Moderation",
        ),
        unproven=(
            "the real delay of interrupts cannot be read: a driver may round the time or use its own, "
            "and NAPI's deferral has no effect on a device that does not poll"
        ),
        doc="""How long the adapter may hold back an interrupt to gather more frames. It costs up to this time
        per direction in the response time of small I/O at low depth, and saves CPU at high packet rates;
        throughput of deep queues stays. off interrupts at once; adaptive lets the driver choose. Windows
        knows on and off only: any time means on.""",
    ),
    HostSetting(
        name="rx_ring_frames",
        title="Receive buffers",
        where="nic",
        scope="port",
        kind=Number("frames", 32, 65_536, limited=True),
        default="driver's choice",
        linux=Ring("rx"),
        windows=AdvancedProperty(("*ReceiveBuffers",)),
        names=Names(linux="ethtool -G rx", windows="*ReceiveBuffers", published="Receive Buffers"),
        doc="""Frames that the adapter can hold until the host fetches them. A larger ring survives a busy CPU
        or a burst that a small one drops, which TCP answers with retransmits; it costs memory and cache.""",
    ),
    HostSetting(
        name="tx_ring_frames",
        title="Transmit buffers",
        where="nic",
        scope="port",
        kind=Number("frames", 32, 65_536, limited=True),
        default="driver's choice",
        linux=Ring("tx"),
        windows=AdvancedProperty(("*TransmitBuffers",)),
        names=Names(linux="ethtool -G tx", windows="*TransmitBuffers", published="Transmit Buffers"),
        doc="""Frames that the host may queue at the adapter. Where a ring is full the stack waits or drops
        locally, before the wire; Linux's byte queue limits and small-queue rule usually act first.""",
    ),
    HostSetting(
        name="flow_control",
        title="Flow control",
        where="nic",
        scope="port",
        kind=Choice(("on", "rx", "tx", "off")),
        default="on",
        linux=Pause(),
        windows=AdvancedProperty(("*FlowControl",), words=(("on", 3), ("rx", 2), ("tx", 1), ("off", 0))),
        names=Names(linux="ethtool -A rx tx", windows="*FlowControl", published="Flow control"),
        unproven=(
            "the other end must agree: a port that negotiates pause frames only offers them, and the "
            "result cannot be read"
        ),
        doc="""Pause frames of IEEE 802.3x: rx obeys them, tx sends them, on does both. A congested switch
        port then stops its senders in place of dropping, so arrays retransmit nothing; the price is that a
        paused link also holds back traffic for ports that are not congested. The switch must take part.""",
    ),
    HostSetting(
        name="rss",
        title="Receive side scaling",
        where="nic",
        scope="port",
        kind=OnOff(),
        default="on",
        linux=Scaling(),
        windows=Offload("ReceiveSideScaling", AdvancedProperty(("*RSS",), switch=True)),
        names=Names(
            linux="ethtool -L (one queue is off)",
            windows="*RSS, ReceiveSideScaling",
            published="Receive Side Scaling",
        ),
        unproven=(
            "the number of queues can be read; the adapter's hash and table decide which queue a flow uses"
        ),
        doc="""Received frames are spread by flow over several queues and so over several CPUs. Off puts the
        receive work of all sessions on one CPU, which a fast port fills. On gives each CPU a queue, as far as
        the adapter has them.""",
    ),
    HostSetting(
        name="rss_queues",
        title="RSS queues",
        where="nic",
        scope="port",
        kind=Number("queues", 1, 256, limited=True),
        default="driver's choice",
        linux=Queues(),
        windows=AdvancedProperty(("*NumRssQueues",)),
        names=Names(
            linux="ethtool -L combined or rx",
            windows="*NumRssQueues",
            published="Number of RSS queues, Maximum Number of RSS Queues",
        ),
        unproven=(
            "the number of queues can be read; the adapter's hash and table decide which queue a flow uses"
        ),
        doc="""How many receive queues, and so at most how many CPUs, share the receive work of the port. More
        queues than sessions or CPUs only cost interrupts.""",
    ),
    HostSetting(
        name="rss_profile",
        title="RSS load balancing profile",
        where="nic",
        scope="port",
        kind=Choice(("closest", "closest-static", "numa", "numa-static", "conservative")),
        default="closest",
        absent="Linux has no RSS profile; where interrupts go is set per interrupt, usually by irqbalance",
        windows=RssProfile(_PROFILES),
        names=Names(windows="Set-NetAdapterRss -Profile", published="RSS load balancing profile"),
        doc="""Which CPUs Windows gives to the receive queues: those closest to the adapter, or round robin
        over NUMA nodes. It matters on hosts with several sockets.""",
    ),
    HostSetting(
        name="toe",
        title="TCP offload engine",
        where="nic",
        scope="port",
        kind=OnOff(),
        default="off",
        absent="Linux has no TCP offload engine; it needs a Windows host and an adapter that has one",
        windows=Offload(
            "Chimney",
            AdvancedProperty(("*TCPConnectionOffloadIPv4", "*TCPConnectionOffloadIPv6"), switch=True),
        ),
        names=Names(
            windows="*TCPConnectionOffloadIPv4, Chimney",
            published="TCP Connection Offload, Chimney Offload State",
        ),
        doc="""The adapter runs the whole TCP connection. It lowers the host's CPU use and, in one study, the
        array's retransmits. Windows up to Server 2012 R2 only, and only with such an adapter.""",
    ),
    HostSetting(
        name="isoe",
        title="iSCSI offload engine",
        where="nic",
        scope="port",
        kind=OnOff(),
        default="off",
        absent="an iSCSI offload engine is an adapter of its own that its vendor's tool sets up",
        names=Names(published="iSOE mode"),
        doc="""The adapter runs iSCSI itself and appears as a storage controller. No host TCP setting then
        applies. It is switched in the vendor's own control suite, on no system by a general command.""",
    ),
)
