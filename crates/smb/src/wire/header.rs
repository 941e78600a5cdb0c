//! The header of a message (MS-SMB2 2.2.1), compounds of messages, and the header of an encrypted message (2.2.41).

use super::status::Status;
use super::{HEADER_BYTES, WireError};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a message.
pub const PROTOCOL_ID: [u8; 4] = [0xFE, b'S', b'M', b'B'];
/// The first bytes of an encrypted message.
pub const SEALED_PROTOCOL_ID: [u8; 4] = [0xFD, b'S', b'M', b'B'];
/// Bytes of the header of an encrypted message.
pub const SEALED_HEADER_BYTES: usize = 52;
/// Where the signature is in a header.
pub const SIGNATURE_AT: std::ops::Range<usize> = 48..64;
/// The `MessageId` of messages that answer no request.
pub const UNSOLICITED: u64 = u64::MAX;

/// The message is a response.
pub const FLAG_RESPONSE: u32 = 0x1;
/// The header has an `AsyncId` instead of a `TreeId`.
pub const FLAG_ASYNC: u32 = 0x2;
/// The message is about the file of the one before it in its compound.
pub const FLAG_RELATED: u32 = 0x4;
/// The message is signed.
pub const FLAG_SIGNED: u32 = 0x8;
/// The request was sent before; of dialects 3.x.
pub const FLAG_REPLAY: u32 = 0x2000_0000;

/// The `FileId` of a related request: that of the request before it.
pub const RELATED_FILE: [u8; 16] = [0xFF; 16];
/// Messages of a compound begin at multiples of this.
const COMPOUND_ALIGNMENT: usize = 8;

/// Bytes of the first message of a compound, with its padding. A single message is a compound of one.
pub fn first_of_compound(compound: &[u8]) -> Result<usize, WireError> {
    let (header, _) = MessageHeader::ref_from_prefix(compound).map_err(|_| WireError::TooShort)?;
    let (next, least) = (header.next_command.get() as usize, HEADER_BYTES);
    let most = compound.len() - least;
    match next {
        0 => Ok(compound.len()),
        next if (least..=most).contains(&next) && next % COMPOUND_ALIGNMENT == 0 => Ok(next),
        _ => Err(WireError::Range),
    }
}

/// Makes a compound of two whole messages (MS-SMB2 3.2.4.1.4).
pub fn compound(first: &mut Vec<u8>, second: &[u8]) {
    first.resize(first.len().next_multiple_of(COMPOUND_ALIGNMENT), 0);
    let next = U32::new(first.len() as u32);
    let (header, _) = MessageHeader::mut_from_prefix(first).expect("a message starts with a header");
    header.next_command = next;
    first.extend_from_slice(second);
}

/// Commands (MS-SMB2 2.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum SmbCommand {
    /// NEGOTIATE
    Negotiate = 0,
    /// `SESSION_SETUP`
    SessionSetup = 1,
    /// LOGOFF
    Logoff = 2,
    /// `TREE_CONNECT`
    TreeConnect = 3,
    /// CREATE
    Create = 5,
    /// CLOSE
    Close = 6,
    /// FLUSH
    Flush = 7,
    /// READ
    Read = 8,
    /// WRITE
    Write = 9,
    /// IOCTL
    Ioctl = 11,
    /// CANCEL
    Cancel = 12,
    /// ECHO
    Echo = 13,
    /// `QUERY_DIRECTORY`
    QueryDirectory = 14,
    /// `QUERY_INFO`
    QueryInfo = 16,
    /// `SET_INFO`
    SetInfo = 17,
    /// `OPLOCK_BREAK`
    OplockBreak = 18,
}

impl SmbCommand {
    /// Whether its requests are about one file: the server verifies their `ChannelSequence` (MS-SMB2 3.3.5.2.10).
    pub const fn is_of_file(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Close
                | Self::Flush
                | Self::Read
                | Self::Write
                | Self::QueryDirectory
                | Self::QueryInfo
                | Self::SetInfo
                | Self::OplockBreak
        )
    }

    /// The name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Negotiate => "NEGOTIATE",
            Self::SessionSetup => "SESSION_SETUP",
            Self::Logoff => "LOGOFF",
            Self::TreeConnect => "TREE_CONNECT",
            Self::Create => "CREATE",
            Self::Close => "CLOSE",
            Self::Flush => "FLUSH",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Ioctl => "IOCTL",
            Self::Cancel => "CANCEL",
            Self::Echo => "ECHO",
            Self::QueryDirectory => "QUERY_DIRECTORY",
            Self::QueryInfo => "QUERY_INFO",
            Self::SetInfo => "SET_INFO",
            Self::OplockBreak => "OPLOCK_BREAK",
        }
    }
}

