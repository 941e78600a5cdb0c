//! A server for tests: plain sockets, one thread, one script per connection.
//!
//! [`Peer`] knows enough SMB 2.1 to be a file ([`Peer::serve`]); a script takes over for its faults. Every user is a
//! guest, so nothing is signed.

#![allow(dead_code, clippy::unwrap_used, reason = "every test file uses its own part")]

use linerate_smb::wire::body::*;
use linerate_smb::wire::files::{IO_BYTES, READ_DATA_AT};
use linerate_smb::wire::frame::prefix;
use linerate_smb::wire::header::{FLAG_RESPONSE, MessageHeader};
use linerate_smb::wire::status::Status;
use linerate_smb::wire::{HEADER_BYTES, body_of, message};
use linerate_smb::{SmbAddress, SmbCredentials, SmbDisk, SmbMode, SmbOptions, SmbToolError};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

pub(crate) const FILE_BYTES: usize = 1 << 20;
pub(crate) const LARGE_MTU: u32 = 4;

/// The file's bytes, which scripts and tests share.
pub(crate) type Disk = Arc<Mutex<Vec<u8>>>;

/// The listening side.
pub(crate) struct Fake {
    pub(crate) addr: SocketAddr,
    pub(crate) disk: Disk,
}

/// A request: its header, and the whole message.
pub(crate) struct Asked {
    pub(crate) header: MessageHeader,
    pub(crate) message: Vec<u8>,
}

/// One connection.
pub(crate) struct Peer {
    stream: TcpStream,
    pub(crate) disk: Disk,
    /// Granted with every answer.
    pub(crate) credits: u16,
    pub(crate) max_bytes: u32,
    pub(crate) capabilities: u32,
    pub(crate) security_mode: u16,
    pub(crate) dialect: u16,
}

impl Fake {
    /// Runs `script` for every connection in turn. A script that ends closes its connection.
    pub(crate) fn start(script: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let disk: Disk = Arc::new(Mutex::new(vec![0; FILE_BYTES]));
        let shared = Arc::clone(&disk);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let _ = stream.set_nodelay(true);
                let disk = Arc::clone(&shared);
                let mut peer = Peer {
                    stream,
                    disk,
                    credits: 64,
                    max_bytes: FILE_BYTES as u32,
                    capabilities: LARGE_MTU,
                    security_mode: 1,
                    dialect: 0x210,
                };
                let _ = script(&mut peer);
            }
        });
        Self { addr, disk }
    }

    /// A server that is a good file.
    pub(crate) fn good() -> Self {
        Self::start(|peer| {
            peer.log_on()?;
            peer.serve()
        })
    }

    pub(crate) fn address(&self) -> SmbAddress {
        SmbAddress::parse(&format!("smb://{}/share/file", self.addr)).unwrap()
    }

    pub(crate) fn open(
        &self,
        options: &SmbOptions,
    ) -> Result<SmbDisk<linerate_io::EpollDriver>, SmbToolError> {
        let mode = SmbMode { write: true, create_bytes: None };
        let credentials = SmbCredentials::of_user(Some("user"), Some("password"));
        SmbDisk::open(linerate_io::EpollDriver::new().unwrap(), &self.address(), options, credentials, mode)
    }
}

impl Asked {
    pub(crate) fn command(&self) -> u16 {
        self.header.command.get()
    }
}

