//! Operational keys and their negotiation (RFC 7143 sections 6.2 and 13).
//!
//! `table.rs` has every key with its kind, range, default and place: the code here only uses that table.
//!
//! A *declared* key (`MaxRecvDataSegmentLength`, names) is accepted and not answered. A *negotiated* key is offered by
//! one side, and the other side answers with the result. The kind of the key defines the result: the smaller or larger
//! number, the AND or OR of booleans, the first value of the list that the answering side accepts.
//!
//! Most keys are valid for the whole session and are negotiated by its first ("leading") login. A login that adds a
//! connection to the session negotiates only the keys of the connection: digests and segment lengths.

mod negotiate;
mod table;

pub use negotiate::{Negotiation, NegotiationError, Side};
pub(crate) use negotiate::{allowed_in_security, number};
pub use table::{KEYS, Key, Kind, Place, Who};

use crate::params::DigestKind;

/// Our preference for a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestOffer {
    /// Never: `None`.
    Refuse,
    /// If the peer prefers it: `None,CRC32C`.
    #[default]
    Accept,
    /// If the peer can: `CRC32C,None`.
    Prefer,
    /// Always: `CRC32C`.
    Require,
}

impl DigestOffer {
    /// The values we accept, best first.
    pub fn values(self) -> &'static [DigestKind] {
        match self {
            DigestOffer::Refuse => &[DigestKind::None],
            DigestOffer::Accept => &[DigestKind::None, DigestKind::Crc32c],
            DigestOffer::Prefer => &[DigestKind::Crc32c, DigestKind::None],
            DigestOffer::Require => &[DigestKind::Crc32c],
        }
    }
}

/// The values that this side offers, and their limits. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Header digest.
    pub header_digest: DigestOffer,
    /// Data digest.
    pub data_digest: DigestOffer,
    /// Largest data segment we receive: 512 to 2^24 - 1.
    pub max_recv_data_segment_length: u32,
    /// Largest sequence: 512 to 2^24 - 1.
    pub max_burst_length: u32,
    /// Most unsolicited data per command: 512 to 2^24 - 1, at most `max_burst_length`.
    pub first_burst_length: u32,
    /// Allow data in command PDUs.
    pub immediate_data: bool,
    /// Forbid unsolicited Data-Out.
    pub initial_r2t: bool,
    /// R2Ts outstanding per task: 1 to 65535.
    pub max_outstanding_r2t: u16,
    /// Least seconds to wait before reconnecting: 0 to 3600.
    pub default_time2wait_s: u16,
    /// Most seconds that tasks are kept: 0 to 3600.
    pub default_time2retain_s: u16,
    /// Connections of one session: 1 to 65535.
    pub max_connections: u16,
}

impl Default for Offer {
    fn default() -> Self {
        Offer {
            header_digest: DigestOffer::Accept,
            data_digest: DigestOffer::Accept,
            max_recv_data_segment_length: 262_144,
            max_burst_length: 1_048_576,
            first_burst_length: 262_144,
            immediate_data: true,
            initial_r2t: false,
            max_outstanding_r2t: 1,
            default_time2wait_s: 2,
            default_time2retain_s: 0,
            max_connections: 1,
        }
    }
}
