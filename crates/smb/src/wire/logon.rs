//! `SESSION_SETUP`, `TREE_CONNECT` and LOGOFF (MS-SMB2 2.2.5 to 2.2.10).

use super::body::{SessionSetupRequest, SessionSetupResponse, TreeConnectRequest, TreeConnectResponse};
use super::header::MessageHeader;
use super::{HEADER_BYTES, WireError, body_of, message, part, unicode};
use zerocopy::little_endian::{U16, U64};

const SESSION_GUEST: u16 = 1;
const SESSION_NULL: u16 = 2;
const SESSION_ENCRYPT: u16 = 4;
const BINDING: u8 = 1;
const SHARE_DISK: u8 = 1;
const SHARE_ENCRYPT: u32 = 0x8000;
const WRITE_DATA: u32 = 0x2;

/// What a logon makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogonGoal {
    /// A session.
    Session {
        /// A session that the server ends; 0: none.
        previous: u64,
    },
    /// A further channel of the session in the header.
    Channel,
}

/// A `SESSION_SETUP` request with a security token.
pub fn session_setup(header: &MessageHeader, security_mode: u16, token: &[u8], goal: LogonGoal) -> Vec<u8> {
    let (flags, previous) = match goal {
        LogonGoal::Session { previous } => (0, previous),
        LogonGoal::Channel => (BINDING, 0),
    };
    let body = SessionSetupRequest {
        flags,
        security_mode: security_mode as u8,
        token_offset: U16::new((HEADER_BYTES + size_of::<SessionSetupRequest>()) as u16),
        token_len: U16::new(token.len() as u16),
        previous_session_id: U64::new(previous),
        ..SessionSetupRequest::default()
    };
    message(header, &body, token)
}

/// A step of the logon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSetup<'a> {
    /// The server's token.
    pub token: &'a [u8],
    /// The user is a guest or anonymous: there are no keys.
    pub is_guest: bool,
    /// All messages must be encrypted.
    pub encrypt: bool,
}

impl<'a> SessionSetup<'a> {
    /// Reads a response.
    pub fn parse(response: &'a [u8]) -> Result<Self, WireError> {
        let body: &SessionSetupResponse = body_of(response)?;
        let flags = body.flags.get();
        Ok(Self {
            token: part(response, body.token_offset.get().into(), body.token_len.get().into())?,
            is_guest: flags & (SESSION_GUEST | SESSION_NULL) != 0,
            encrypt: flags & SESSION_ENCRYPT != 0,
        })
    }
}

/// A `TREE_CONNECT` request; `host` as the user wrote it.
pub fn tree_connect(header: &MessageHeader, host: &str, share: &str) -> Vec<u8> {
    let path = unicode::utf16(&format!("\\\\{host}\\{share}"));
    let body = TreeConnectRequest {
        path_offset: U16::new((HEADER_BYTES + size_of::<TreeConnectRequest>()) as u16),
        path_len: U16::new(path.len() as u16),
        ..TreeConnectRequest::default()
    };
    message(header, &body, &path)
}

/// A connected share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its number in headers.
    pub id: u32,
    /// It has files.
    pub is_disk: bool,
    /// Its messages must be encrypted.
    pub encrypt: bool,
    /// The user may write.
    pub can_write: bool,
}

impl Tree {
    /// Reads a response.
    pub fn parse(response: &[u8]) -> Result<Self, WireError> {
        let (header, body): (_, &TreeConnectResponse) = (MessageHeader::parse(response)?, body_of(response)?);
        Ok(Self {
            id: header.tree_id.get(),
            is_disk: body.share_type == SHARE_DISK,
            encrypt: body.share_flags.get() & SHARE_ENCRYPT != 0,
            can_write: body.maximal_access.get() & WRITE_DATA != 0,
        })
    }
}
