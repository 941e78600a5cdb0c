//! The receiving side of a NIC: a finite ring, and the time of the interrupt.

use crate::{
    config::NicConfig,
    frame::{Frame, Nanos},
    stats::ReceiveStats,
};

/// The receiver of frames for hosts.
pub trait Receiver<P> {
    /// An interrupt: the host takes everything that waits in one NIC's ring, in order of arrival. With `rsc`
    /// consecutive segments may be merged.
    fn interrupt(&mut self, at: Nanos, rsc: bool, ring: std::vec::Drain<'_, (InterfaceId, Frame<P>)>);
}

/// An interface of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceId(pub(crate) usize);

impl InterfaceId {
    /// Counts from 0 in the order in which the interfaces were added.
    pub fn index(self) -> usize {
        self.0
    }
}

/// An interface of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Frames reach only interfaces of the same VLAN.
    pub vlan: u16,
    /// Priority of all frames from here.
    pub priority: u8,
    /// Longest payload that is sent or received.
    pub mtu: u32,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) nic: usize,
    pub(crate) config: InterfaceConfig,
    /// Frames in the transmit ring.
    pub(crate) waiting: u32,
}

#[derive(Debug)]
pub(crate) struct Nic<P> {
    pub(crate) config: NicConfig,
    /// Sends towards the switch.
    pub(crate) bond: usize,
    pub(crate) interfaces: Vec<usize>,
    ring: Vec<(InterfaceId, Frame<P>)>,
    /// When the host will be interrupted; none while the ring is empty.
    interrupt_at: Option<Nanos>,
    pub(crate) asked: bool,
    pub(crate) stats: ReceiveStats,
}

/// The effect of a frame that arrived in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// None: the interrupt is due already.
    Waits,
    /// The host is to be interrupted then.
    InterruptAt(Nanos),
    /// The ring is full.
    Dropped,
}

impl<P> Nic<P> {
    pub(crate) fn new(config: NicConfig, bond: usize) -> Self {
        Self {
            config,
            bond,
            interfaces: Vec::new(),
            ring: Vec::new(),
            interrupt_at: None,
            asked: false,
            stats: ReceiveStats::default(),
        }
    }

    pub(crate) fn arrive(&mut self, interface: InterfaceId, frame: Frame<P>, now: Nanos) -> Arrived {
        let frames = self.ring.len() as u32;
        if frames >= self.config.rx_ring_frames {
            return Arrived::Dropped;
        }
        self.ring.push((interface, frame));
        self.stats.ring_frames_max = self.stats.ring_frames_max.max(u64::from(frames + 1));
        let enough = self.config.moderation_frames > 0 && frames + 1 >= self.config.moderation_frames;
        let due = if enough { now } else { now + u64::from(self.config.moderation_us) * 1_000 };
        if self.interrupt_at.is_some_and(|at| at <= due) {
            return Arrived::Waits;
        }
        self.interrupt_at = Some(due);
        Arrived::InterruptAt(due)
    }

    /// When the host will be interrupted for the frames in the ring.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.interrupt_at
    }

    /// Shortest time from a frame's arrival to an interrupt that is not due yet.
    pub(crate) fn patience(&self) -> Nanos {
        if self.config.moderation_frames > 0 { 0 } else { u64::from(self.config.moderation_us) * 1_000 }
    }

    /// More than three quarters of the ring are in use.
    pub(crate) fn is_crowded(&self) -> bool {
        self.ring.len() as u64 * 4 > u64::from(self.config.rx_ring_frames) * 3
    }

    /// The host takes the frames of the ring, unless an earlier interrupt has already done this.
    pub(crate) fn interrupt(&mut self, now: Nanos, receiver: &mut impl Receiver<P>) {
        if self.interrupt_at != Some(now) {
            return;
        }
        self.interrupt_at = None;
        self.stats.interrupts += 1;
        self.stats.frames += self.ring.len() as u64;
        self.stats.bytes += self.ring.iter().map(|(_, frame)| u64::from(frame.length)).sum::<u64>();
        receiver.interrupt(now, self.config.rsc, self.ring.drain(..));
    }
}
