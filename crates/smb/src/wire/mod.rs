//! SMB 2 and 3 on the wire (MS-SMB2 section 2), without sockets: framing, headers, bodies of requests and responses.
//!
//! The fixed part of each structure is a type whose memory is its wire form, so the same type parses and emits. All
//! numbers are little-endian. Nothing here allocates for an I/O, and no bytes of a peer make it panic.

pub mod body;
pub mod durable;
pub mod files;
pub mod frame;
pub mod header;
pub mod logon;
pub mod names;
pub mod negotiate;
pub mod rpc;
pub mod shares;
pub mod status;
pub mod unicode;
pub mod validation;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a message's header; offsets in bodies count from its start.
pub const HEADER_BYTES: usize = 64;

/// The fixed part of a body. [`Self::STRUCTURE_SIZE`] is its first field, and tells the structure apart.
pub trait Body: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned {
    /// The value of `StructureSize`; odd if a variable part follows.
    const STRUCTURE_SIZE: u16;
}

/// The fixed part of a message's body. `message` starts with the header.
pub fn body_of<T: Body>(message: &[u8]) -> Result<&T, WireError> {
    let body = message.get(HEADER_BYTES..).ok_or(WireError::TooShort)?;
    let size = body.first_chunk().map(|bytes| u16::from_le_bytes(*bytes)).ok_or(WireError::TooShort)?;
    if size != T::STRUCTURE_SIZE {
        return Err(WireError::Structure { expected: T::STRUCTURE_SIZE, found: size });
    }
    T::ref_from_prefix(body).map(|(body, _)| body).map_err(|_| WireError::TooShort)
}

/// A range of a message by the offset and length that it contains itself.
pub fn part(message: &[u8], offset: u32, len: u32) -> Result<&[u8], WireError> {
    let start = offset as usize;
    let end = start.checked_add(len as usize).ok_or(WireError::Range)?;
    message.get(start..end).ok_or(WireError::Range)
}

/// A message of the server is malformed (fault: peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A structure does not fit into its message.
    #[error("a message is shorter than its structure")]
    TooShort,
    /// The structure is another one.
    #[error("a message has structure size {found} instead of {expected}")]
    Structure {
        /// The size that the command has.
        expected: u16,
        /// The size in the message.
        found: u16,
    },
    /// An offset and a length lead out of the message.
    #[error("an offset or length leads out of its message")]
    Range,
    /// Not an SMB 2 header.
    #[error("a message does not start with an SMB 2 header")]
    Protocol,
    /// A negative session response of `NetBIOS` over TCP (RFC 1002 4.3.4) in place of a message.
    #[error("it takes no session")]
    NoSession,
    /// A message announces more bytes than are permitted, or fewer than a header has.
    #[error("a message of {announced} bytes; from {least} to {most} are possible")]
    Length {
        /// The announced length.
        announced: u32,
        /// The shortest message.
        least: u32,
        /// The longest message.
        most: u32,
    },
}

/// A whole message, for requests other than READ and WRITE.
pub fn message<T: Body>(header: &header::MessageHeader, body: &T, rest: &[u8]) -> Vec<u8> {
    [header.as_bytes(), body.as_bytes(), rest].concat()
}
