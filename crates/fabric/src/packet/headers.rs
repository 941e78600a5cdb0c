//! Ethernet, IPv4, IPv6 and TCP headers: their positions, and the few fields that a NIC reads or rewrites.

/// Longest headers that are copied: Ethernet 14, IPv4 60, TCP 60.
pub(super) const HEADER_BYTES_MAX: usize = 134;
const ETHERNET_BYTES: usize = 14;
const IPV6_BYTES: usize = 40;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Bits of the TCP flags.
pub(super) mod flag {
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const ACK: u8 = 0x10;
    pub(crate) const ECE: u8 = 0x40;
    pub(crate) const CWR: u8 = 0x80;
}

/// `virtio_net_hdr`: flags u8, `gso_type` u8, then u16 `hdr_len`, `gso_size`, `csum_start`, `csum_offset` in host byte
/// order.
pub(super) mod vnet {
    use linerate_io::net::VNET_HEADER_BYTES;

    pub(crate) const NEEDS_CSUM: u8 = 1;
    pub(crate) const DATA_VALID: u8 = 2;
    pub(crate) const GSO_NONE: u8 = 0;
    pub(crate) const GSO_TCP4: u8 = 1;
    pub(crate) const GSO_TCP6: u8 = 4;
    /// Added to the type if the first segment has CWR.
    pub(crate) const GSO_ECN: u8 = 0x80;

    pub(crate) fn flags(packet: &[u8]) -> u8 {
        packet[0]
    }

    pub(crate) fn gso_type(packet: &[u8]) -> u8 {
        packet[1] & !GSO_ECN
    }

    pub(crate) fn gso_size(packet: &[u8]) -> u16 {
        u16::from_ne_bytes([packet[4], packet[5]])
    }

    /// The segmentation of a merged packet, by its header.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Gso {
        pub(crate) kind: u8,
        pub(crate) size: usize,
        pub(crate) header_bytes: usize,
    }

    /// A header: checksum to be completed from `csum_start` on, segmentation if any.
    pub(crate) fn write(into: &mut [u8], csum_start: usize, gso: Option<Gso>) {
        let mut fields = [0; VNET_HEADER_BYTES];
        fields[0] = NEEDS_CSUM;
        if let Some(gso) = gso {
            fields[1] = gso.kind;
            fields[2..4].copy_from_slice(&(gso.header_bytes as u16).to_ne_bytes());
            fields[4..6].copy_from_slice(&(gso.size as u16).to_ne_bytes());
        }
        fields[6..8].copy_from_slice(&(csum_start as u16).to_ne_bytes());
        fields[8..10].copy_from_slice(&(super::TCP_CHECKSUM as u16).to_ne_bytes());
        into[..VNET_HEADER_BYTES].copy_from_slice(&fields);
    }
}

/// Where the checksum is in a TCP header.
const TCP_CHECKSUM: usize = 16;
/// Where the flags are.
const TCP_FLAGS: usize = 13;

/// The positions of the headers in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderLayout {
    pub(super) network: NetworkHeader,
    /// Offset of TCP (or UDP).
    pub(super) transport: usize,
    pub(super) is_tcp: bool,
    has_ports: bool,
    /// Offset of the TCP payload; the whole frame if it is not TCP.
    pub(super) header_bytes: usize,
    /// Its end: padding of short frames follows.
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkHeader {
    V4,
    V6,
    Other,
}

