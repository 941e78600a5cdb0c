//! One socket: what is still to be sent, and the shared ways to wait.

use super::{HEADER_BYTES, Request, Waiting};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

/// Pieces per `sendmsg`: the kernel's limit.
const PARTS_PER_CALL: usize = 1024;

/// A gather list: headers in an arena, data by range of a memory region.
#[derive(Default)]
pub(super) struct Outbox {
    headers: Vec<u8>,
    /// Data range after each header; empty where there is none.
    data: Vec<(usize, usize)>,
    /// Bytes of the list that were sent already.
    sent: usize,
    total: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, header: &Request, data: (usize, usize)) {
        self.headers.extend_from_slice(&header.emit());
        self.data.push(data);
        self.total += HEADER_BYTES + data.1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Sends until all is gone (true) or the socket takes no more (false).
    pub(super) fn pump(&mut self, socket: &TcpStream, region: &[u8]) -> io::Result<bool> {
        while self.sent < self.total {
            let mut slices = Vec::with_capacity(PARTS_PER_CALL.min(self.data.len() * 2));
            self.gather(region, &mut slices);
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(socket, &slices, &mut SendAncillaryBuffer::default(), flags) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.headers.clear();
        self.data.clear();
        (self.sent, self.total) = (0, 0);
        Ok(true)
    }

    fn gather<'a>(&'a self, region: &'a [u8], slices: &mut Vec<IoSlice<'a>>) {
        let mut skip = self.sent;
        let mut run_start = 0;
        let mut push = |bytes: &'a [u8]| {
            let from = skip.min(bytes.len());
            skip -= from;
            if from < bytes.len() && slices.len() < PARTS_PER_CALL {
                slices.push(IoSlice::new(&bytes[from..]));
            }
        };
        for (index, &(at, len)) in self.data.iter().enumerate() {
            let header_end = (index + 1) * HEADER_BYTES;
            if len > 0 {
                push(&self.headers[run_start..header_end]);
                push(&region[at..at + len]);
                run_start = header_end;
            }
        }
        push(&self.headers[run_start..]);
    }
}

/// Waits for readiness of many sockets, or for nothing at all.
pub(super) struct Readiness {
    epoll: OwnedFd,
    waiting: Waiting,
    events: Vec<epoll::Event>,
}

impl Readiness {
    pub(super) fn new(waiting: Waiting) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            waiting,
            events: Vec::with_capacity(64),
        })
    }

    pub(super) fn add(&self, socket: &TcpStream, index: usize) -> io::Result<()> {
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::add(&self.epoll, socket, data, epoll::EventFlags::IN)?)
    }

    pub(super) fn remove(&self, socket: &TcpStream) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Asks for writability too while output waits.
    pub(super) fn want_output(&self, socket: &TcpStream, index: usize, wanted: bool) -> io::Result<()> {
        let extra = if wanted { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let data = epoll::EventData::new_u64(index as u64);
        Ok(epoll::modify(&self.epoll, socket, data, epoll::EventFlags::IN | extra)?)
    }

    /// Indices of the sockets that are ready; empty only when spinning.
    pub(super) fn wait(&mut self, ready: &mut Vec<usize>) -> io::Result<()> {
        let zero = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = match self.waiting {
            Waiting::Block => None,
            Waiting::Spin => Some(&zero),
        };
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ready.clear();
        ready.extend(self.events.iter().map(|event| event.data.u64() as usize));
        Ok(())
    }
}
