//! The answering side.

use super::connection::{Outbox, Readiness};
use super::{HEADER_BYTES, Request, Waiting};
use crate::affinity::now_s;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

/// Receive memory per connection.
const BUFFER_BYTES: usize = 256 * 1024;

/// What the server is told.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// TCP port on 127.0.0.1; 0 = any.
    pub port: u16,
    /// Memory that reads come from and writes go to.
    pub region_bytes: usize,
    /// How to wait.
    pub waiting: Waiting,
    /// How long it computes for each answer, as a file server does; answers are then sent one by one. With several
    /// connections, or without blocking, it is an error.
    pub work: Duration,
}

/// A bound server.
pub struct Server {
    listener: TcpListener,
    region: Vec<u8>,
    waiting: Waiting,
    work: Duration,
}

struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that wait for the rest of a header.
    held: usize,
    /// Write data that has not arrived yet.
    missing: Option<Write>,
    out: Outbox,
    /// Answers that wait for their turn.
    later: VecDeque<(Request, (usize, usize))>,
    work: Duration,
}

#[derive(Clone, Copy)]
struct Write {
    request: Request,
    at: usize,
    left: usize,
}

impl Server {
    /// Listens on 127.0.0.1.
    pub fn bind(options: &ServerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        // Every page is touched, as in a volume that has been written.
        let region = (0..options.region_bytes).map(|at| (at >> 9) as u8 | 1).collect();
        Ok(Self { listener, region, waiting: options.waiting, work: options.work })
    }

    /// The port that was bound.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().map_or(0, |addr| addr.port())
    }

    /// Accepts `count` connections and answers them until all are closed.
    pub fn serve(mut self, count: usize) -> io::Result<()> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let (socket, _) = self.listener.accept()?;
            socket.set_nodelay(true)?;
            connections.push(Connection::new(socket, self.work));
        }
        let served = match (&mut connections[..], self.waiting) {
            ([only], Waiting::Block) => self.serve_one(only),
            _ if !self.work.is_zero() => Err(ErrorKind::InvalidInput.into()),
            (many, _) => self.serve_many(many),
        };
        match served {
            // The client leaves when its time is over, in the middle of answers.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                Ok(())
            }
            other => other,
        }
    }

    fn serve_one(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut readiness = Readiness::new(Waiting::Block)?;
        readiness.add(&connection.socket, 0)?;
        readiness.want_output(&connection.socket, 0, true)?;
        while connection.receive(&mut self.region, RecvFlags::empty())? {
            loop {
                // The socket takes no more: wait for room or for more input, as with many connections.
                while !connection.out.pump(&connection.socket, &self.region)? {
                    readiness.wait(&mut Vec::new())?;
                    if !connection.receive(&mut self.region, RecvFlags::DONTWAIT)? {
                        return Ok(());
                    }
                }
                if !connection.work_on_next() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn serve_many(&mut self, connections: &mut [Connection]) -> io::Result<()> {
        let mut readiness = Readiness::new(self.waiting)?;
        for (index, connection) in connections.iter().enumerate() {
            readiness.add(&connection.socket, index)?;
        }
        let mut open = connections.len();
        let mut ready = Vec::new();
        while open > 0 {
            readiness.wait(&mut ready)?;
            for &index in &ready {
                let connection = &mut connections[index];
                let blocked = !connection.out.is_empty();
                if !connection.receive(&mut self.region, RecvFlags::DONTWAIT)? {
                    readiness.remove(&connection.socket)?;
                    open -= 1;
                    continue;
                }
                let drained = connection.out.pump(&connection.socket, &self.region)?;
                if drained == blocked {
                    readiness.want_output(&connection.socket, index, !drained)?;
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    fn new(socket: TcpStream, work: Duration) -> Self {
        let (buffer, out, later) = (vec![0; BUFFER_BYTES], Outbox::default(), VecDeque::new());
        Self { socket, buffer, held: 0, missing: None, out, later, work }
    }

    /// Queues an answer, with data from a place of the region.
    fn answer(&mut self, request: &Request, data: (usize, usize)) {
        if self.work.is_zero() {
            self.out.push(request, data);
        } else {
            self.later.push_back((*request, data));
        }
    }

    /// Computes for the next answer, which can be sent then; false: there is none.
    fn work_on_next(&mut self) -> bool {
        let Some((request, data)) = self.later.pop_front() else { return false };
        let until = now_s() + self.work.as_secs_f64();
        while now_s() < until {
            std::hint::spin_loop();
        }
        self.out.push(&request, data);
        true
    }

    /// One `recvmsg` and everything that it completes; false at the end of the stream.
    fn receive(&mut self, region: &mut [u8], flags: RecvFlags) -> io::Result<bool> {
        let direct = self.missing.map_or(0..0, |write| write.at..write.at + write.left);
        let room = direct.len();
        let mut slices =
            [IoSliceMut::new(&mut region[direct]), IoSliceMut::new(&mut self.buffer[self.held..])];
        let skip = usize::from(room == 0);
        let got = match recvmsg(&self.socket, &mut slices[skip..], &mut RecvAncillaryBuffer::default(), flags)
        {
            Ok(message) => message.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(Errno::CONNRESET) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if got == 0 {
            return Ok(false);
        }
        self.take(got.min(room));
        let filled = self.held + got.saturating_sub(room);
        self.parse(filled, region);
        Ok(true)
    }

    /// Books `count` bytes of write data as arrived.
    fn take(&mut self, count: usize) {
        if let Some(write) = &mut self.missing {
            write.at += count;
            write.left -= count;
            if write.left == 0 {
                let request = write.request;
                self.missing = None;
                self.answer(&request, (0, 0));
            }
        }
    }

    fn parse(&mut self, filled: usize, region: &mut [u8]) {
        let mut at = 0;
        while let Some(header) = self.buffer[at..filled].first_chunk::<HEADER_BYTES>() {
            let request = Request::parse(header);
            at += HEADER_BYTES;
            let (start, len) = (request.offset_bytes as usize, request.len_bytes as usize);
            if request.write {
                let here = len.min(filled - at);
                region[start..start + here].copy_from_slice(&self.buffer[at..at + here]);
                at += here;
                self.missing = Some(Write { request, at: start, left: len });
                self.take(here);
            } else {
                self.answer(&request, (start, len));
            }
        }
        self.buffer.copy_within(at..filled, 0);
        self.held = filled - at;
    }
}
