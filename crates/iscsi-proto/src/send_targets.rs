//! Text exchanges in full feature phase; only `SendTargets` is in use (RFC 7143 sections 11.10, 11.11 and Appendix C).
//!
//! An answer longer than the initiator's segment length is split: the target sends pieces with a transfer tag, and the
//! initiator requests the next one with an empty request that carries the tag.

use crate::keys::number;
use crate::names::IscsiName;
use crate::pdu::{Lun, RESERVED_TAG, TextRequest, TextResponse};
use crate::text::{self, Collector, NOT_UNDERSTOOD, REJECT, Splitter, TextError, Writer};

/// A target in a discovery answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredTarget {
    /// Its name, as the target wrote it.
    pub name: String,
    /// Its portals; empty: the portal of the discovery session.
    pub addresses: Vec<TargetAddress>,
}

/// A portal of a target: `host[:port][,tag]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAddress {
    /// Name or address, IPv6 without brackets.
    pub host: String,
    /// TCP port; 3260 if left out.
    pub port: u16,
    /// Portal group tag.
    pub portal_group_tag: Option<u16>,
}

/// The port that IANA gave iSCSI.
pub const DEFAULT_PORT: u16 = 3260;

impl TargetAddress {
    /// Parses `host[:port][,tag]`, with an IPv6 address in brackets (RFC 7143 section 13.8).
    pub fn parse(text: &str) -> Option<Self> {
        let (place, tag) = match text.split_once(',') {
            Some((place, tag)) => (place, Some(u16::try_from(number(tag)?).ok()?)),
            None => (text, None),
        };
        let (host, port) = if let Some(rest) = place.strip_prefix('[') {
            let (host, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (host, port)
        } else {
            match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            }
        };
        let port = match port {
            Some(port) => u16::try_from(number(port)?).ok().filter(|port| *port != 0)?,
            None => DEFAULT_PORT,
        };
        let valid = !host.is_empty() && !host.contains(['[', ']', ',', ' ']);
        valid.then(|| TargetAddress { host: host.to_owned(), port, portal_group_tag: tag })
    }
}

impl std::fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)?;
        } else {
            write!(f, "{}:{}", self.host, self.port)?;
        }
        match self.portal_group_tag {
            Some(tag) => write!(f, ",{tag}"),
            None => Ok(()),
        }
    }
}

/// Writes the answer to `SendTargets`.
pub fn write_targets<'a>(targets: impl IntoIterator<Item = (&'a str, &'a [TargetAddress])>) -> Vec<u8> {
    let mut out = Writer::default();
    for (name, addresses) in targets {
        out.push("TargetName", name);
        for address in addresses {
            out.push("TargetAddress", &address.to_string());
        }
    }
    out.into_bytes()
}

/// Reads the answer to `SendTargets`. Keys other than the two are skipped; malformed names and addresses are errors.
pub fn read_targets(text: &[u8]) -> Result<Vec<DiscoveredTarget>, DiscoveryError> {
    let mut targets: Vec<DiscoveredTarget> = Vec::new();
    for (key, value) in text::parse(text)? {
        match key {
            "TargetName" => {
                IscsiName::parse(value).map_err(|_| DiscoveryError::Name(value.to_owned()))?;
                targets.push(DiscoveredTarget { name: value.to_owned(), addresses: Vec::new() });
            }
            "TargetAddress" => {
                let address = TargetAddress::parse(value);
                let address = address.ok_or_else(|| DiscoveryError::Address(value.to_owned()))?;
                targets.last_mut().ok_or(DiscoveryError::NoName)?.addresses.push(address);
            }
            _ => {}
        }
    }
    Ok(targets)
}

/// The target's side of text exchanges on one connection: one exchange at a time.
#[derive(Debug)]
pub struct TargetText {
    collector: Collector,
    outbox: Splitter,
    /// Task tag and transfer tag of the current exchange.
    open: Option<(u32, u32)>,
    next_ttt: u32,
}

impl TargetText {
    /// Accepts up to `text_bytes_max` bytes of text in one exchange.
    pub fn new(text_bytes_max: usize) -> Self {
        TargetText {
            collector: Collector::new(text_bytes_max),
            outbox: Splitter::default(),
            open: None,
            next_ttt: 0,
        }
    }

