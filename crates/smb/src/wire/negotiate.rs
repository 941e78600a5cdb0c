//! NEGOTIATE: dialects, and what both sides can do (MS-SMB2 2.2.3, 2.2.4).

use super::body::{NegotiateRequest, NegotiateResponse};
use super::header::MessageHeader;
use super::{HEADER_BYTES, WireError, body_of, message, part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32};

/// Requests of more than 64 KiB, paid with several credits.
pub const CAP_LARGE_MTU: u32 = 0x4;
/// Several channels in one session.
pub const CAP_MULTI_CHANNEL: u32 = 0x8;
/// Encryption, of dialects 3.0 and 3.0.2.
pub const CAP_ENCRYPTION: u32 = 0x40;
/// Messages can be signed.
pub const SIGNING_ENABLED: u16 = 1;
/// Messages must be signed.
pub const SIGNING_REQUIRED: u16 = 2;

const CONTEXT_PREAUTH: u16 = 1;
const CONTEXT_ENCRYPTION: u16 = 2;
const CONTEXT_SIGNING: u16 = 8;
const SHA512: u16 = 1;
const FIXED_BYTES: usize = HEADER_BYTES + size_of::<NegotiateRequest>();

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub enum Dialect {
    /// SMB 2.1
    #[serde(rename = "2.1")]
    Smb210,
    /// SMB 3.0
    #[serde(rename = "3.0")]
    Smb300,
    /// SMB 3.0.2
    #[serde(rename = "3.0.2")]
    Smb302,
    /// SMB 3.1.1
    #[serde(rename = "3.1.1")]
    Smb311,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Smb210, Self::Smb300, Self::Smb302, Self::Smb311];

    /// The number on the wire.
    pub const fn code(self) -> u16 {
        match self {
            Self::Smb210 => 0x0210,
            Self::Smb300 => 0x0300,
            Self::Smb302 => 0x0302,
            Self::Smb311 => 0x0311,
        }
    }

    /// The version as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smb210 => "2.1",
            Self::Smb300 => "3.0",
            Self::Smb302 => "3.0.2",
            Self::Smb311 => "3.1.1",
        }
    }
}

/// A cipher (MS-SMB2 2.2.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Cipher {
    /// AES-128-CCM: the only one before 3.1.1.
    #[serde(rename = "aes-128-ccm")]
    Aes128Ccm,
    /// AES-128-GCM
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-256-CCM
    #[serde(rename = "aes-256-ccm")]
    Aes256Ccm,
    /// AES-256-GCM
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
}

impl Cipher {
    /// All of them, the preferred one first.
    pub const ALL: [Self; 4] = [Self::Aes128Gcm, Self::Aes128Ccm, Self::Aes256Gcm, Self::Aes256Ccm];

    /// The number on the wire.
    pub const fn code(self) -> u16 {
        match self {
            Self::Aes128Ccm => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Ccm => 3,
            Self::Aes256Gcm => 4,
        }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "aes-128-ccm",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Ccm => "aes-256-ccm",
            Self::Aes256Gcm => "aes-256-gcm",
        }
    }
}

/// An algorithm for signatures (MS-SMB2 2.2.3.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// HMAC-SHA256: of dialect 2.1.
    HmacSha256,
    /// AES-128-CMAC: of dialects 3.0 and later.
    AesCmac,
    /// AES-128-GMAC: can be negotiated in 3.1.1.
    AesGmac,
}

impl SigningAlgorithm {
    /// Those of 3.1.1, the preferred one first.
    pub const OFFERED: [Self; 2] = [Self::AesGmac, Self::AesCmac];

    /// The number on the wire.
    pub const fn code(self) -> u16 {
        match self {
            Self::HmacSha256 => 0,
            Self::AesCmac => 1,
            Self::AesGmac => 2,
        }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "hmac-sha256",
            Self::AesCmac => "aes-128-cmac",
            Self::AesGmac => "aes-128-gmac",
        }
    }
}