impl HeaderLayout {
    /// None if it is shorter than an Ethernet header.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let kind = frame.get(12..ETHERNET_BYTES)?;
        let other = Self {
            network: NetworkHeader::Other,
            transport: 0,
            is_tcp: false,
            has_ports: false,
            header_bytes: frame.len(),
            end: frame.len(),
        };
        Some(match kind {
            [0x08, 0x00] => Self::of_v4(frame).unwrap_or(other),
            [0x86, 0xdd] => Self::of_v6(frame).unwrap_or(other),
            _ => other,
        })
    }

    fn of_v4(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..ETHERNET_BYTES + 20)?;
        let header = usize::from(ip[0] & 15) * 4;
        // Fragments have no ports, or only some have them.
        let is_fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
        if ip[0] >> 4 != 4 || header < 20 || frame.len() < ETHERNET_BYTES + header {
            return None;
        }
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let protocol = if is_fragment { 0 } else { ip[9] };
        Self::of_ip(frame, NetworkHeader::V4, ETHERNET_BYTES + header, protocol, ETHERNET_BYTES + total)
    }

    fn of_v6(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..ETHERNET_BYTES + IPV6_BYTES)?;
        let transport = ETHERNET_BYTES + IPV6_BYTES;
        let payload = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        Self::of_ip(frame, NetworkHeader::V6, transport, ip[6], transport + payload)
    }

    fn of_ip(
        frame: &[u8],
        network: NetworkHeader,
        transport: usize,
        protocol: u8,
        end: usize,
    ) -> Option<Self> {
        // Packets for segmentation may be longer than the maximum of the length field.
        let end = if end > ETHERNET_BYTES && end <= frame.len() { end } else { frame.len() };
        let has_ports = matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP) && frame.len() >= transport + 4;
        let plain = Self { network, transport, is_tcp: false, has_ports, header_bytes: end, end };
        if protocol != PROTOCOL_TCP {
            return Some(plain);
        }
        let offset = *frame.get(transport + 12)?;
        let header_bytes = transport + usize::from(offset >> 4) * 4;
        let is_sound = header_bytes >= transport + 20 && header_bytes <= end;
        Some(if is_sound { Self { is_tcp: true, header_bytes, ..plain } } else { plain })
    }

    /// The same number for all frames of a conversation in this direction.
    pub(super) fn flow(&self, frame: &[u8]) -> u32 {
        let addresses = match self.network {
            NetworkHeader::V4 => &frame[ETHERNET_BYTES + 12..ETHERNET_BYTES + 20],
            NetworkHeader::V6 => &frame[ETHERNET_BYTES + 8..ETHERNET_BYTES + 40],
            NetworkHeader::Other => &frame[..12],
        };
        let ports = if self.has_ports { &frame[self.transport..self.transport + 4] } else { &[] };
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for &byte in addresses.iter().chain(ports) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // FNV leaves patterns in the low bits, which choose the link of a LAG: ports are often even, or count up.
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    }

    pub(super) fn is_ecn_capable(&self, frame: &[u8]) -> bool {
        matches!(self.ecn(frame), 1 | 2)
    }

    fn ecn(&self, frame: &[u8]) -> u8 {
        match self.network {
            NetworkHeader::V4 => frame[ETHERNET_BYTES + 1] & 3,
            NetworkHeader::V6 => frame[ETHERNET_BYTES + 1] >> 4 & 3,
            NetworkHeader::Other => 0,
        }
    }

    /// Writes "congestion experienced", and the IPv4 checksum anew.
    pub(super) fn mark(&self, headers: &mut [u8]) {
        match self.network {
            NetworkHeader::V4 => {
                headers[ETHERNET_BYTES + 1] |= 3;
                self.sum_v4(headers);
            }
            NetworkHeader::V6 => headers[ETHERNET_BYTES + 1] |= 0x30,
            NetworkHeader::Other => {}
        }
    }

    /// Sets the headers for this many bytes of payload, and for the packet `id_offset` after the given one.
    pub(super) fn set_length(&self, headers: &mut [u8], payload: usize, id_offset: usize) {
        let bytes = self.header_bytes - ETHERNET_BYTES + payload;
        match self.network {
            NetworkHeader::V4 => {
                put(headers, ETHERNET_BYTES + 2, bytes as u16);
                let id = get(headers, ETHERNET_BYTES + 4).wrapping_add(id_offset as u16);
                put(headers, ETHERNET_BYTES + 4, id);
                self.sum_v4(headers);
            }
            NetworkHeader::V6 => put(headers, ETHERNET_BYTES + 4, (bytes - IPV6_BYTES) as u16),
            NetworkHeader::Other => {}
        }
        // The field of an incomplete checksum has the sum of the pseudo header, not inverted.
        let addresses = match self.network {
            NetworkHeader::V4 => ETHERNET_BYTES + 12..ETHERNET_BYTES + 20,
            NetworkHeader::V6 => ETHERNET_BYTES + 8..ETHERNET_BYTES + 40,
            NetworkHeader::Other => return,
        };
        let segment = (self.header_bytes - self.transport + payload) as u32;
        let sum = sum_words(&headers[addresses]) + u32::from(PROTOCOL_TCP) + segment;
        put(headers, self.transport + TCP_CHECKSUM, fold(sum));
    }

    pub(super) fn sequence(&self, frame: &[u8]) -> u32 {
        let at = self.transport + 4;
        u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
    }

    pub(super) fn set_sequence(&self, headers: &mut [u8], sequence: u32) {
        let at = self.transport + 4;
        headers[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
    }

    pub(super) fn flags(&self, frame: &[u8]) -> u8 {
        frame[self.transport + TCP_FLAGS]
    }

    pub(super) fn set_flags(&self, headers: &mut [u8], flags: u8) {
        headers[self.transport + TCP_FLAGS] = flags;
    }

    /// Whether two headers of the same layout differ only in the fields that may differ between consecutive segments:
    /// length, identification, checksums, sequence, flags, window.
    pub(super) fn is_same_stream(&self, one: &[u8], other: &[u8]) -> bool {
        let network_ends = match self.network {
            NetworkHeader::V4 => {
                [ETHERNET_BYTES + 2, ETHERNET_BYTES + 6, ETHERNET_BYTES + 10, ETHERNET_BYTES + 12]
            }
            NetworkHeader::V6 => {
                [ETHERNET_BYTES + 4, ETHERNET_BYTES + 6, ETHERNET_BYTES + 6, ETHERNET_BYTES + 6]
            }
            NetworkHeader::Other => return false,
        };
        let [length, after_id, sum, addresses] = network_ends;
        let tcp = self.transport;
        let parts =
            [0..length, after_id..sum, addresses..tcp + 4, tcp + 8..tcp + 13, tcp + 18..self.header_bytes];
        parts.into_iter().all(|part| one[part.clone()] == other[part])
    }

    fn sum_v4(&self, headers: &mut [u8]) {
        put(headers, ETHERNET_BYTES + 10, 0);
        let sum = !fold(sum_words(&headers[ETHERNET_BYTES..self.transport]));
        put(headers, ETHERNET_BYTES + 10, sum);
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sum of 16-bit words, of an even number of bytes.
fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
