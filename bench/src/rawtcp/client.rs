//! The asking side: a closed loop of `depth` requests per connection.

use super::connection::{Outbox, Readiness};
use super::{HEADER_BYTES, Request, Waiting};
use crate::affinity::{cpu_s, now_s};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::net::{Ipv4Addr, TcpStream};

/// Receive memory per connection.
const BUFFER_BYTES: usize = 256 * 1024;

/// What the client does.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// The server's port on 127.0.0.1.
    pub port: u16,
    /// Connections; the server waits for exactly as many.
    pub connections: usize,
    /// Requests in flight per connection.
    pub depth: u32,
    /// Data of one request in bytes.
    pub len_bytes: u32,
    /// Each write in flight is sent from a buffer of its own. One buffer for all stays in the processor's cache.
    pub own_buffers: bool,
    /// Share of reads in percent.
    pub read_percent: u32,
    /// The server's region.
    pub region_bytes: usize,
    /// How long.
    pub seconds: f64,
    /// How to wait.
    pub waiting: Waiting,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct ClientReport {
    /// Requests answered.
    pub ios: u64,
    /// Measured time in seconds.
    pub seconds: f64,
    /// CPU seconds of this process meanwhile.
    pub cpu_s: f64,
}

struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    held: usize,
    /// Read data still to come and to be forgotten.
    skip: usize,
    out: Outbox,
}

/// Requests of one size at random places.
struct Source {
    state: u64,
    places: u64,
    options: ClientOptions,
}

/// Runs the closed loop.
pub fn run_client(options: &ClientOptions) -> io::Result<ClientReport> {
    let places = (options.region_bytes as u64 / u64::from(options.len_bytes)).max(1);
    let mut source = Source { state: 0x9e37_79b9_7f4a_7c15, places, options: *options };
    let buffers = if options.own_buffers { options.depth.max(1) } else { 1 };
    let data = vec![0x5a; options.len_bytes as usize * buffers as usize];
    let mut connections = Vec::with_capacity(options.connections);
    for _ in 0..options.connections {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, options.port))?;
        socket.set_nodelay(true)?;
        let mut out = Outbox::default();
        (0..options.depth).for_each(|tag| source.push(tag, &mut out));
        connections.push(Connection { socket, buffer: vec![0; BUFFER_BYTES], held: 0, skip: 0, out });
    }
    let (start, cpu_start) = (now_s(), cpu_s());
    let end = start + options.seconds;
    let mut ios = 0;
    match (&mut connections[..], options.waiting) {
        ([only], Waiting::Block) => one(only, &mut source, &data, end, &mut ios)?,
        (many, _) => several(many, &mut source, &data, end, &mut ios)?,
    }
    Ok(ClientReport { ios, seconds: now_s() - start, cpu_s: cpu_s() - cpu_start })
}

fn one(c: &mut Connection, source: &mut Source, data: &[u8], end: f64, ios: &mut u64) -> io::Result<()> {
    let mut readiness = Readiness::new(Waiting::Block)?;
    readiness.add(&c.socket, 0)?;
    readiness.want_output(&c.socket, 0, true)?;
    while now_s() < end {
        let mut flags = RecvFlags::empty();
        if !c.out.pump(&c.socket, data)? {
            readiness.wait(&mut Vec::new())?;
            flags = RecvFlags::DONTWAIT;
        }
        *ios += c.receive(source, flags)?;
    }
    Ok(())
}

fn several(
    all: &mut [Connection],
    source: &mut Source,
    data: &[u8],
    end: f64,
    ios: &mut u64,
) -> io::Result<()> {
    let mut readiness = Readiness::new(source.options.waiting)?;
    for (index, c) in all.iter_mut().enumerate() {
        readiness.add(&c.socket, index)?;
        let drained = c.out.pump(&c.socket, data)?;
        readiness.want_output(&c.socket, index, !drained)?;
    }
    let mut ready = Vec::new();
    while now_s() < end {
        readiness.wait(&mut ready)?;
        for &index in &ready {
            let c = &mut all[index];
            let blocked = !c.out.is_empty();
            *ios += c.receive(source, RecvFlags::DONTWAIT)?;
            let drained = c.out.pump(&c.socket, data)?;
            if drained == blocked {
                readiness.want_output(&c.socket, index, !drained)?;
            }
        }
    }
    Ok(())
}

impl Connection {
    /// One `recv`; every answer in it is followed by a new request. Returns how many were answered.
    fn receive(&mut self, source: &mut Source, flags: RecvFlags) -> io::Result<u64> {
        let got = match recv(&self.socket, &mut self.buffer[self.held..], flags) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((got, _)) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let filled = self.held + got;
        let mut at = 0;
        let mut answered = 0;
        loop {
            let here = self.skip.min(filled - at);
            at += here;
            self.skip -= here;
            let Some(header) = self.buffer[at..filled].first_chunk::<HEADER_BYTES>() else { break };
            let answer = Request::parse(header);
            at += HEADER_BYTES;
            self.skip = if answer.write { 0 } else { answer.len_bytes as usize };
            source.push(answer.tag, &mut self.out);
            answered += 1;
        }
        self.buffer.copy_within(at..filled, 0);
        self.held = filled - at;
        Ok(answered)
    }
}

impl Source {
    fn push(&mut self, tag: u32, out: &mut Outbox) {
        // xorshift64: cheap, and good enough to scatter requests.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let len_bytes = self.options.len_bytes;
        let write = (self.state >> 40) % 100 >= u64::from(self.options.read_percent);
        let offset_bytes = (self.state >> 8) % self.places * u64::from(len_bytes);
        let request = Request { write, len_bytes, tag, offset_bytes };
        let len = len_bytes as usize;
        let from = if self.options.own_buffers { tag as usize * len } else { 0 };
        out.push(&request, if write { (from, len) } else { (0, 0) });
    }
}
