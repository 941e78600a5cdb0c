//! CREATE contexts of durable handles (MS-SMB2 2.2.13.2.3, 2.2.13.2.4, 2.2.13.2.11, 2.2.13.2.12): the server keeps such a
//! file open when its connection is lost, and the client claims it back on another one.

use super::WireError;
use super::body::{CreateResponse, OpenId};
use super::{body_of, part};

/// The oplock that a durable handle needs: nothing of the file is open elsewhere.
pub const OPLOCK_BATCH: u8 = 9;
/// Bytes of a context before its data: the fixed part, and a name of four bytes with padding.
const HEAD_BYTES: usize = 24;
const FIXED_BYTES: usize = 16;

/// The contexts that a dialect has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableVersion {
    /// Of dialect 2.1.
    V1,
    /// Of dialects 3.x.
    V2,
}

impl DurableVersion {
    /// As in the names of the contexts in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    const fn request_name(self) -> &'static [u8; 4] {
        match self {
            Self::V1 => b"DHnQ",
            Self::V2 => b"DH2Q",
        }
    }
}

/// What a CREATE asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurableContext {
    /// A durable handle.
    Request {
        /// The kind of context.
        version: DurableVersion,
        /// Names the handle.
        create_guid: [u8; 16],
        /// How long the server shall keep it without a connection.
        timeout_ms: u32,
    },
    /// A handle that the server has kept.
    Reclaim {
        /// The kind of context.
        version: DurableVersion,
        /// As in the request.
        create_guid: [u8; 16],
        /// The open file on the lost connection.
        file_id: OpenId,
    },
}

impl DurableContext {
    /// The context on the wire, the only one of its request.
    pub fn bytes(self) -> Vec<u8> {
        let (name, data) = match self {
            Self::Request { version: DurableVersion::V1, .. } => (b"DHnQ", vec![0; 16]),
            Self::Request { version: DurableVersion::V2, create_guid, timeout_ms } => {
                (b"DH2Q", [&timeout_ms.to_le_bytes()[..], &[0; 12], &create_guid].concat())
            }
            Self::Reclaim { version: DurableVersion::V1, file_id, .. } => (b"DHnC", file_id.to_vec()),
            Self::Reclaim { version: DurableVersion::V2, create_guid, file_id } => {
                (b"DH2C", [&file_id[..], &create_guid, &[0; 4]].concat())
            }
        };
        let mut out = vec![0; HEAD_BYTES];
        out[4..6].copy_from_slice(&(FIXED_BYTES as u16).to_le_bytes());
        out[6..8].copy_from_slice(&(name.len() as u16).to_le_bytes());
        out[10..12].copy_from_slice(&(HEAD_BYTES as u16).to_le_bytes());
        out[12..16].copy_from_slice(&(data.len() as u32).to_le_bytes());
        out[FIXED_BYTES..FIXED_BYTES + name.len()].copy_from_slice(name);
        out.extend(data);
        out
    }
}

/// Whether the response to a request for a durable handle grants one.
pub fn is_granted(response: &[u8], version: DurableVersion) -> Result<bool, WireError> {
    let body: &CreateResponse = body_of(response)?;
    let mut rest = part(response, body.contexts_offset.get(), body.contexts_len.get())?;
    while !rest.is_empty() {
        let next = u32::from_le_bytes(*rest.first_chunk().ok_or(WireError::TooShort)?) as usize;
        let name_at = usize::from(u16_at(rest, 4)?);
        let name = rest.get(name_at..name_at + usize::from(u16_at(rest, 6)?)).ok_or(WireError::Range)?;
        if name == version.request_name() {
            return Ok(true);
        }
        match next {
            0 => break,
            // Every context is longer than this, so the loop ends.
            next if next >= FIXED_BYTES => rest = rest.get(next..).ok_or(WireError::Range)?,
            _ => return Err(WireError::Range),
        }
    }
    Ok(false)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, WireError> {
    let two = bytes.get(at..at + 2).and_then(|two| two.first_chunk());
    two.map(|two| u16::from_le_bytes(*two)).ok_or(WireError::TooShort)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::header::MessageHeader;
    use crate::wire::message;
    use proptest::prelude::*;
    use zerocopy::little_endian::U32;

    fn response(contexts: &[u8]) -> Vec<u8> {
        let body = CreateResponse {
            contexts_offset: U32::new((super::super::HEADER_BYTES + size_of::<CreateResponse>()) as u32),
            contexts_len: U32::new(contexts.len() as u32),
            ..CreateResponse::default()
        };
        message(&MessageHeader::default(), &body, contexts)
    }

    #[test]
    fn a_grant_is_found_behind_another_context() {
        let request = |version| DurableContext::Request { version, create_guid: [7; 16], timeout_ms: 1 };
        let (first, second) = (request(DurableVersion::V1).bytes(), request(DurableVersion::V2).bytes());
        assert_eq!((first.len(), second.len()), (40, 56));
        let mut both = [first, second].concat();
        both[..4].copy_from_slice(&40u32.to_le_bytes());
        assert_eq!(is_granted(&response(&both), DurableVersion::V2), Ok(true));
        both[..4].copy_from_slice(&0u32.to_le_bytes());
        assert_eq!(is_granted(&response(&both), DurableVersion::V2), Ok(false));
        both[..4].copy_from_slice(&8u32.to_le_bytes());
        assert_eq!(is_granted(&response(&both), DurableVersion::V2), Err(WireError::Range));
        assert_eq!(is_granted(&response(&[]), DurableVersion::V1), Ok(false));
    }

    proptest! {
        #[test]
        fn no_contexts_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = is_granted(&response(&bytes), DurableVersion::V2);
        }
    }
}
