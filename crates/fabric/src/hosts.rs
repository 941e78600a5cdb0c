//! The hosts' side: TAPs for reading and writing.

use crate::{
    packet::{Merger, PACKET_BYTES_MAX, Packet, Segment, frames},
    spec::InterfaceSpec,
};
use linerate_io::net::{Tap, TapOptions};
use linerate_link::{Frame, InterfaceId, Nanos, Network, Receiver};
use serde::Serialize;
use std::{
    io::{self, IoSlice},
    path::Path,
    vec,
};

/// Packets read from one TAP before the next one is read.
const READS_PER_TURN: usize = 32;
/// Packets longer than this keep the memory they were read into; shorter ones are copied.
const COPY_BYTES_MAX: usize = 12 * 1024;

/// One TAP.
#[derive(Debug)]
pub(crate) struct TapHost {
    pub(crate) tap: Tap,
    pub(crate) name: String,
    pub(crate) mac: [u8; 6],
    /// The MTU that the fabric set last.
    pub(crate) mtu: u32,
    carrier: bool,
    /// The kernel may have more for us.
    pub(crate) readable: bool,
    pub(crate) stats: HostStats,
}

/// Counters of one TAP: packets as the host sees them, before segmentation and after merging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct HostStats {
    /// Packets that the host has sent.
    pub(crate) packets_sent: u64,
    /// Packets that the host has received.
    pub(crate) packets_received: u64,
    /// Frames that it did not accept: the interface was down, or there was too little memory.
    pub(crate) frames_refused: u64,
    /// Packets with invalid headers.
    pub(crate) malformed: u64,
}

/// All TAPs, in the order of the network's interfaces.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) list: Vec<TapHost>,
    merger: Merger<usize>,
    memory: Vec<u8>,
    /// Packets read and written.
    pub(crate) handled: u64,
    /// The first failure to write, which ends the fabric.
    pub(crate) failure: Option<io::Error>,
}

impl TapHost {
    /// Makes the TAP of the specification.
    pub(crate) fn open(spec: &InterfaceSpec, mac: Option<[u8; 6]>, carrier: bool) -> io::Result<Self> {
        let options = TapOptions {
            name: &spec.interface,
            mac,
            mtu: spec.mtu,
            queue_frames: spec.queue_frames,
            napi: spec.napi,
        };
        let tap = Tap::open(spec.netns.as_deref().map(Path::new), &options)?;
        let mac = tap.mac()?;
        let (name, mtu) = (spec.name().to_owned(), spec.mtu);
        let mut host =
            Self { tap, name, mac, mtu, carrier: true, readable: true, stats: HostStats::default() };
        host.set_carrier(carrier)?;
        Ok(host)
    }

    /// Tells the host's stack that its cable was plugged in or pulled out.
    pub(crate) fn set_carrier(&mut self, carrier: bool) -> io::Result<()> {
        if self.carrier != carrier {
            self.tap.set_carrier(carrier)?;
            self.carrier = carrier;
        }
        Ok(())
    }
}

impl Hosts {
    pub(crate) fn new(list: Vec<TapHost>) -> Self {
        Self {
            list,
            merger: Merger::new(),
            memory: Vec::with_capacity(PACKET_BYTES_MAX),
            handled: 0,
            failure: None,
        }
    }

    /// Whether a host has, or may have, more packets than its ring had space for.
    pub(crate) fn is_any_waiting(&self) -> bool {
        self.list.iter().any(|host| host.readable)
    }

    /// Reads the packets of every host, as far as its ring has space. Returns whether some have more.
    pub(crate) fn read(&mut self, network: &mut Network<Segment>) -> io::Result<bool> {
        let mut more = false;
        for (host, interface) in self.list.iter_mut().zip(network.interfaces()) {
            let mut turns = READS_PER_TURN;
            while host.readable && turns > 0 && network.room(interface) > 0 {
                turns -= 1;
                self.memory.clear();
                host.readable = host.tap.read(&mut self.memory)?;
                if host.readable {
                    host.stats.packets_sent += 1;
                    self.handled += 1;
                    send(network, interface, host, &mut self.memory);
                }
            }
            more |= host.readable && turns == 0;
        }
        Ok(more)
    }
}

fn send(network: &mut Network<Segment>, interface: InterfaceId, host: &mut TapHost, memory: &mut Vec<u8>) {
    let bytes = if memory.len() > COPY_BYTES_MAX {
        std::mem::replace(memory, Vec::with_capacity(PACKET_BYTES_MAX))
    } else {
        memory.clone()
    };
    match Packet::parse(bytes) {
        Some(packet) => frames(packet).for_each(|frame| network.send(interface, frame)),
        None => host.stats.malformed += 1,
    }
}

impl Receiver<Segment> for Hosts {
    fn interrupt(&mut self, _at: Nanos, rsc: bool, ring: vec::Drain<'_, (InterfaceId, Frame<Segment>)>) {
        let Self { list, merger, handled, failure, .. } = self;
        let mut write = |index: usize, pieces: &[IoSlice<'_>], frames: usize| {
            let host: &mut TapHost = &mut list[index];
            *handled += 1;
            match host.tap.write(pieces) {
                Ok(true) => host.stats.packets_received += 1,
                Ok(false) => host.stats.frames_refused += frames as u64,
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        };
        for (interface, frame) in ring {
            merger.take(interface.index(), frame, rsc, &mut write);
        }
        merger.finish(&mut write);
    }
}
