//! A server for tests: plain sockets, one thread, one script per connection.
//!
//! [`Peer`] knows enough SMB 2.1 to be a file ([`Peer::serve`]); a script takes over for its faults. Its answers are made
//! in `answers.rs`.

#![allow(dead_code, clippy::unwrap_used, reason = "every test file uses its own part")]

mod answers;
pub(crate) mod sequence;

pub(crate) use answers::{Answers, Asked, Disk, FILE_BYTES};
use linerate_smb::wire::body::ErrorResponse;
use linerate_smb::wire::frame::prefix;
use linerate_smb::wire::header::{compound, first_of_compound};
use linerate_smb::wire::status::Status;
use linerate_smb::{SmbAddress, SmbCredentials, SmbDisk, SmbMode, SmbOptions, SmbToolError};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// The listening side.
pub(crate) struct Fake {
    pub(crate) addr: SocketAddr,
    pub(crate) disk: Disk,
}

/// One connection.
pub(crate) struct Peer {
    stream: TcpStream,
    answers: Answers,
    /// Requests of a compound that were not read yet.
    unread: VecDeque<Asked>,
    /// Answers to requests of a compound are joined too.
    pub(crate) joins_answers: bool,
    joined: Vec<u8>,
    /// Compounds of requests that came.
    pub(crate) compounds: Vec<Vec<u16>>,
}

impl Deref for Peer {
    type Target = Answers;

    fn deref(&self) -> &Answers {
        &self.answers
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut Answers {
        &mut self.answers
    }
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
                let mut peer = Peer::new(stream, Answers::new(Arc::clone(&shared)));
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

impl Peer {
    fn new(stream: TcpStream, answers: Answers) -> Self {
        let (unread, joined, compounds) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { stream, answers, unread, joins_answers: false, joined, compounds }
    }

    /// The next request, also of a compound.
    pub(crate) fn read(&mut self) -> io::Result<Asked> {
        if self.unread.is_empty() {
            let mut len = [0; 4];
            self.stream.read_exact(&mut len)?;
            let mut message = vec![0; u32::from_be_bytes(len) as usize];
            self.stream.read_exact(&mut message)?;
            self.unread = compound_of(&message).ok_or(io::ErrorKind::InvalidData)?;
            if self.unread.len() > 1 {
                self.compounds.push(self.unread.iter().map(Asked::command).collect());
            }
        }
        self.unread.pop_front().ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_of_compound = !self.unread.is_empty() || !self.joined.is_empty();
        if !self.joins_answers || !is_of_compound {
            return self.stream.write_all(bytes);
        }
        if self.joined.is_empty() {
            self.joined = bytes[4..].to_vec();
        } else {
            compound(&mut self.joined, &bytes[4..]);
        }
        if self.unread.is_empty() {
            let joined = std::mem::take(&mut self.joined);
            self.stream.write_all(&prefix(joined.len()).unwrap())?;
            self.stream.write_all(&joined)?;
        }
        Ok(())
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
        let bytes = self.pending(asked, async_id);
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
        let bytes = self.of_step(asked).ok_or_else(|| io::Error::other("not a step of opening"))?;
        self.raw(&bytes)
    }

    /// The answer of a good file.
    pub(crate) fn answer(&self, asked: &Asked) -> io::Result<Vec<u8>> {
        self.of_file(asked).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// A good file until the connection ends.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        loop {
            let asked = self.read()?;
            let bytes = self.answer(&asked)?;
            self.raw(&bytes)?;
        }
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

/// The requests of a message, each with its padding; None: it is malformed.
fn compound_of(message: &[u8]) -> Option<VecDeque<Asked>> {
    let (mut found, mut rest) = (VecDeque::new(), message);
    while !rest.is_empty() {
        let (first, others) = rest.split_at(first_of_compound(rest).ok()?);
        found.push_back(Asked::of(first.to_vec())?);
        rest = others;
    }
    Some(found)
}
