//! Packets cut into frames and merged again: nothing is lost, added or changed, and every header is right.

use super::*;
use linerate_link::Frame;
use std::io::IoSlice;

const MSS: usize = 1448;

/// A TCP packet as a stack hands it over, timestamps included.
struct Tcp {
    v6: bool,
    ports: [u16; 2],
    sequence: u32,
    flags: u8,
    ecn: u8,
    /// Segment size; 0 = one frame.
    gso: usize,
    payload: Vec<u8>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            v6: false,
            ports: [3260, 40_000],
            sequence: 7,
            flags: 0x10,
            ecn: 0,
            gso: 0,
            payload: data(0, 100),
        }
    }
}

/// Bytes that depend on their position.
fn data(start: usize, length: usize) -> Vec<u8> {
    (start..start + length).map(|index| ((index * 31) >> 3) as u8).collect()
}

impl Tcp {
    fn bytes(&self) -> Vec<u8> {
        let network = if self.v6 { self.v6_header() } else { self.v4_header() };
        let mut frame = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
        frame.extend(if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        frame.extend(&network);
        let transport = frame.len();
        frame.extend(self.ports.iter().flat_map(|port| port.to_be_bytes()));
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(99_u32.to_be_bytes());
        let mut pseudo = if self.v6 { network[8..40].to_vec() } else { network[12..20].to_vec() };
        pseudo.extend([0, 6]);
        pseudo.extend(((32 + self.payload.len()) as u16).to_be_bytes());
        frame.extend([0x80, self.flags, 1, 0]);
        frame.extend(sum_of(&pseudo).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend([1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
        frame.extend(&self.payload);
        let mut packet = vec![0; VNET_HEADER_BYTES];
        let gso = vnet::Gso {
            kind: if self.v6 { vnet::GSO_TCP6 } else { vnet::GSO_TCP4 },
            size: self.gso,
            header_bytes: transport + 32,
        };
        vnet::write(&mut packet, transport, (self.gso > 0).then_some(gso));
        packet.extend(frame);
        packet
    }

    fn v4_header(&self) -> Vec<u8> {
        let total = (20 + 32 + self.payload.len()) as u16;
        let mut header = vec![0x45, self.ecn];
        header.extend(total.to_be_bytes());
        header.extend([0x12, 0xfe, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
        let sum = !sum_of(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    fn v6_header(&self) -> Vec<u8> {
        let mut header = vec![0x60, self.ecn << 4, 0, 0];
        header.extend(((32 + self.payload.len()) as u16).to_be_bytes());
        header.extend([6, 64]);
        header.extend([0xfd; 32]);
        header
    }

    fn frames(&self) -> Vec<Frame<Segment>> {
        frames(Packet::parse(self.bytes()).unwrap()).collect()
    }
}

/// Ones' complement sum of 16-bit words.
fn sum_of(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A packet that a host received.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    header: Vec<u8>,
    frame: Vec<u8>,
    segments: usize,
}

impl Given {
    fn transport(&self) -> usize {
        if self.frame[12] == 0x86 { 54 } else { 34 }
    }

    fn payload(&self) -> &[u8] {
        &self.frame[self.transport() + 32..]
    }

    fn sequence(&self) -> u32 {
        let at = self.transport() + 4;
        u32::from_be_bytes(self.frame[at..at + 4].try_into().unwrap())
    }

    fn flags(&self) -> u8 {
        self.frame[self.transport() + 13]
    }

    fn gso_size(&self) -> usize {
        usize::from(u16::from_ne_bytes([self.header[4], self.header[5]]))
    }

    /// Lengths and checksums must be what a real NIC would have received.
    fn assert_true(&self) {
        let transport = self.transport();
        let network = &self.frame[14..transport];
        let length = if transport == 34 {
            assert_eq!(sum_of(network), 0xffff, "the IPv4 checksum");
            usize::from(u16::from_be_bytes([network[2], network[3]])) + 14
        } else {
            usize::from(u16::from_be_bytes([network[4], network[5]])) + 54
        };
        assert_eq!(length, self.frame.len());
        assert_eq!(self.header[0], vnet::NEEDS_CSUM);
        let start = usize::from(u16::from_ne_bytes([self.header[6], self.header[7]]));
        assert_eq!(start, transport);
        // The checksum must be completed as the header says; the sum of the segment with its pseudo header must then be
        // right.
        let addresses = if transport == 34 { &network[12..20] } else { &network[8..40] };
        let mut pseudo = addresses.to_vec();
        pseudo.extend([0, 6]);
        pseudo.extend(((self.frame.len() - transport) as u16).to_be_bytes());
        let field = [self.frame[transport + 16], self.frame[transport + 17]];
        assert_eq!(u16::from_be_bytes(field), sum_of(&pseudo), "the pseudo header's sum");
    }
}

fn deliver(frames: Vec<Frame<Segment>>, merge: bool) -> Vec<Given> {
    let mut merger = Merger::new();
    let mut given = Vec::new();
    let mut out = |(): (), pieces: &[IoSlice<'_>], segments: usize| {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let (header, frame) = bytes.split_at(VNET_HEADER_BYTES);
        given.push(Given { header: header.to_vec(), frame: frame.to_vec(), segments });
    };
    for frame in frames {
        merger.take((), frame, merge, &mut out);
    }
    merger.finish(&mut out);
    given
}

fn joined(given: &[Given]) -> Vec<u8> {
    given.iter().flat_map(|given| given.payload().iter().copied()).collect()
}

#[test]
fn a_packet_becomes_frames_with_headers_of_their_own() {
    for v6 in [false, true] {
        let tcp = Tcp { v6, gso: MSS, flags: 0x98, payload: data(0, 10 * MSS + 77), ..Tcp::default() };
        let frames = tcp.frames();
        let headers = if v6 { 86 } else { 66 };
        assert_eq!(frames.len(), 11);
        assert_eq!(frames[0].length as usize, headers + MSS);
        assert_eq!(frames[10].length as usize, headers + 77);
        assert!(frames.iter().all(|frame| frame.flow == frames[0].flow));
        let given = deliver(frames, false);
        given.iter().for_each(Given::assert_true);
        assert_eq!(joined(&given), tcp.payload);
        for (index, given) in given.iter().enumerate() {
            assert_eq!(given.sequence(), 7 + (index * MSS) as u32);
            // CWR on the first only, PSH on the last only.
            let flags = [0x90, 0x10, 0x18][usize::from(index > 0) + usize::from(index == 10)];
            assert_eq!((given.flags(), given.gso_size()), (flags, 0));
            if !v6 {
                assert_eq!(given.frame[18..20], (0x12fe_u16 + index as u16).to_be_bytes(), "identification");
            }
        }
    }
}

#[test]
fn segments_of_one_packet_or_of_many_merge_into_one() {
    for v6 in [false, true] {
        let whole = Tcp { v6, gso: MSS, payload: data(0, 20 * MSS), ..Tcp::default() };
        let single = |index: usize| Tcp {
            v6,
            sequence: 7 + (index * MSS) as u32,
            payload: data(index * MSS, MSS),
            ..Tcp::default()
        };
        let many = (0..20).flat_map(|index| single(index).frames()).collect();
        for frames in [whole.frames(), many] {
            let given = deliver(frames, true);
            assert_eq!(given.len(), 1);
            assert_eq!((given[0].segments, given[0].gso_size(), given[0].sequence()), (20, MSS, 7));
            assert_eq!(given[0].payload(), whole.payload);
            given[0].assert_true();
        }
    }
}

#[test]
fn what_does_not_follow_is_not_merged() {
    let first = || Tcp { payload: data(0, MSS), ..Tcp::default() };
    let next = || Tcp { sequence: 7 + MSS as u32, payload: data(MSS, MSS), ..Tcp::default() };
    let packets = |second: Tcp| {
        let frames = [first().frames(), second.frames()].concat();
        deliver(frames, true).len()
    };
    assert_eq!(packets(next()), 1);
    assert_eq!(packets(Tcp { sequence: 8 + MSS as u32, ..next() }), 2, "a gap");
    assert_eq!(packets(Tcp { ports: [3260, 40_001], ..next() }), 2, "another connection");
    assert_eq!(packets(Tcp { flags: 0x11, ..next() }), 2, "FIN");
    assert_eq!(packets(Tcp { ecn: 3, ..next() }), 2, "congestion experienced");
    assert_eq!(packets(Tcp { payload: data(0, MSS + 1), ..next() }), 2, "longer than those before");
    assert_eq!(packets(Tcp { payload: Vec::new(), ..next() }), 2, "an acknowledgement");
    assert_eq!(packets(Tcp { v6: true, ..next() }), 2, "another protocol");
    let short_first = [Tcp { payload: data(0, 10), ..first() }, Tcp { sequence: 17, ..next() }];
    let frames = short_first.iter().flat_map(Tcp::frames).collect();
    assert_eq!(deliver(frames, true).len(), 2, "nothing follows a short segment but a shorter one");
    let pushed = [Tcp { flags: 0x18, ..first() }, next()].iter().flat_map(Tcp::frames).collect();
    assert_eq!(deliver(pushed, true).len(), 2, "PSH ends a packet");
}

#[test]
fn a_merged_packet_ends_where_its_length_field_does() {
    let frames = Tcp { gso: MSS, payload: data(0, 44 * MSS), ..Tcp::default() }.frames();
    let sequence = 7 + (44 * MSS) as u32;
    let rest = Tcp { sequence, gso: MSS, payload: data(44 * MSS, 10 * MSS), ..Tcp::default() }.frames();
    let given = deliver([frames, rest].concat(), true);
    assert_eq!(given.len(), 2);
    assert!(given[0].frame.len() <= 65_535 + 14);
    given.iter().for_each(Given::assert_true);
    assert_eq!(joined(&given), data(0, 54 * MSS));
}

#[test]
fn a_merged_packet_has_no_more_pieces_than_there_is_room_for() {
    let mut all = Vec::new();
    for index in 0..1500 {
        all.extend(Tcp { sequence: 7 + index as u32, payload: data(index, 1), ..Tcp::default() }.frames());
    }
    let given = deliver(all, true);
    let segments: Vec<_> = given.iter().map(|given| given.segments).collect();
    assert_eq!(segments, [[63; 23].as_slice(), &[51]].concat());
    assert_eq!(joined(&given), data(0, 1500));
}

#[test]
fn interleaved_conversations_merge_each_for_itself() {
    let flow = |port, start: usize| Tcp {
        ports: [3260, port],
        sequence: start as u32,
        gso: MSS,
        payload: data(start, 4 * MSS),
        ..Tcp::default()
    };
    let sources: Vec<_> = (0..5).map(|port| flow(port, usize::from(port) * 1000).frames()).collect();
    let mixed = (0..4).flat_map(|index| sources.iter().map(move |frames| frames[index].clone())).collect();
    let given = deliver(mixed, true);
    assert_eq!(given.len(), 5);
    assert!(given.iter().all(|given| given.segments == 4));
}

#[test]
fn any_cut_any_loss_and_any_merge_keep_every_byte_in_place() {
    // A small generator: failures repeat.
    let mut state = 12_345_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..300 {
        let (mut frames, mut sent, mut at) = (Vec::new(), Vec::new(), 0_usize);
        for _ in 0..=random(6) {
            let length = 1 + random(20_000) as usize;
            let gso = [0, 100, MSS, 8948][random(4) as usize];
            let length = if gso == 0 { length.min(8948) } else { length };
            let (sequence, payload) = (at as u32, data(at, length));
            let flags = if random(3) == 0 { 0x18 } else { 0x10 };
            frames
                .extend(Tcp { v6: round % 2 == 1, sequence, gso, flags, payload, ..Tcp::default() }.frames());
            at += length;
        }
        frames.retain(|_| random(10) > 0);
        for frame in &frames {
            let segment = deliver(vec![frame.clone()], false).remove(0);
            sent.push((segment.sequence(), segment.payload().to_vec()));
        }
        let given = deliver(frames, true);
        let (mut expected, mut received) = (vec![None; at], vec![None; at]);
        for (places, parts) in [
            (&mut expected, sent),
            (&mut received, given.iter().map(|given| (given.sequence(), given.payload().to_vec())).collect()),
        ] {
            for (sequence, bytes) in parts {
                for (index, byte) in bytes.into_iter().enumerate() {
                    assert!(places[sequence as usize + index].replace(byte).is_none(), "a byte came twice");
                }
            }
        }
        assert_eq!(expected, received, "round {round}");
        for given in &given {
            let segments =
                if given.gso_size() == 0 { 1 } else { given.payload().len().div_ceil(given.gso_size()) };
            assert_eq!(segments, given.segments, "round {round}: the stack will count them like this");
        }
    }
}

#[test]
fn a_mark_reaches_the_host() {
    for v6 in [false, true] {
        for gso in [0, 500] {
            let mut frames = Tcp { v6, ecn: 2, gso, payload: data(0, 1000), ..Tcp::default() }.frames();
            assert!(frames.iter().all(|frame| frame.ecn_capable));
            for frame in &mut frames {
                frame.marked = true;
            }
            for given in deliver(frames, true) {
                let field = if v6 { given.frame[15] >> 4 & 3 } else { given.frame[15] & 3 };
                assert_eq!(field, 3);
                given.assert_true();
            }
        }
    }
    assert!(!Tcp::default().frames()[0].ecn_capable);
}

#[test]
fn a_header_that_is_cut_short_is_not_marked() {
    let mut bytes = vec![0; VNET_HEADER_BYTES + 34];
    // IPv4 with 40 bytes of options that are not there, and an ECN field that asks to be marked.
    bytes[VNET_HEADER_BYTES + 12..VNET_HEADER_BYTES + 16].copy_from_slice(&[0x08, 0x00, 0x4f, 2]);
    let mut frames: Vec<_> = frames(Packet::parse(bytes.clone()).unwrap()).collect();
    assert!(!frames[0].ecn_capable);
    frames[0].marked = true;
    assert_eq!(deliver(frames, true)[0].frame, bytes[VNET_HEADER_BYTES..]);
}

#[test]
fn other_frames_pass_as_they_are() {
    let mut arp = vec![0; VNET_HEADER_BYTES];
    arp.extend([255; 6]);
    arp.extend([2, 0, 0, 0, 0, 1, 0x08, 0x06]);
    arp.extend([9; 28]);
    let frames: Vec<_> = frames(Packet::parse(arp.clone()).unwrap()).collect();
    assert_eq!((frames.len(), frames[0].length), (1, 42));
    assert!(frames[0].destination.is_group());
    let given = deliver(frames, true);
    assert_eq!(given[0].frame, arp[VNET_HEADER_BYTES..]);
    assert_eq!(given[0].header[0], vnet::DATA_VALID);
}

#[test]
fn nonsense_is_refused_and_never_panics() {
    let mut state = 1_u64;
    let whole = Tcp { gso: MSS, payload: data(0, 5000), ..Tcp::default() }.bytes();
    for round in 0..4_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut bytes = whole[..(state >> 40) as usize % whole.len()].to_vec();
        if round % 2 == 0 {
            bytes = whole.clone();
        }
        for shift in 0..round % 4 {
            let at = (state >> (20 + shift)) as usize % bytes.len().clamp(1, 100);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = (state >> 8) as u8;
            }
        }
        if let Some(packet) = Packet::parse(bytes) {
            let mut cut: Vec<_> = frames(packet).collect();
            for frame in &mut cut {
                frame.marked = round % 3 == 0;
            }
            deliver(cut, true);
        }
    }
    assert!(Packet::parse(Vec::new()).is_none());
}
