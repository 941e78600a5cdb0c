//! Packets as a NIC sees them: a packet of a host, its frames, and the packet for another host.
//!
//! A host's stack leaves work to its NIC, and the `virtio_net_hdr` in front of a packet describes it: up to 64 KiB of
//! TCP must be cut into frames (large send offload), and checksums must be completed. The segmentation costs nothing:
//! all frames of a packet share its memory ([`Segment`] is a packet and a number) and get their own headers only when
//! they are delivered. The checksum is never completed: the receiver is told that its NIC has verified it, which is
//! true, because no bits change here. `merge.rs` does the reverse: consecutive segments become one packet again
//! (receive segment coalescing).

mod headers;
mod merge;

use headers::{HeaderLayout, vnet};
use linerate_io::net::VNET_HEADER_BYTES;
use linerate_link::{Frame, Mac};
use std::{ops::Range, rc::Rc};

pub(crate) use merge::Merger;

/// Bytes of the longest packet: its header, an Ethernet header and 64 KiB, rounded up.
pub(crate) const PACKET_BYTES_MAX: usize = 66 * 1024;

/// A packet of a host, with the header in front.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    layout: HeaderLayout,
    /// Bytes of payload per segment; 0 = it is one frame.
    segment_bytes: usize,
}

/// One frame of a packet.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    packet: Rc<Packet>,
    index: usize,
}

impl Packet {
    /// Reads the headers. None if they are not an Ethernet frame, or request an offload that we did not offer.
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let frame = bytes.get(VNET_HEADER_BYTES..)?;
        let layout = HeaderLayout::of(frame)?;
        let segment_bytes = match vnet::gso_type(&bytes) {
            vnet::GSO_NONE => 0,
            vnet::GSO_TCP4 | vnet::GSO_TCP6 if layout.is_tcp => usize::from(vnet::gso_size(&bytes)),
            _ => return None,
        };
        let is_cut = vnet::gso_type(&bytes) != vnet::GSO_NONE;
        if is_cut && (segment_bytes == 0 || layout.header_bytes >= frame.len()) {
            return None;
        }
        Some(Self { bytes, layout, segment_bytes })
    }

    fn frame(&self) -> &[u8] {
        &self.bytes[VNET_HEADER_BYTES..]
    }

    /// Number of frames that it becomes.
    fn segments(&self) -> usize {
        if self.segment_bytes == 0 { 1 } else { self.payload_bytes().div_ceil(self.segment_bytes) }
    }

    /// Bytes after the TCP header, Ethernet padding excluded.
    fn payload_bytes(&self) -> usize {
        self.layout.end - self.layout.header_bytes
    }

    /// The range of a segment's payload in the frame.
    fn payload(&self, index: usize) -> Range<usize> {
        let HeaderLayout { header_bytes, end, .. } = self.layout;
        if self.segment_bytes == 0 {
            return header_bytes..end;
        }
        let start = header_bytes + index * self.segment_bytes;
        start..(start + self.segment_bytes).min(end)
    }
}

/// The frames of a packet, in order.
pub(crate) fn frames(packet: Packet) -> impl Iterator<Item = Frame<Segment>> {
    let packet = Rc::new(packet);
    let bytes = packet.frame();
    let address = |at: usize| Mac::new(std::array::from_fn(|index| bytes[at + index]));
    let (destination, source) = (address(0), address(6));
    let (flow, ecn_capable) = (packet.layout.flow(bytes), packet.layout.is_ecn_capable(bytes));
    (0..packet.segments()).map(move |index| {
        let length = if packet.segment_bytes == 0 {
            packet.frame().len()
        } else {
            packet.layout.header_bytes + packet.payload(index).len()
        };
        let payload = Segment { packet: Rc::clone(&packet), index };
        Frame { length: length as u32, source, destination, flow, ecn_capable, marked: false, payload }
    })
}

#[cfg(test)]
mod tests;
