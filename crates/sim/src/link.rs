//! One TCP connection: two ends, and the network between them.

use linerate_io::{Buffer, Handle, Nanos, Outgoing, Region, Seg};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that connected.
    Client,
    /// The end that was accepted.
    Server,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct SimLink {
    ends: [End; 2],
    /// The network lost it: nothing is delivered any more.
    pub(crate) cut: bool,
}

/// A piece from one end to the other.
#[derive(Debug)]
pub(crate) enum SimPiece {
    Bytes(Vec<u8>),
    /// It has closed.
    Finish,
    /// The connection does not exist.
    Reset,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) addr: SocketAddr,
    /// Its driver, and its handle there.
    pub(crate) owner: Option<(usize, Handle)>,
    /// The attempt has been answered (an accepted end is connected from the start).
    pub(crate) connected: bool,
    /// Bytes that have arrived and were not received yet.
    pub(crate) inbox: VecDeque<u8>,
    /// Bytes in transit to this end.
    pub(crate) in_flight: usize,
    /// When the last byte in transit to this end arrives.
    pub(crate) last_arrival: Nanos,
    /// The other end has closed, and all its data has arrived.
    pub(crate) finished: bool,
    /// The connection has failed for this end, with this error.
    pub(crate) dead: Option<std::io::ErrorKind>,
    /// This end has closed.
    pub(crate) closed: bool,
    pub(crate) recv: Option<Recv>,
    pub(crate) send: Option<Send>,
    /// The send waits for the other end to receive.
    pub(crate) stalled: bool,
    /// Pieces for this end that cannot be delivered, and the time since which this is so.
    pub(crate) held: VecDeque<SimPiece>,
    pub(crate) held_since: Nanos,
    /// How long this end tries to deliver a piece; None: for ever.
    pub(crate) user_timeout: Option<Nanos>,
}

/// A receive in progress.
#[derive(Debug)]
pub(crate) struct Recv {
    pub(crate) direct: Vec<Seg>,
    pub(crate) buffer: Buffer,
}

impl Recv {
    /// Bytes for which it has space.
    pub(crate) fn room(&self) -> usize {
        let direct: usize = self.direct.iter().map(|seg| seg.len as usize).sum();
        direct + self.buffer.len()
    }

    /// Stores bytes after the first `done` of this receive: in its segments, then in its buffer. Returns how many bytes
    /// it has then.
    pub(crate) fn put(&mut self, done: usize, mut bytes: &[u8], regions: &[Arc<Region>]) -> usize {
        let whole = done + bytes.len();
        let mut skip = done;
        for seg in &self.direct {
            let room = (seg.len as usize).saturating_sub(skip);
            let (head, tail) = bytes.split_at(bytes.len().min(room));
            if !head.is_empty() {
                regions[seg.region.index() as usize].write(seg.offset + skip as u64, head);
            }
            skip = skip.saturating_sub(seg.len as usize);
            bytes = tail;
        }
        self.buffer.as_mut_slice()[skip..skip + bytes.len()].copy_from_slice(bytes);
        whole
    }
}

/// A send in progress.
#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) outgoing: Box<Outgoing>,
    pub(crate) sent: usize,
}

impl SimLink {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        SimLink { ends: [End::new(client, false), End::new(server, true)], cut: false }
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }
}

impl End {
    fn new(addr: SocketAddr, connected: bool) -> Self {
        End {
            addr,
            owner: None,
            connected,
            inbox: VecDeque::new(),
            in_flight: 0,
            last_arrival: 0,
            finished: false,
            dead: None,
            closed: false,
            recv: None,
            send: None,
            stalled: false,
            held: VecDeque::new(),
            held_since: 0,
            user_timeout: None,
        }
    }

    /// Drops the pieces that were not delivered.
    pub(crate) fn drop_held(&mut self) {
        for piece in self.held.drain(..) {
            if let SimPiece::Bytes(bytes) = piece {
                self.in_flight -= bytes.len();
            }
        }
    }
}
