//! The table of operational keys (RFC 7143 section 13, and 8.1.2 of RFC 7144).

use super::{DigestOffer, Offer};
use crate::params::{DigestKind, SessionParams};

/// One key.
#[derive(Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its values, the rule for the result, our side's value, and the field for the result.
    pub kind: Kind,
    /// Where it may be used.
    pub place: Place,
    /// The side that may send it first.
    pub who: Who,
    /// It has a meaning in discovery sessions.
    pub in_discovery: bool,
    /// It is valid for the whole session: only the login of the first connection may use it (LO in RFC 7143 section
    /// 13).
    pub leading_only: bool,
}

/// The values of a key, our side's value, and the field for the result.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A list of digests; the result is the first one that both accept.
    Digest {
        /// Our wish.
        ours: fn(&Offer) -> DigestOffer,
        /// Stores the result.
        set: fn(&mut SessionParams, DigestKind),
    },
    /// A number; the result is the smaller (or the larger) of both sides'.
    Number {
        /// Least value.
        min: u32,
        /// Greatest value.
        max: u32,
        /// The result is the larger one.
        larger: bool,
        /// Our value.
        ours: fn(&Offer) -> u32,
        /// Stores the result.
        set: fn(&mut SessionParams, u32),
    },
    /// A number that each side declares for itself.
    DeclaredNumber {
        /// Least value.
        min: u32,
        /// Greatest value.
        max: u32,
        /// Our value.
        ours: fn(&Offer) -> u32,
        /// Stores ours.
        set_ours: fn(&mut SessionParams, u32),
        /// Stores the peer's.
        set_peers: fn(&mut SessionParams, u32),
    },
    /// Yes or No; the result is the OR (else the AND) of both sides'.
    Boolean {
        /// The result is the OR.
        or: bool,
        /// Our value.
        ours: fn(&Offer) -> bool,
        /// Stores the result.
        set: fn(&mut SessionParams, bool),
    },
    /// A list of words of which we accept only one.
    Word {
        /// The word.
        only: &'static str,
    },
    /// Understood, and always answered in the same way (keys that RFC 7143 withdrew).
    Fixed {
        /// The answer.
        answer: &'static str,
    },
    /// Text that one side declares; the login state machines read it, and nothing is negotiated.
    DeclaredText,
}

/// Where a key may be used (the "Use" of RFC 7143 section 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Any login stage.
    Login,
    /// The operational stage only.
    Operational,
    /// The operational stage and full feature phase.
    OperationalAndLater,
}

/// The side that may send a key first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The initiator.
    Initiator,
    /// The target.
    Target,
    /// Either.
    Both,
}

/// The largest length that a 24-bit field holds.
const LENGTH_MAX: u32 = (1 << 24) - 1;

const fn key(name: &'static str, kind: Kind, place: Place, who: Who, in_discovery: bool) -> Key {
    Key { name, kind, place, who, in_discovery, leading_only: false }
}

/// A key of the operational stage that is valid for the whole session.
const fn session_wide(name: &'static str, kind: Kind, in_discovery: bool) -> Key {
    Key { leading_only: true, ..key(name, kind, Place::Operational, Who::Both, in_discovery) }
}

const fn declared(name: &'static str, who: Who) -> Key {
    key(name, Kind::DeclaredText, Place::Login, who, true)
}

const fn length(ours: fn(&Offer) -> u32, set: fn(&mut SessionParams, u32)) -> Kind {
    Kind::Number { min: 512, max: LENGTH_MAX, larger: false, ours, set }
}

/// A boolean for which only Yes is supported. The rule is OR, so the result is always Yes.
const IN_ORDER: Kind = Kind::Boolean { or: true, ours: |_| true, set: |_, _| () };