    /// Accepts a text request. `answer` returns the text for a `SendTargets` value: `All`, a target's name, or empty
    /// for the session's own target; `None` refuses the value. `segment_max` is the initiator's
    /// `MaxRecvDataSegmentLength`. The caller fills in the sequence numbers of the response.
    pub fn receive(
        &mut self,
        request: &TextRequest,
        data: &[u8],
        segment_max: u32,
        answer: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Result<(TextResponse, Vec<u8>), ExchangeError> {
        if request.ttt == RESERVED_TAG {
            // A new exchange ends the current one (RFC 7143 section 11.10.4).
            self.reset();
        } else if self.open != Some((request.itt, request.ttt)) {
            return Err(ExchangeError::UnknownTag(request.ttt));
        }
        if self.outbox.is_open() {
            if !data.is_empty() || request.cont {
                return Err(ExchangeError::Interrupted);
            }
        } else if let Some(text) = self.collector.push(data, request.cont)? {
            self.outbox.load(respond(&text, answer)?);
        } else {
            return Ok(self.response(request, Vec::new(), false, false));
        }
        let (piece, cont) = self.outbox.next_piece(segment_max);
        let final_pdu = !cont && request.final_pdu;
        Ok(self.response(request, piece, cont, final_pdu))
    }

    /// Ends the current exchange.
    pub fn reset(&mut self) {
        self.open = None;
        self.outbox = Splitter::default();
        self.collector.clear();
    }

    fn response(
        &mut self,
        request: &TextRequest,
        data: Vec<u8>,
        cont: bool,
        final_pdu: bool,
    ) -> (TextResponse, Vec<u8>) {
        let ttt = if final_pdu {
            self.open = None;
            RESERVED_TAG
        } else {
            let ttt = self.next_ttt;
            self.next_ttt = (ttt + 1) & 0x7fff_ffff;
            self.open = Some((request.itt, ttt));
            ttt
        };
        let response = TextResponse {
            final_pdu,
            cont,
            lun: Lun(0),
            itt: request.itt,
            ttt,
            sn: crate::pdu::StatusNumbers::default(),
            data_len: data.len() as u32,
        };
        (response, data)
    }
}

/// The answer to a complete text.
fn respond(text: &[u8], answer: impl FnOnce(&str) -> Option<Vec<u8>>) -> Result<Vec<u8>, TextError> {
    let mut out = Writer::default();
    let mut targets = Vec::new();
    let mut answer = Some(answer);
    for (key, value) in text::parse(text)? {
        match (key, answer.take()) {
            ("SendTargets", Some(answer)) => match answer(value) {
                Some(list) => targets = list,
                None => out.push(key, REJECT),
            },
            ("SendTargets", None) => out.push(key, REJECT),
            (_, unused) => {
                answer = unused;
                let known = crate::keys::KEYS.iter().any(|known| known.name == key);
                out.push(key, if known { REJECT } else { NOT_UNDERSTOOD });
            }
        }
    }
    let mut bytes = out.into_bytes();
    bytes.append(&mut targets);
    Ok(bytes)
}

/// The initiator's side of a `SendTargets` exchange.
#[derive(Debug)]
pub struct InitiatorText {
    itt: u32,
    collector: Collector,
}

/// The next action after a text response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextStep {
    /// Request the next piece with this; the caller fills in the sequence numbers.
    Send(TextRequest),
    /// The whole answer.
    Done(Vec<u8>),
}

impl InitiatorText {
    /// An exchange with tag `itt` that accepts up to `text_bytes_max` bytes.
    pub fn new(itt: u32, text_bytes_max: usize) -> Self {
        InitiatorText { itt, collector: Collector::new(text_bytes_max) }
    }

    /// The first request, for `SendTargets=value`; the caller fills in the sequence numbers.
    pub fn start(&self, value: &str) -> (TextRequest, Vec<u8>) {
        let mut out = Writer::default();
        out.push("SendTargets", value);
        let data = out.into_bytes();
        (self.request(RESERVED_TAG, Lun(0), data.len() as u32), data)
    }

    /// Accepts a response.
    pub fn receive(&mut self, response: &TextResponse, data: &[u8]) -> Result<TextStep, ExchangeError> {
        if response.itt != self.itt {
            return Err(ExchangeError::UnknownTag(response.itt));
        }
        if !response.final_pdu && data.is_empty() {
            // We have nothing to send, so a target that never ends its answer would keep the exchange open for ever.
            return Err(ExchangeError::Text(TextError::EmptyContinuation));
        }
        match self.collector.push(data, !response.final_pdu)? {
            Some(text) => Ok(TextStep::Done(text)),
            None => Ok(TextStep::Send(self.request(response.ttt, response.lun, 0))),
        }
    }

    fn request(&self, ttt: u32, lun: Lun, data_len: u32) -> TextRequest {
        TextRequest {
            immediate: true,
            final_pdu: true,
            cont: false,
            lun,
            itt: self.itt,
            ttt,
            cmd_sn: 0,
            exp_stat_sn: 0,
            data_len,
        }
    }
}

/// The peer broke the rules of a text exchange: answer with a Reject (target) or drop the session (initiator).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// Its text is malformed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The tag names no open exchange.
    #[error("peer sent a text PDU with tag {0:#x}, which is not open")]
    UnknownTag(u32),
    /// It sent a request when it had to wait.
    #[error("peer sent text before it had heard the rest of the answer")]
    Interrupted,
}

/// The answer to `SendTargets` cannot be used (fault: peer).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// Its text is malformed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// An invalid name.
    #[error("target lists {0:?}, which is not an iSCSI name")]
    Name(String),
    /// An invalid address.
    #[error("target lists {0:?}, which is not a portal address")]
    Address(String),
    /// An address before any name.
    #[error("target lists an address before any name")]
    NoName,
}