/// A header as it is in memory and on the wire.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct MessageHeader {
    /// [`PROTOCOL_ID`].
    pub protocol_id: [u8; 4],
    /// Always 64.
    pub structure_size: U16,
    /// Credits that the request costs.
    pub credit_charge: U16,
    /// The status of a response. In a request of dialects 3.x its first half is the `ChannelSequence`; else it is zero.
    pub status: U32,
    /// The command's number.
    pub command: U16,
    /// Credits asked for, or granted.
    pub credits: U16,
    /// The flags above.
    pub flags: U32,
    /// Offset of the next message of a compound; zero: none.
    pub next_command: U32,
    /// Number of the request on its connection.
    pub message_id: U64,
    /// Reserved, or the first half of the `AsyncId`.
    pub process_id: U32,
    /// The tree, or the second half of the `AsyncId`.
    pub tree_id: U32,
    /// The session.
    pub session_id: U64,
    /// Zeros, or the signature.
    pub signature: [u8; 16],
}

impl MessageHeader {
    /// The header of a request without session and tree.
    pub fn request(command: SmbCommand, message_id: u64, credit_charge: u16, credits: u16) -> Self {
        Self {
            protocol_id: PROTOCOL_ID,
            structure_size: U16::new(HEADER_BYTES as u16),
            credit_charge: U16::new(credit_charge),
            command: U16::new(command as u16),
            credits: U16::new(credits),
            message_id: U64::new(message_id),
            ..Self::default()
        }
    }

    /// The header of a response.
    pub fn parse(bytes: &[u8]) -> Result<&Self, WireError> {
        let (header, _) = Self::ref_from_prefix(bytes).map_err(|_| WireError::TooShort)?;
        let is_response = header.flags.get() & FLAG_RESPONSE != 0;
        if header.protocol_id != PROTOCOL_ID
            || header.structure_size.get() != HEADER_BYTES as u16
            || !is_response
        {
            return Err(WireError::Protocol);
        }
        Ok(header)
    }

    /// The status of a response.
    pub fn status(&self) -> Status {
        Status(self.status.get())
    }

    /// Sets the `ChannelSequence` of a request of dialects 3.x, and whether the request was sent before.
    pub fn set_channel_sequence(&mut self, sequence: u16, is_replay: bool) {
        self.status = U32::new(sequence.into());
        if is_replay {
            self.flags = U32::new(self.flags.get() | FLAG_REPLAY);
        }
    }

    /// The `ChannelSequence` of a request of dialects 3.x.
    pub fn channel_sequence(&self) -> u16 {
        self.status.get() as u16
    }

    /// Whether the request was sent before.
    pub fn is_replay(&self) -> bool {
        self.flags.get() & FLAG_REPLAY != 0
    }

    /// Makes it about the file of the message before it in its compound.
    pub fn set_related(&mut self) {
        self.flags = U32::new(self.flags.get() | FLAG_RELATED);
    }

    /// Whether the message is the answer to a command.
    pub fn is(&self, command: SmbCommand) -> bool {
        self.command.get() == command as u16
    }

    /// Whether the message is signed.
    pub fn is_signed(&self) -> bool {
        self.flags.get() & FLAG_SIGNED != 0
    }

    /// The `AsyncId` of a response that has one.
    pub fn async_id(&self) -> Option<u64> {
        let id = u64::from(self.process_id.get()) | u64::from(self.tree_id.get()) << 32;
        (self.flags.get() & FLAG_ASYNC != 0).then_some(id)
    }

    /// Makes it an asynchronous message.
    pub fn set_async_id(&mut self, id: u64) {
        self.flags = U32::new(self.flags.get() | FLAG_ASYNC);
        self.process_id = U32::new(id as u32);
        self.tree_id = U32::new((id >> 32) as u32);
    }
}

/// The header of an encrypted message.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct SealedHeader {
    /// [`SEALED_PROTOCOL_ID`].
    pub protocol_id: [u8; 4],
    /// The authentication tag of the cipher.
    pub signature: [u8; 16],
    /// The nonce, followed by zeros.
    pub nonce: [u8; 16],
    /// Bytes of the message that was encrypted.
    pub original_size: U32,
    /// Reserved.
    pub reserved: U16,
    /// 1: encrypted.
    pub flags: U16,
    /// The session.
    pub session_id: U64,
}

impl SealedHeader {
    /// Where the authenticated part starts: the nonce.
    pub const AUTHENTICATED_AT: usize = 20;

    /// The header of a message to encrypt; its tag is set afterwards.
    pub fn new(session_id: u64, nonce: [u8; 16], original_size: u32) -> Self {
        Self {
            protocol_id: SEALED_PROTOCOL_ID,
            signature: [0; 16],
            nonce,
            original_size: U32::new(original_size),
            reserved: U16::new(0),
            flags: U16::new(1),
            session_id: U64::new(session_id),
        }
    }
}

const _: () = assert!(size_of::<MessageHeader>() == HEADER_BYTES);
const _: () = assert!(size_of::<SealedHeader>() == SEALED_HEADER_BYTES);