/// What a client offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbOffer {
    /// Dialects.
    pub dialects: Vec<Dialect>,
    /// Ciphers, the preferred one first.
    pub ciphers: Vec<Cipher>,
    /// Messages must be signed.
    pub signing_required: bool,
    /// The session shall have several channels.
    pub multi_channel: bool,
    /// Names the client; 16 random bytes.
    pub client_guid: [u8; 16],
    /// Random bytes for the hash of the negotiation.
    pub salt: [u8; 32],
}

impl SmbOffer {
    /// The security mode on the wire.
    pub fn security_mode(&self) -> u16 {
        if self.signing_required { SIGNING_REQUIRED } else { SIGNING_ENABLED }
    }

    /// The capabilities on the wire. A client without dialects of 3.x reports none that belong to them.
    pub fn capabilities(&self) -> u32 {
        let encryption = if self.ciphers.is_empty() { 0 } else { CAP_ENCRYPTION };
        let channels = if self.multi_channel { CAP_MULTI_CHANNEL } else { 0 };
        let has_3 = self.dialects.iter().any(|dialect| *dialect >= Dialect::Smb300);
        if has_3 { CAP_LARGE_MTU | encryption | channels } else { 0 }
    }

    /// The request.
    pub fn request(&self, header: &MessageHeader) -> Vec<u8> {
        let dialects: Vec<u8> =
            self.dialects.iter().flat_map(|dialect| dialect.code().to_le_bytes()).collect();
        let mut body = NegotiateRequest {
            capabilities: U32::new(self.capabilities()),
            dialect_count: U16::new(self.dialects.len() as u16),
            security_mode: U16::new(self.security_mode()),
            client_guid: self.client_guid,
            ..NegotiateRequest::default()
        };
        let mut rest = dialects;
        if self.dialects.contains(&Dialect::Smb311) {
            let contexts = self.contexts();
            // Each context begins at a multiple of eight from the header.
            let aligned = |len: usize| (FIXED_BYTES + len).next_multiple_of(8) - FIXED_BYTES;
            rest.resize(aligned(rest.len()), 0);
            body.context_offset = U32::new((FIXED_BYTES + rest.len()) as u32);
            body.context_count = U16::new(contexts.len() as u16);
            for (kind, data) in contexts {
                rest.resize(aligned(rest.len()), 0);
                rest.extend(kind.to_le_bytes());
                rest.extend((data.len() as u16).to_le_bytes());
                rest.extend([0; 4]);
                rest.extend(data);
            }
        }
        message(header, &body, &rest)
    }

    fn contexts(&self) -> Vec<(u16, Vec<u8>)> {
        let list = |codes: Vec<u16>| -> Vec<u8> {
            [vec![codes.len() as u16], codes].concat().into_iter().flat_map(u16::to_le_bytes).collect()
        };
        let preauth = [&[1, 0, 32, 0, SHA512 as u8, 0][..], &self.salt].concat();
        let mut contexts = vec![(CONTEXT_PREAUTH, preauth)];
        if !self.ciphers.is_empty() {
            contexts
                .push((CONTEXT_ENCRYPTION, list(self.ciphers.iter().map(|cipher| cipher.code()).collect())));
        }
        let signing = SigningAlgorithm::OFFERED.iter().map(|one| one.code()).collect();
        contexts.push((CONTEXT_SIGNING, list(signing)));
        contexts
    }
}

/// What the server chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The dialect.
    pub dialect: Dialect,
    /// The server signs, and requires signatures.
    pub signing_required: bool,
    /// How messages are signed.
    pub signing: SigningAlgorithm,
    /// How messages can be encrypted.
    pub cipher: Option<Cipher>,
    /// Requests may cost several credits.
    pub multi_credit: bool,
    /// A session may have several channels.
    pub multi_channel: bool,
    /// Most bytes of a READ.
    pub max_read_bytes: u32,
    /// Most bytes of a WRITE.
    pub max_write_bytes: u32,
    /// What the server can do, as it said.
    pub capabilities: u32,
    /// Names the server.
    pub server_guid: [u8; 16],
    /// Its security mode on the wire.
    pub security_mode: u16,
}

