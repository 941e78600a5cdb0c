//! Walks the key table: offers, answers, checks answers.

use super::table::{Key, Kind, Place, Who, find};
use super::{KEYS, Offer};
use crate::params::{DigestKind, SessionParams};
use crate::text::{IRRELEVANT, NOT_UNDERSTOOD, REJECT, Writer};

/// Which side we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// We log in.
    Initiator,
    /// We are logged into.
    Target,
}

/// Negotiation of one session's operational keys.
#[derive(Clone, Debug)]
pub struct Negotiation {
    side: Side,
    offer: Offer,
    discovery: bool,
    /// The login adds a connection to a session, so the session's keys are negotiated already.
    joining: bool,
    params: SessionParams,
    /// Bit per index of [`KEYS`]: the peer has sent the key.
    received: u32,
    /// Bit per index of [`KEYS`]: we have offered the key and wait for the answer.
    awaited: u32,
    /// Bit per index of [`KEYS`]: our offer decides the result alone, and the peer may leave out its answer.
    decided: u32,
    /// Bit per index of [`KEYS`]: we have declared the key.
    declared: u32,
}

const _: () = assert!(KEYS.len() <= 32, "the bit sets have 32 bits");

impl Negotiation {
    /// No key was sent yet: the defaults are valid.
    pub fn new(side: Side, offer: Offer, discovery: bool) -> Self {
        debug_assert!(offer.first_burst_length <= offer.max_burst_length);
        let params = SessionParams::default();
        Negotiation {
            side,
            offer,
            discovery,
            joining: false,
            params,
            received: 0,
            awaited: 0,
            decided: 0,
            declared: 0,
        }
    }

    /// Negotiation of a connection that joins a session: the keys of the session keep their values, the others are
    /// negotiated.
    pub fn joining(side: Side, offer: Offer, session: &SessionParams) -> Self {
        let fresh = SessionParams::default();
        let params = SessionParams {
            max_recv_data_segment_length: fresh.max_recv_data_segment_length,
            peer_max_recv_data_segment_length: fresh.peer_max_recv_data_segment_length,
            header_digest: fresh.header_digest,
            data_digest: fresh.data_digest,
            ..*session
        };
        Negotiation { joining: true, params, ..Self::new(side, offer, false) }
    }

    /// Whether the session's keys are negotiated already.
    pub fn is_joining(&self) -> bool {
        self.joining
    }

    /// Whether a key has a meaning in this login.
    fn has_meaning(&self, key: &Key) -> bool {
        (key.in_discovery || !self.discovery) && !(self.joining && key.leading_only)
    }

    /// Writes all keys that this side sends first: the initiator offers all keys that it negotiates, the target
    /// declares its segment length (once).
    pub fn propose(&mut self, out: &mut Writer) {
        for (index, key) in KEYS.iter().enumerate() {
            let bit = 1 << index;
            if !self.has_meaning(key) || self.received & bit != 0 && self.side == Side::Initiator {
                continue;
            }
            if let Kind::DeclaredNumber { ours, set_ours, .. } = key.kind {
                if self.declared & bit == 0 {
                    self.declared |= bit;
                    set_ours(&mut self.params, ours(&self.offer));
                    out.push(key.name, &ours(&self.offer).to_string());
                }
                continue;
            }
            if self.side == Side::Initiator
                && let Some(value) = self.offered(key)
            {
                self.awaited |= bit;
                if self.decides(key) {
                    self.decided |= bit;
                }
                out.push(key.name, &value);
            }
        }
    }

    /// Whether our value is the result for any value of the peer, which is stored then (RFC 7143 section 6.2.2: OR with
    /// Yes, AND with No; Linux's LIO does not answer these).
    fn decides(&mut self, key: &Key) -> bool {
        match key.kind {
            Kind::Boolean { or, ours, set } if ours(&self.offer) == or => {
                set(&mut self.params, or);
                true
            }
            _ => false,
        }
    }

