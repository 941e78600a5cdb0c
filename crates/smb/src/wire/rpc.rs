//! Remote procedure calls over a named pipe (C706 chapter 12, MS-RPCE 2.2.2): connection-oriented PDUs without
//! authentication, for one call at a time.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Most bytes of an answer over all of its fragments.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Most bytes of one fragment, in both directions.
const FRAGMENT_BYTES_MAX: u16 = 4280;
const PDU_BYTES: usize = size_of::<PduHeader>();
/// Bytes of a response before its data.
const RESPONSE_BYTES: usize = PDU_BYTES + 8;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 2;
const FAULT: u8 = 3;
const BIND: u8 = 11;
const BIND_ACK: u8 = 12;
const BIND_NAK: u8 = 13;
const FIRST: u8 = 1;
const LAST: u8 = 2;
/// Little-endian integers, ASCII, IEEE numbers.
const LITTLE_ENDIAN: u8 = 0x10;

/// An interface or a transfer syntax: its UUID as on the wire, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The UUID.
    pub uuid: [u8; 16],
    /// The version.
    pub version: u32,
}

/// NDR, the only transfer syntax that is offered.
const NDR: Syntax = Syntax {
    uuid: [0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60],
    version: 2,
};

impl Syntax {
    fn bytes(self) -> Vec<u8> {
        [&self.uuid[..], &self.version.to_le_bytes()].concat()
    }
}

/// The start of each PDU (C706 12.6.3.1).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PduHeader {
    version: u8,
    minor: u8,
    kind: u8,
    flags: u8,
    representation: [u8; 4],
    fragment_len: U16,
    auth_len: U16,
    call_id: U32,
}

fn pdu(kind: u8, call_id: u32, body: &[u8]) -> Vec<u8> {
    let header = PduHeader {
        version: 5,
        minor: 0,
        kind,
        flags: FIRST | LAST,
        representation: [LITTLE_ENDIAN, 0, 0, 0],
        fragment_len: U16::new((PDU_BYTES + body.len()) as u16),
        auth_len: U16::new(0),
        call_id: U32::new(call_id),
    };
    [header.as_bytes(), body].concat()
}

/// The PDU that selects an interface.
pub fn bind(call_id: u32, interface: Syntax) -> Vec<u8> {
    let longest = FRAGMENT_BYTES_MAX.to_le_bytes();
    // No association group; one context with number 0 and one transfer syntax.
    let fixed = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0];
    pdu(BIND, call_id, &[&longest[..], &longest, &fixed, &interface.bytes(), &NDR.bytes()].concat())
}

/// The PDU that calls an operation with encoded arguments, which must fit into one fragment.
pub fn request(call_id: u32, operation: u16, arguments: &[u8]) -> Vec<u8> {
    let hint = (arguments.len() as u32).to_le_bytes();
    pdu(REQUEST, call_id, &[&hint[..], &[0, 0], &operation.to_le_bytes(), arguments].concat())
}

/// Whether a server has accepted a [`bind`].
pub fn bound(answer: &[u8], call_id: u32) -> Result<(), RpcError> {
    let (header, fragment) = fragment(answer, call_id)?.ok_or(RpcError::Malformed)?;
    match header.kind {
        BIND_ACK => {}
        BIND_NAK => return Err(RpcError::NoInterface),
        kind => return Err(RpcError::Kind(kind)),
    }
    // Two lengths, the group, and the name of the secondary address; the results begin at a multiple of four.
    let name_len = usize::from(u16_at(fragment, PDU_BYTES + 8).ok_or(RpcError::Malformed)?);
    let results_at = (PDU_BYTES + 10 + name_len).next_multiple_of(4);
    let count = fragment.get(results_at).ok_or(RpcError::Malformed)?;
    let result = u16_at(fragment, results_at + 4).ok_or(RpcError::Malformed)?;
    if *count == 1 && result == 0 { Ok(()) } else { Err(RpcError::NoInterface) }
}

/// The answer to one [`request`], collected from the bytes of a pipe.
#[derive(Debug, Default)]
pub struct RpcAnswer {
    /// Bytes of a fragment that is not complete.
    pending: Vec<u8>,
    data: Vec<u8>,
}

impl RpcAnswer {
    /// Adds bytes from the pipe. Returns whether the answer is complete.
    pub fn add(&mut self, bytes: &[u8], call_id: u32) -> Result<bool, RpcError> {
        if self.pending.len() + self.data.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(RpcError::TooLong);
        }
        self.pending.extend_from_slice(bytes);
        while let Some((header, fragment)) = fragment(&self.pending, call_id)? {
            match header.kind {
                RESPONSE => {}
                FAULT => {
                    return Err(RpcError::Fault(
                        u32_at(fragment, RESPONSE_BYTES).ok_or(RpcError::Malformed)?,
                    ));
                }
                kind => return Err(RpcError::Kind(kind)),
            }
            self.data.extend_from_slice(fragment.get(RESPONSE_BYTES..).ok_or(RpcError::Malformed)?);
            let len = fragment.len();
            self.pending.drain(..len);
            if header.flags & LAST != 0 {
                return if self.pending.is_empty() { Ok(true) } else { Err(RpcError::Malformed) };
            }
        }
        Ok(false)
    }

    /// The result of the call, encoded.
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// The first fragment of some bytes; None: it is not complete.
fn fragment(bytes: &[u8], call_id: u32) -> Result<Option<(PduHeader, &[u8])>, RpcError> {
    let Ok((header, _)) = PduHeader::read_from_prefix(bytes) else { return Ok(None) };
    let len = usize::from(header.fragment_len.get());
    let is_ours = header.version == 5 && header.call_id.get() == call_id && header.auth_len.get() == 0;
    if !is_ours || header.representation[0] != LITTLE_ENDIAN || len < PDU_BYTES {
        return Err(RpcError::Malformed);
    }
    Ok(bytes.get(..len).map(|fragment| (header, fragment)))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_le_bytes(*two))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

/// An answer of the server cannot be used (fault: peer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// Not a PDU, or one of another call.
    #[error("a malformed PDU of a remote procedure call")]
    Malformed,
    /// A PDU of another kind.
    #[error("PDU type {0} as the answer to a remote procedure call")]
    Kind(u8),
    /// More bytes than are permitted.
    #[error("the result of a remote procedure call is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The server does not have the interface.
    #[error("it does not have this interface")]
    NoInterface,
    /// The call failed in the server's RPC system.
    #[error("the remote procedure call failed with fault {0:#010x}")]
    Fault(u32),
}
