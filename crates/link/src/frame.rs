//! Ethernet frames: the fields that NICs and switches use, and the caller's own data.

/// Nanoseconds of virtual time.
pub type Nanos = u64;

/// An Ethernet address in the low 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(u64);

impl Mac {
    /// From the six bytes as they are on the wire.
    pub const fn new(bytes: [u8; 6]) -> Self {
        let mut wide = [0; 8];
        let mut index = 0;
        while index < bytes.len() {
            wide[index + 2] = bytes[index];
            index += 1;
        }
        Self(u64::from_be_bytes(wide))
    }

    /// Broadcast or multicast.
    pub const fn is_group(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    /// The address and a VLAN as one number.
    pub(crate) const fn in_vlan(self, vlan: u16) -> u64 {
        self.0 | (vlan as u64) << 48
    }
}

/// A frame. VLAN and priority come from the interface that sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// Bytes without preamble and FCS: 1514 for a full frame of MTU 1500.
    pub length: u32,
    /// Sender.
    pub source: Mac,
    /// Receiver.
    pub destination: Mac,
    /// Equal for all frames of a conversation in this direction, and evenly distributed: selects the link of a LAG.
    pub flow: u32,
    /// The sender understands ECN: it may be marked.
    pub ecn_capable: bool,
    /// A switch has marked it (ECN congestion experienced).
    pub marked: bool,
    /// What the caller attached.
    pub payload: P,
}

/// A frame inside the network.
#[derive(Clone, Debug)]
pub(crate) struct Tagged<P> {
    pub(crate) frame: Frame<P>,
    pub(crate) vlan: u16,
    pub(crate) priority: u8,
}

/// Bytes of an Ethernet header.
pub(crate) const HEADER_BYTES: u32 = 14;

/// Bytes that a frame takes on the wire: padding to 60 bytes, preamble 8, FCS 4, gap 12.
pub(crate) const fn wire_bytes(length: u32) -> u64 {
    let padded = if length < 60 { 60 } else { length };
    padded as u64 + 24
}