    /// The value we offer for a negotiated key.
    fn offered(&self, key: &Key) -> Option<String> {
        match key.kind {
            Kind::Digest { ours, .. } => {
                let names: Vec<&str> =
                    ours(&self.offer).values().iter().map(|kind| digest_name(*kind)).collect();
                Some(names.join(","))
            }
            Kind::Number { ours, .. } => Some(ours(&self.offer).to_string()),
            Kind::Boolean { ours, .. } => Some(yes_no(ours(&self.offer)).into()),
            Kind::DeclaredNumber { .. } | Kind::DeclaredText | Kind::Fixed { .. } | Kind::Word { .. } => None,
        }
    }

    /// Accepts a pair in the operational stage: an answer to our offer, or the peer's offer, whose answer is written to
    /// `out`. Names and other declared text are accepted and left to the caller.
    pub fn receive(&mut self, name: &str, value: &str, out: &mut Writer) -> Result<(), NegotiationError> {
        let Some(index) = find(name) else {
            // Answers to keys that we never sent are not answered.
            if value != NOT_UNDERSTOOD {
                out.push(name, NOT_UNDERSTOOD);
            }
            return Ok(());
        };
        let key = &KEYS[index];
        let bit = 1 << index;
        if self.received & bit != 0 {
            return Err(NegotiationError::Repeated(key.name));
        }
        self.received |= bit;
        let peer_may = match key.who {
            Who::Both => true,
            Who::Initiator => self.side == Side::Target,
            Who::Target => self.side == Side::Initiator,
        };
        if !peer_may {
            return Err(NegotiationError::WrongSide(key.name));
        }
        if self.awaited & bit != 0 {
            self.awaited &= !bit;
            return self.take_answer(key, value);
        }
        if self.joining && key.leading_only {
            return Err(NegotiationError::LeadingOnly(key.name));
        }
        if self.discovery && !key.in_discovery {
            out.push(key.name, IRRELEVANT);
            return Ok(());
        }
        self.answer(key, value, out)
    }

    /// True if the peer still owes answers.
    pub fn is_waiting(&self) -> bool {
        self.awaited & !self.decided != 0
    }

    /// The result. Keys that neither side sent have their defaults.
    pub fn params(&self) -> SessionParams {
        let mut params = self.params;
        // Each side's pair obeys this rule, but a default may be larger than a negotiated value.
        params.first_burst_length = params.first_burst_length.min(params.max_burst_length);
        params
    }

    /// Answers the peer's offer.
    fn answer(&mut self, key: &Key, value: &str, out: &mut Writer) -> Result<(), NegotiationError> {
        let bad = NegotiationError::BadValue(key.name);
        match key.kind {
            Kind::Digest { ours, set } => {
                let accepted = ours(&self.offer).values();
                let chosen = value.split(',').filter_map(digest_kind).find(|kind| accepted.contains(kind));
                let Some(kind) = chosen else {
                    out.push(key.name, REJECT);
                    return Err(NegotiationError::NoCommonValue(key.name));
                };
                set(&mut self.params, kind);
                out.push(key.name, digest_name(kind));
            }
            Kind::Number { min, max, larger, ours, set } => {
                let Some(theirs) = number(value).filter(|n| (min..=max).contains(n)) else {
                    out.push(key.name, REJECT);
                    return Ok(());
                };
                let ours = ours(&self.offer);
                let result = if larger { theirs.max(ours) } else { theirs.min(ours) };
                set(&mut self.params, result);
                out.push(key.name, &result.to_string());
            }
            Kind::DeclaredNumber { min, max, set_peers, .. } => {
                let theirs = number(value).filter(|n| (min..=max).contains(n)).ok_or(bad)?;
                set_peers(&mut self.params, theirs);
            }
            Kind::Boolean { or, ours, set } => {
                let Some(theirs) = boolean(value) else {
                    out.push(key.name, REJECT);
                    return Ok(());
                };
                let ours = ours(&self.offer);
                let result = if or { ours || theirs } else { ours && theirs };
                set(&mut self.params, result);
                out.push(key.name, yes_no(result));
            }
            Kind::Word { only } => {
                let known = value.split(',').any(|word| word == only);
                out.push(key.name, if known { only } else { REJECT });
            }
            Kind::Fixed { answer } => out.push(key.name, answer),
            Kind::DeclaredText => {}
        }
        Ok(())
    }

