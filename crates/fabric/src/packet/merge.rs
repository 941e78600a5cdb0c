//! Frames for a host: merges consecutive segments, writes headers, passes everything on in order.

use super::{
    Segment,
    headers::{HEADER_BYTES_MAX, flag, vnet},
};
use linerate_io::net::VNET_HEADER_BYTES;
use linerate_link::Frame;
use std::{io::IoSlice, ops::Range, rc::Rc};

/// Most bytes of a merged packet after the Ethernet header: the maximum of an IPv4 header.
const MERGED_BYTES_MAX: usize = 65_535;
/// Most ranges of payload in one packet: 64 KiB in frames of MTU 1500 that their host cut itself, and some more.
const PIECES_MAX: usize = 63;
/// Conversations that a NIC merges at the same time.
const OPEN_MAX: usize = 16;
const DATA_VALID: [u8; VNET_HEADER_BYTES] = [vnet::DATA_VALID, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Merges the frames of one interrupt. `T` is their destination.
#[derive(Debug)]
pub(crate) struct Merger<T> {
    open: Vec<Burst<T>>,
    /// Lists of pieces that are used again.
    spare: Vec<Vec<Piece>>,
}

/// Payload: a range in a frame.
type Piece = (Segment, Range<usize>);

/// Segments that become one packet.
#[derive(Debug)]
struct Burst<T> {
    to: T,
    flow: u32,
    marked: bool,
    /// The first segment, whose headers are used, and its payload with the consecutive payload in the same packet.
    first: Segment,
    range: Range<usize>,
    /// Further payload, neighbours joined.
    more: Vec<Piece>,
    segments: usize,
    bytes: usize,
    /// Payload of the first segment: all except the last have the same length.
    segment_bytes: usize,
    next_sequence: u32,
    flags: u8,
    /// A short or pushed segment ends the packet.
    closed: bool,
}

impl<T: Copy + PartialEq> Merger<T> {
    pub(crate) fn new() -> Self {
        Self { open: Vec::with_capacity(OPEN_MAX), spare: Vec::with_capacity(OPEN_MAX) }
    }

    /// Adds a frame. Complete packets go to `out`: the packet's pieces, and the number of frames in it.
    pub(crate) fn take(
        &mut self,
        to: T,
        frame: Frame<Segment>,
        merge: bool,
        out: &mut impl FnMut(T, &[IoSlice<'_>], usize),
    ) {
        let may_merge = merge && frame.payload.is_mergeable();
        let same = |burst: &Burst<T>| burst.to == to && burst.flow == frame.flow;
        if let Some(position) = self.open.iter().position(same) {
            if may_merge && self.open[position].accepts(&frame) {
                self.open[position].append(frame.payload);
                return;
            }
            self.emit(position, out);
        }
        if !may_merge {
            // An empty list takes no memory.
            return Burst::new(to, frame, Vec::new()).emit(out);
        }
        if self.open.len() == OPEN_MAX {
            self.emit(0, out);
        }
        let more = self.spare.pop().unwrap_or_default();
        self.open.push(Burst::new(to, frame, more));
    }

    /// The interrupt has ended: all packets are complete.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(T, &[IoSlice<'_>], usize)) {
        while !self.open.is_empty() {
            self.emit(0, out);
        }
    }

    fn emit(&mut self, position: usize, out: &mut impl FnMut(T, &[IoSlice<'_>], usize)) {
        let burst = self.open.remove(position);
        burst.emit(out);
        let mut more = burst.more;
        more.clear();
        self.spare.push(more);
    }
}

impl Segment {
    fn sequence(&self) -> u32 {
        let packet = &self.packet;
        let first = packet.layout.sequence(packet.frame());
        first.wrapping_add((self.index * packet.segment_bytes) as u32)
    }

    /// FIN and PSH belong to the last segment of a packet, CWR to the first.
    fn flags(&self) -> u8 {
        let mut flags = self.packet.layout.flags(self.packet.frame());
        if self.index + 1 < self.packet.segments() {
            flags &= !(flag::FIN | flag::PSH);
        }
        if self.index > 0 {
            flags &= !flag::CWR;
        }
        flags
    }

    fn payload(&self) -> Range<usize> {
        self.packet.payload(self.index)
    }

    /// Plain TCP data. Segments that open, close or reset a connection, and pure acknowledgements, are not merged.
    fn is_mergeable(&self) -> bool {
        self.packet.layout.is_tcp
            && !self.payload().is_empty()
            && self.flags() & !(flag::PSH | flag::ECE) == flag::ACK
    }
}

impl<T: Copy> Burst<T> {
    fn new(to: T, frame: Frame<Segment>, more: Vec<Piece>) -> Self {
        let first = frame.payload;
        let payload = first.payload();
        let (flags, next_sequence) = if first.packet.layout.is_tcp {
            (first.flags(), first.sequence().wrapping_add(payload.len() as u32))
        } else {
            (0, 0)
        };
        Self {
            to,
            flow: frame.flow,
            marked: frame.marked,
            segments: 1,
            bytes: payload.len(),
            segment_bytes: payload.len(),
            next_sequence,
            flags,
            closed: flags & flag::PSH != 0,
            first,
            range: payload,
            more,
        }
    }

    fn accepts(&self, frame: &Frame<Segment>) -> bool {
        let next = &frame.payload;
        let layout = &self.first.packet.layout;
        let bytes = next.payload().len();
        !self.closed
            && frame.marked == self.marked
            && bytes <= self.segment_bytes
            && layout.header_bytes + self.bytes + bytes <= MERGED_BYTES_MAX
            && self.more.len() + 1 < PIECES_MAX
            && next.sequence() == self.next_sequence
            && (next.flags() ^ self.flags) & !flag::PSH == 0
            && (Rc::ptr_eq(&next.packet, &self.first.packet)
                || (next.packet.layout.header_bytes == layout.header_bytes
                    && next.packet.layout.network == layout.network
                    && layout.is_same_stream(self.first.packet.frame(), next.packet.frame())))
    }

    fn append(&mut self, next: Segment) {
        let payload = next.payload();
        self.closed = payload.len() < self.segment_bytes || next.flags() & flag::PSH != 0;
        self.flags |= next.flags();
        self.segments += 1;
        self.bytes += payload.len();
        self.next_sequence = self.next_sequence.wrapping_add(payload.len() as u32);
        let (last, range) = match self.more.last_mut() {
            Some((last, range)) => (&*last, range),
            None => (&self.first, &mut self.range),
        };
        if Rc::ptr_eq(&last.packet, &next.packet) && range.end == payload.start {
            range.end = payload.end;
        } else {
            self.more.push((next, payload));
        }
    }

    fn emit(&self, out: &mut impl FnMut(T, &[IoSlice<'_>], usize)) {
        let packet = &self.first.packet;
        let is_whole = self.segments == 1 && packet.segment_bytes == 0;
        if is_whole {
            return self.emit_whole(out);
        }
        let layout = &packet.layout;
        let mut head = [0; VNET_HEADER_BYTES + HEADER_BYTES_MAX];
        let (header, headers) = head.split_at_mut(VNET_HEADER_BYTES);
        let headers = &mut headers[..layout.header_bytes];
        headers.copy_from_slice(&packet.frame()[..layout.header_bytes]);
        layout.set_sequence(headers, self.first.sequence());
        layout.set_flags(headers, self.flags);
        layout.set_length(headers, self.bytes, self.first.index);
        if self.marked {
            layout.mark(headers);
        }
        let gso = (self.segments > 1).then_some(vnet::Gso {
            kind: if layout.network == super::headers::NetworkHeader::V6 {
                vnet::GSO_TCP6
            } else {
                vnet::GSO_TCP4
            },
            size: self.segment_bytes,
            header_bytes: layout.header_bytes,
        });
        vnet::write(header, layout.transport, gso);
        let mut slices = [IoSlice::new(&[]); PIECES_MAX + 1];
        slices[0] = IoSlice::new(&head[..VNET_HEADER_BYTES + layout.header_bytes]);
        slices[1] = IoSlice::new(&packet.frame()[self.range.clone()]);
        for (slice, (segment, range)) in slices[2..].iter_mut().zip(&self.more) {
            *slice = IoSlice::new(&segment.packet.frame()[range.clone()]);
        }
        out(self.to, &slices[..self.more.len() + 2], self.segments);
    }

    /// A frame without changes: only a mark must be written into it.
    fn emit_whole(&self, out: &mut impl FnMut(T, &[IoSlice<'_>], usize)) {
        let packet = &self.first.packet;
        let unfinished = vnet::flags(&packet.bytes) & vnet::NEEDS_CSUM != 0;
        let header = if unfinished { &packet.bytes[..VNET_HEADER_BYTES] } else { &DATA_VALID[..] };
        let frame = packet.frame();
        if !self.marked {
            return out(self.to, &[IoSlice::new(header), IoSlice::new(frame)], 1);
        }
        let copied = frame.len().min(HEADER_BYTES_MAX);
        let mut headers = [0; HEADER_BYTES_MAX];
        headers[..copied].copy_from_slice(&frame[..copied]);
        packet.layout.mark(&mut headers[..copied]);
        let slices = [header, &headers[..copied], &frame[copied..]].map(IoSlice::new);
        out(self.to, &slices, 1);
    }
}