impl Negotiated {
    /// Reads a response to an offer.
    pub fn parse(response: &[u8], offer: &SmbOffer) -> Result<Self, NegotiateError> {
        let body: &NegotiateResponse = body_of(response)?;
        let code = body.dialect.get();
        let dialect = offer.dialects.iter().copied().find(|dialect| dialect.code() == code);
        let dialect = dialect.ok_or(NegotiateError::Dialect(code))?;
        let capabilities = body.capabilities.get();
        let mut chosen = Self {
            dialect,
            signing_required: body.security_mode.get() & SIGNING_REQUIRED != 0,
            signing: SigningAlgorithm::HmacSha256,
            cipher: None,
            multi_credit: capabilities & CAP_LARGE_MTU != 0,
            multi_channel: dialect >= Dialect::Smb300 && capabilities & CAP_MULTI_CHANNEL != 0,
            max_read_bytes: body.max_read_bytes.get(),
            max_write_bytes: body.max_write_bytes.get(),
            capabilities,
            server_guid: body.server_guid,
            security_mode: body.security_mode.get(),
        };
        match dialect {
            Dialect::Smb210 => {}
            Dialect::Smb300 | Dialect::Smb302 => {
                chosen.signing = SigningAlgorithm::AesCmac;
                let can = capabilities & CAP_ENCRYPTION != 0 && offer.ciphers.contains(&Cipher::Aes128Ccm);
                chosen.cipher = can.then_some(Cipher::Aes128Ccm);
            }
            Dialect::Smb311 => {
                chosen.signing = SigningAlgorithm::AesCmac;
                chosen.contexts(response, body, offer)?;
            }
        }
        Ok(chosen)
    }

    fn contexts(
        &mut self,
        response: &[u8],
        body: &NegotiateResponse,
        offer: &SmbOffer,
    ) -> Result<(), NegotiateError> {
        let mut at = body.context_offset.get();
        let mut has_hash = false;
        for _ in 0..body.context_count.get() {
            at = at.checked_next_multiple_of(8).ok_or(WireError::Range)?;
            let head = part(response, at, 8)?;
            let len = u32::from(u16_at(head, 2)?);
            let data = part(response, at.saturating_add(8), len)?;
            match u16_at(head, 0)? {
                CONTEXT_PREAUTH => has_hash = u16_at(data, 4)? == SHA512,
                // Code 0: the server has no common cipher.
                CONTEXT_ENCRYPTION => {
                    let code = u16_at(data, 2)?;
                    self.cipher = offer.ciphers.iter().copied().find(|cipher| cipher.code() == code);
                }
                CONTEXT_SIGNING => {
                    let code = u16_at(data, 2)?;
                    let known = SigningAlgorithm::OFFERED.into_iter().find(|one| one.code() == code);
                    self.signing = known.ok_or(NegotiateError::Signing(code))?;
                }
                _ => {}
            }
            at = at.saturating_add(8).saturating_add(len);
        }
        if has_hash { Ok(()) } else { Err(NegotiateError::NoHash) }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, WireError> {
    let two = bytes.get(at..at + 2).and_then(|two| two.first_chunk());
    two.map(|two| u16::from_le_bytes(*two)).ok_or(WireError::TooShort)
}

/// A server's answer cannot be used (fault: peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NegotiateError {
    /// Malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A dialect that was not offered.
    #[error("it chose dialect {0:#06x}, which was not offered")]
    Dialect(u16),
    /// A signature algorithm that was not offered.
    #[error("it chose signing algorithm {0}, which was not offered")]
    Signing(u16),
    /// 3.1.1 without a hash of the negotiation.
    #[error("it chose no hash for the negotiation")]
    NoHash,
}