    /// Checks the peer's answer to our offer. A key that the peer does not understand keeps its default.
    fn take_answer(&mut self, key: &Key, value: &str) -> Result<(), NegotiationError> {
        if value == IRRELEVANT || value == NOT_UNDERSTOOD {
            return Ok(());
        }
        if value == REJECT {
            return Err(NegotiationError::Rejected(key.name));
        }
        let bad = NegotiationError::BadValue(key.name);
        match key.kind {
            Kind::Digest { ours, set } => {
                let kind = digest_kind(value).filter(|kind| ours(&self.offer).values().contains(kind));
                set(&mut self.params, kind.ok_or(bad)?);
            }
            Kind::Number { min, max, larger, ours, set } => {
                let result = number(value).filter(|n| (min..=max).contains(n)).ok_or(bad)?;
                let ours = ours(&self.offer);
                if if larger { result < ours } else { result > ours } {
                    return Err(bad);
                }
                set(&mut self.params, result);
            }
            Kind::Boolean { or, ours, set } => {
                let result = boolean(value).ok_or(bad)?;
                let ours = ours(&self.offer);
                // OR with our Yes is Yes, AND with our No is No, for any value of the peer.
                if ours == or && result != or {
                    return Err(bad);
                }
                set(&mut self.params, result);
            }
            Kind::DeclaredNumber { .. } | Kind::Word { .. } | Kind::Fixed { .. } | Kind::DeclaredText => {}
        }
        Ok(())
    }
}

/// Whether a key may be used in a login stage (security stage: only declarations).
pub(crate) fn allowed_in_security(name: &str) -> bool {
    find(name).is_none_or(|index| KEYS[index].place == Place::Login)
}

/// A numeric value: decimal or hexadecimal (RFC 7143 section 6.1), at most 32 bits.
pub(crate) fn number(value: &str) -> Option<u32> {
    let digits = |text: &str, radix| {
        let valid = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
        if valid { u32::from_str_radix(text, radix).ok() } else { None }
    };
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) => digits(hex, 16),
        None => digits(value, 10),
    }
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

fn yes_no(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

fn digest_kind(value: &str) -> Option<DigestKind> {
    match value {
        "None" => Some(DigestKind::None),
        "CRC32C" => Some(DigestKind::Crc32c),
        _ => None,
    }
}

fn digest_name(kind: DigestKind) -> &'static str {
    match kind {
        DigestKind::None => "None",
        DigestKind::Crc32c => "CRC32C",
    }
}

/// The peer's offer or answer cannot be accepted (fault: peer, unless the peer lacks a value that our configuration
/// requires).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// A key was sent twice.
    #[error("peer sent key {0} twice")]
    Repeated(&'static str),
    /// A key that only the other side may send.
    #[error("peer sent key {0}, which only this side may send")]
    WrongSide(&'static str),
    /// A key that only a session's first login may use.
    #[error("peer sent key {0} while a connection joined its session, which has settled it")]
    LeadingOnly(&'static str),
    /// A value outside the key's range or its rules.
    #[error("peer sent an invalid value for key {0}")]
    BadValue(&'static str),
    /// There is no value that both sides accept: change this side's setting or the peer's.
    #[error("peer and this side have no common value for key {0}")]
    NoCommonValue(&'static str),
    /// The peer refused our offer.
    #[error("peer rejected this side's value for key {0}")]
    Rejected(&'static str),
}