impl Peer {
    pub(crate) fn read(&mut self) -> io::Result<Asked> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let mut message = vec![0; u32::from_be_bytes(len) as usize];
        self.stream.read_exact(&mut message)?;
        let (header, _) =
            MessageHeader::read_from_prefix(&message).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Asked { header, message })
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
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
            ..asked.header
        };
        let message = message(&header, body, rest);
        [&prefix(message.len()).unwrap()[..], &message].concat()
    }

    pub(crate) fn send<T: linerate_smb::wire::Body>(
        &mut self,
        asked: &Asked,
        status: Status,
        body: &T,
        rest: &[u8],
    ) -> io::Result<()> {
        let bytes = self.bytes(asked, status, body, rest);
        self.raw(&bytes)
    }

    pub(crate) fn refuse(&mut self, asked: &Asked, status: Status) -> io::Result<()> {
        self.send(asked, status, &ErrorResponse::default(), &[0])
    }

    /// The answer that makes a request wait.
    pub(crate) fn pend(&mut self, asked: &Asked, async_id: u64) -> io::Result<()> {
        let mut asked = Asked { header: asked.header, message: Vec::new() };
        let mut bytes = self.bytes(&asked, Status::PENDING, &ErrorResponse::default(), &[0]);
        asked.header = MessageHeader::read_from_prefix(&bytes[4..]).unwrap().0;
        asked.header.set_async_id(async_id);
        bytes[4..68].copy_from_slice(zerocopy::IntoBytes::as_bytes(&asked.header));
        self.raw(&bytes)
    }

    /// Up to the open file.
    pub(crate) fn log_on(&mut self) -> io::Result<()> {
        for _ in 0..5 {
            let asked = self.read()?;
            self.step(&asked)?;
        }
        Ok(())
    }

    /// One step of opening.
    pub(crate) fn step(&mut self, asked: &Asked) -> io::Result<()> {
        let token_at = |fixed: usize| U16::new((HEADER_BYTES + fixed) as u16);
        match asked.command() {
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
                self.send(asked, Status::SUCCESS, &body, &[])
            }
            1 if asked.header.session_id.get() == 0 => {
                let token = challenge();
                let body = SessionSetupResponse {
                    token_offset: token_at(size_of::<SessionSetupResponse>()),
                    token_len: U16::new(token.len() as u16),
                    ..SessionSetupResponse::default()
                };
                self.send(asked, Status::MORE_PROCESSING_REQUIRED, &body, &token)
            }
            1 => {
                let body = SessionSetupResponse {
                    flags: U16::new(1),
                    token_offset: token_at(size_of::<SessionSetupResponse>()),
                    ..SessionSetupResponse::default()
                };
                self.send(asked, Status::SUCCESS, &body, &[])
            }
            3 => {
                let body = TreeConnectResponse {
                    share_type: 1,
                    maximal_access: U32::new(u32::MAX),
                    ..TreeConnectResponse::default()
                };
                self.send(asked, Status::SUCCESS, &body, &[])
            }
            5 => {
                let size = self.disk.lock().unwrap().len() as u64;
                let body = CreateResponse {
                    end_of_file: U64::new(size),
                    file_id: [5; 16],
                    ..CreateResponse::default()
                };
                self.send(asked, Status::SUCCESS, &body, &[])
            }
            _ => Err(io::Error::other("not a step of opening")),
        }
    }

    /// A good file until the connection ends.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        loop {
            let asked = self.read()?;
            let bytes = self.answer(&asked)?;
            self.raw(&bytes)?;
        }
    }

    /// The answer of a good file.
    pub(crate) fn answer(&mut self, asked: &Asked) -> io::Result<Vec<u8>> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        Ok(match asked.command() {
            8 => {
                let body: &ReadRequest = body_of(&asked.message).map_err(invalid)?;
                let (at, len) = (body.offset.get() as usize, body.length.get() as usize);
                let data = self.disk.lock().unwrap()[at..at + len].to_vec();
                self.data(asked, READ_DATA_AT, &data)
            }
            9 => {
                let body: &WriteRequest = body_of(&asked.message).map_err(invalid)?;
                let (at, data) = (body.offset.get() as usize, &asked.message[IO_BYTES..]);
                self.disk.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
                let reply = WriteResponse { count: body.length, ..WriteResponse::default() };
                self.bytes(asked, Status::SUCCESS, &reply, &[])
            }
            6 => self.bytes(asked, Status::SUCCESS, &CloseResponse::default(), &[]),
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

    /// Whether a request is waiting to be read.
    pub(crate) fn has_more(&self) -> bool {
        let mut byte = [0];
        self.stream.set_nonblocking(true).unwrap();
        let found = self.stream.peek(&mut byte).is_ok_and(|len| len > 0);
        self.stream.set_nonblocking(false).unwrap();
        found
    }
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
