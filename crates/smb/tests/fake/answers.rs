//! The answers of a server, as bytes. Every user is a guest, so nothing is signed.

#![allow(dead_code, clippy::unwrap_used, reason = "every test file uses its own part")]

use linerate_smb::wire::body::*;
use linerate_smb::wire::durable::{DurableContext, DurableVersion};
use linerate_smb::wire::files::{IO_BYTES, READ_DATA_AT};
use linerate_smb::wire::frame::prefix;
use linerate_smb::wire::header::{FLAG_RESPONSE, MessageHeader};
use linerate_smb::wire::status::Status;
use linerate_smb::wire::{HEADER_BYTES, body_of, message};
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

pub(crate) const FILE_BYTES: usize = 1 << 20;
pub(crate) const LARGE_MTU: u32 = 4;

/// The file's bytes, which scripts and tests share.
pub(crate) type Disk = Arc<Mutex<Vec<u8>>>;

/// A request: its header, and the whole message.
pub(crate) struct Asked {
    pub(crate) header: MessageHeader,
    pub(crate) message: Vec<u8>,
}

impl Asked {
    /// None: it is shorter than a header.
    pub(crate) fn of(message: Vec<u8>) -> Option<Self> {
        let (header, _) = MessageHeader::read_from_prefix(&message).ok()?;
        Some(Self { header, message })
    }

    pub(crate) fn command(&self) -> u16 {
        self.header.command.get()
    }
}

/// What a server is like, and its answers.
pub(crate) struct Answers {
    pub(crate) disk: Disk,
    /// Granted with every answer.
    pub(crate) credits: u16,
    pub(crate) max_bytes: u32,
    pub(crate) capabilities: u32,
    pub(crate) security_mode: u16,
    pub(crate) dialect: u16,
    /// It keeps files open without a connection.
    pub(crate) durable: bool,
}

impl Answers {
    pub(crate) fn new(disk: Disk) -> Self {
        Self {
            disk,
            credits: 64,
            max_bytes: FILE_BYTES as u32,
            capabilities: LARGE_MTU,
            security_mode: 1,
            dialect: 0x210,
            durable: false,
        }
    }

    /// The bytes of an answer with its prefix.
    pub(crate) fn bytes<T: linerate_smb::wire::Body>(
        &self,
        asked: &Asked,
        status: Status,
        body: &T,
        rest: &[u8],
    ) -> Vec<u8> {
        let header = MessageHeader {
            status: U32::new(status.0),
            credits: U16::new(self.credits),
            flags: U32::new(FLAG_RESPONSE),
            session_id: U64::new(7),
            tree_id: U32::new(3),
            next_command: U32::new(0),
            ..asked.header
        };
        let message = message(&header, body, rest);
        [&prefix(message.len()).unwrap()[..], &message].concat()
    }

    /// The answer that makes a request wait.
    pub(crate) fn pending(&self, asked: &Asked, async_id: u64) -> Vec<u8> {
        let mut asked = Asked { header: asked.header, message: Vec::new() };
        let mut bytes = self.bytes(&asked, Status::PENDING, &ErrorResponse::default(), &[0]);
        asked.header = MessageHeader::read_from_prefix(&bytes[4..]).unwrap().0;
        asked.header.set_async_id(async_id);
        bytes[4..68].copy_from_slice(zerocopy::IntoBytes::as_bytes(&asked.header));
        bytes
    }

