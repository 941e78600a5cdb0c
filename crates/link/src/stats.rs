//! Counters, cumulative since the start. A level (`queued`, `up`) is the current state.

use crate::config::PRIORITIES;
use serde::{Serialize, Serializer};

/// One link of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkStats {
    /// Whether it carries frames now.
    pub up: bool,
    /// From the NIC to the switch, or from a trunk's `a` to its `b`.
    pub outbound: LaneStats,
    /// The other direction.
    pub inbound: LaneStats,
}

/// Frames that did not arrive, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// The egress queue was full.
    pub queue: u64,
    /// The memory shared by the switch's queues was full.
    pub buffer: u64,
    /// Lossless frames beyond an ingress port's headroom: the pause was too late or was not obeyed.
    pub headroom: u64,
    /// Longer than the MTU of the link, the switch or the receiving interface.
    pub mtu: u64,
    /// Lost on the wire by chance, or by a fault that no counter shows.
    pub loss: u64,
    /// The link was down.
    pub down: u64,
    /// The NIC's receive ring was full.
    pub ring: u64,
}

/// One priority of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueStats {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, without preamble and FCS.
    pub bytes: u64,
    /// Frames dropped for lack of space before they were sent.
    pub drops: u64,
    /// Frames marked (ECN).
    pub marked: u64,
    /// Bytes waiting now.
    pub queued_bytes: u64,
    /// Most bytes that ever waited.
    pub queued_bytes_max: u64,
    /// Times that the receiver stopped it.
    pub pauses: u64,
    /// Time for which it was stopped, up to now.
    pub paused_ns: u64,
}

/// One direction of a cable: its sender and the wire. The links of a LAG are added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneStats {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, without preamble and FCS.
    pub bytes: u64,
    /// Time with a frame on the wire, over all links.
    pub busy_ns: u64,
    /// Frames dropped before, on or at the end of the wire.
    pub drops: Drops,
    /// By priority; as JSON only those that were used.
    #[serde(serialize_with = "used_queues")]
    pub queues: [QueueStats; PRIORITIES],
}

/// The receiving side of a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveStats {
    /// Frames handed to the host.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Most frames that ever waited in the ring.
    pub ring_frames_max: u64,
    /// How often it requested a pause from the switch.
    pub pauses_asked: u64,
}

/// A port: both directions of its cable, and the NIC's receiving side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortStats {
    /// From the NIC to the switch.
    pub sent: LaneStats,
    /// From the switch to the NIC.
    pub received: LaneStats,
    /// The NIC's receiving side.
    pub nic: ReceiveStats,
    /// How often the switch requested a pause from the NIC.
    pub pauses_asked: u64,
    /// Each link by itself.
    pub links: Vec<LinkStats>,
}

/// A trunk: both directions of its cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrunkStats {
    /// From `a` to `b`.
    pub a_to_b: LaneStats,
    /// From `b` to `a`.
    pub b_to_a: LaneStats,
    /// Each link by itself.
    pub links: Vec<LinkStats>,
}

/// A switch as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchStats {
    /// Bytes in the shared memory now.
    pub buffered_bytes: u64,
    /// Most bytes that ever were.
    pub buffered_bytes_max: u64,
    /// Frames sent to all ports because their receiver was unknown or a group.
    pub flooded: u64,
    /// Addresses learnt.
    pub addresses: u64,
}

fn used_queues<S: Serializer>(queues: &[QueueStats; PRIORITIES], serializer: S) -> Result<S::Ok, S::Error> {
    let used = queues.iter().enumerate().filter(|(_, queue)| **queue != QueueStats::default());
    serializer.collect_map(used)
}

impl LaneStats {
    /// Adds another link of the same LAG.
    pub(crate) fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.busy_ns += other.busy_ns;
        self.drops.add(other.drops);
        for (own, queue) in self.queues.iter_mut().zip(&other.queues) {
            own.frames += queue.frames;
            own.bytes += queue.bytes;
            own.drops += queue.drops;
            own.marked += queue.marked;
            own.queued_bytes += queue.queued_bytes;
            own.queued_bytes_max = own.queued_bytes_max.max(queue.queued_bytes_max);
            own.pauses += queue.pauses;
            own.paused_ns += queue.paused_ns;
        }
    }
}

impl Drops {
    fn add(&mut self, other: Self) {
        self.queue += other.queue;
        self.buffer += other.buffer;
        self.headroom += other.headroom;
        self.mtu += other.mtu;
        self.loss += other.loss;
        self.down += other.down;
        self.ring += other.ring;
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.queue + self.buffer + self.headroom + self.mtu + self.loss + self.down + self.ring
    }
}