/// Every operational key, in the order in which an initiator offers them.
pub const KEYS: &[Key] = &[
    declared("InitiatorName", Who::Initiator),
    declared("InitiatorAlias", Who::Initiator),
    declared("TargetName", Who::Initiator),
    declared("SessionType", Who::Initiator),
    declared("TargetAlias", Who::Target),
    declared("TargetAddress", Who::Target),
    declared("TargetPortalGroupTag", Who::Target),
    key(
        "HeaderDigest",
        Kind::Digest { ours: |o| o.header_digest, set: |p, v| p.header_digest = v },
        Place::Operational,
        Who::Both,
        true,
    ),
    key(
        "DataDigest",
        Kind::Digest { ours: |o| o.data_digest, set: |p, v| p.data_digest = v },
        Place::Operational,
        Who::Both,
        true,
    ),
    key(
        "MaxRecvDataSegmentLength",
        Kind::DeclaredNumber {
            min: 512,
            max: LENGTH_MAX,
            ours: |o| o.max_recv_data_segment_length,
            set_ours: |p, v| p.max_recv_data_segment_length = v,
            set_peers: |p, v| p.peer_max_recv_data_segment_length = v,
        },
        Place::OperationalAndLater,
        Who::Both,
        true,
    ),
    session_wide("MaxBurstLength", length(|o| o.max_burst_length, |p, v| p.max_burst_length = v), false),
    session_wide(
        "FirstBurstLength",
        length(|o| o.first_burst_length, |p, v| p.first_burst_length = v),
        false,
    ),
    session_wide(
        "InitialR2T",
        Kind::Boolean { or: true, ours: |o| o.initial_r2t, set: |p, v| p.initial_r2t = v },
        false,
    ),
    session_wide(
        "ImmediateData",
        Kind::Boolean { or: false, ours: |o| o.immediate_data, set: |p, v| p.immediate_data = v },
        false,
    ),
    session_wide(
        "MaxOutstandingR2T",
        Kind::Number {
            min: 1,
            max: 65_535,
            larger: false,
            ours: |o| u32::from(o.max_outstanding_r2t),
            set: |p, v| p.max_outstanding_r2t = v as u16,
        },
        false,
    ),
    session_wide(
        "MaxConnections",
        Kind::Number {
            min: 1,
            max: 65_535,
            larger: false,
            ours: |o| u32::from(o.max_connections),
            set: |p, v| p.max_connections = v as u16,
        },
        false,
    ),
    session_wide("DataPDUInOrder", IN_ORDER, false),
    session_wide("DataSequenceInOrder", IN_ORDER, false),
    session_wide(
        "DefaultTime2Wait",
        Kind::Number {
            min: 0,
            max: 3600,
            larger: true,
            ours: |o| u32::from(o.default_time2wait_s),
            set: |p, v| p.default_time2wait_s = v as u16,
        },
        true,
    ),
    session_wide(
        "DefaultTime2Retain",
        Kind::Number {
            min: 0,
            max: 3600,
            larger: false,
            ours: |o| u32::from(o.default_time2retain_s),
            set: |p, v| p.default_time2retain_s = v as u16,
        },
        true,
    ),
    session_wide(
        "ErrorRecoveryLevel",
        Kind::Number {
            min: 0,
            max: 2,
            larger: false,
            ours: |_| 0,
            set: |p, v| p.error_recovery_level = v as u8,
        },
        true,
    ),
    session_wide("TaskReporting", Kind::Word { only: "RFC3720" }, false),
    session_wide("iSCSIProtocolLevel", Kind::Fixed { answer: "1" }, false),
    key("IFMarker", Kind::Fixed { answer: "No" }, Place::Operational, Who::Both, true),
    key("OFMarker", Kind::Fixed { answer: "No" }, Place::Operational, Who::Both, true),
    key("IFMarkInt", Kind::Fixed { answer: "Reject" }, Place::Operational, Who::Both, true),
    key("OFMarkInt", Kind::Fixed { answer: "Reject" }, Place::Operational, Who::Both, true),
];

/// Index of a key in [`KEYS`].
pub(super) fn find(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}