    /// The answer to a step of opening; None: the request is no such step.
    pub(crate) fn of_step(&self, asked: &Asked) -> Option<Vec<u8>> {
        let token_at = |fixed: usize| U16::new((HEADER_BYTES + fixed) as u16);
        Some(match asked.command() {
            0 => {
                let body = NegotiateResponse {
                    security_mode: U16::new(self.security_mode),
                    dialect: U16::new(self.dialect),
                    capabilities: U32::new(self.capabilities),
                    max_read_bytes: U32::new(self.max_bytes),
                    max_write_bytes: U32::new(self.max_bytes),
                    token_offset: token_at(size_of::<NegotiateResponse>()),
                    ..NegotiateResponse::default()
                };
                self.bytes(asked, Status::SUCCESS, &body, &[])
            }
            1 if asked.header.session_id.get() == 0 => {
                let token = challenge();
                let body = SessionSetupResponse {
                    token_offset: token_at(size_of::<SessionSetupResponse>()),
                    token_len: U16::new(token.len() as u16),
                    ..SessionSetupResponse::default()
                };
                self.bytes(asked, Status::MORE_PROCESSING_REQUIRED, &body, &token)
            }
            1 => {
                let body = SessionSetupResponse {
                    flags: U16::new(1),
                    token_offset: token_at(size_of::<SessionSetupResponse>()),
                    ..SessionSetupResponse::default()
                };
                self.bytes(asked, Status::SUCCESS, &body, &[])
            }
            3 => {
                let body = TreeConnectResponse {
                    share_type: 1,
                    maximal_access: U32::new(u32::MAX),
                    ..TreeConnectResponse::default()
                };
                self.bytes(asked, Status::SUCCESS, &body, &[])
            }
            5 => {
                let size = self.disk.lock().unwrap().len() as u64;
                let contexts = if self.durable { grant() } else { Vec::new() };
                let body = CreateResponse {
                    end_of_file: U64::new(size),
                    file_id: [5; 16],
                    contexts_offset: U32::new((HEADER_BYTES + size_of::<CreateResponse>()) as u32),
                    contexts_len: U32::new(contexts.len() as u32),
                    ..CreateResponse::default()
                };
                self.bytes(asked, Status::SUCCESS, &body, &contexts)
            }
            _ => return None,
        })
    }

    /// The answer of a good file; None: the request is malformed.
    pub(crate) fn of_file(&self, asked: &Asked) -> Option<Vec<u8>> {
        Some(match asked.command() {
            8 => {
                let body: &ReadRequest = body_of(&asked.message).ok()?;
                let (at, len) = (body.offset.get() as usize, body.length.get() as usize);
                let data = self.disk.lock().unwrap().get(at..at.checked_add(len)?)?.to_vec();
                self.data(asked, READ_DATA_AT, &data)
            }
            9 => {
                let body: &WriteRequest = body_of(&asked.message).ok()?;
                let (at, data) = (body.offset.get() as usize, asked.message.get(IO_BYTES..)?);
                self.disk.lock().unwrap().get_mut(at..at.checked_add(data.len())?)?.copy_from_slice(data);
                let reply = WriteResponse { count: body.length, ..WriteResponse::default() };
                self.bytes(asked, Status::SUCCESS, &reply, &[])
            }
            6 => self.bytes(asked, Status::SUCCESS, &CloseResponse::default(), &[]),
            16 => {
                let size = self.disk.lock().unwrap().len() as u64;
                let information = [size, size, 1].map(u64::to_le_bytes).concat();
                let reply = QueryInfoResponse {
                    output_offset: U16::new((HEADER_BYTES + size_of::<QueryInfoResponse>()) as u16),
                    output_len: U32::new(information.len() as u32),
                    ..QueryInfoResponse::default()
                };
                self.bytes(asked, Status::SUCCESS, &reply, &information)
            }
            _ => self.bytes(asked, Status::SUCCESS, &EmptyBody::default(), &[]),
        })
    }

    /// A READ response with its data at an offset.
    pub(crate) fn data(&self, asked: &Asked, data_at: usize, data: &[u8]) -> Vec<u8> {
        let reply = ReadResponse {
            data_offset: data_at as u8,
            data_len: U32::new(data.len() as u32),
            ..ReadResponse::default()
        };
        let rest = [&vec![0xEE; data_at - READ_DATA_AT][..], data].concat();
        self.bytes(asked, Status::SUCCESS, &reply, &rest)
    }
}

/// The context of a durable handle of version 2.
fn grant() -> Vec<u8> {
    DurableContext::Request { version: DurableVersion::V2, create_guid: [0; 16], timeout_ms: 0 }.bytes()
}

/// A challenge of NTLM in SPNEGO, with an empty list of attributes.
fn challenge() -> Vec<u8> {
    let flags = 0x0088_8215_u32 | 0x8_0000;
    let mut ntlm = b"NTLMSSP\0\x02\0\0\0".to_vec();
    ntlm.extend([0; 8]);
    ntlm.extend(flags.to_le_bytes());
    ntlm.extend([0x11; 8]);
    ntlm.extend([0; 8]);
    ntlm.extend([4, 0, 4, 0, 48, 0, 0, 0]);
    ntlm.extend([0; 4]);
    let wrap = |tag: u8, inner: &[u8]| [&[tag, inner.len() as u8][..], inner].concat();
    wrap(0xA1, &wrap(0x30, &wrap(0xA2, &wrap(4, &ntlm))))
}
