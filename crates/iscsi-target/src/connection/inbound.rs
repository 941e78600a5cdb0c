//! Where received bytes go: a receive buffer that is small while little arrives, and payload's own place.

use super::tasks::TaskId;
use crate::{buffers::pool::Chunks, context::WorkerContext};
use linerate_io::{Buffer, Driver, Handle, Seg};
use std::ops::Range;

/// Receive buffer of a quiet connection: room for three writes of 8 KiB, 590 reads, or a login.
const SMALL_BYTES: usize = 28 * 1024;
/// Receive buffer of a busy one.
const LARGE_BYTES: usize = 64 * 1024;
/// Payload that is received straight into its place must be at least this long to be worth an extra piece.
pub(super) const DIRECT_MIN_BYTES: u32 = 2048;

/// Where the data segment that is arriving belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Nowhere.
    Discard,
    /// Collected whole, then acted upon together with its header: login and text requests, pings.
    Whole,
    /// A write command's data.
    Task {
        /// The task, which may have ended meanwhile.
        task: TaskId,
        /// Where the segment begins within the command's data.
        base: u32,
    },
}

/// The part of a receive that goes straight to its place: I/O buffers, which it owns until it is over, or the pages of a
/// memory volume.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) task: TaskId,
    pub(super) chunks: Chunks,
    /// Where the payload begins within the command's data.
    pub(super) at: u32,
    /// Bytes that fit there.
    pub(super) len: u32,
}

/// Receive state of one connection.
pub(super) struct Inbound {
    buffer: Option<Buffer>,
    /// Bytes of the buffer that were not parsed yet.
    bytes: Range<usize>,
    receiving: bool,
    direct: Option<Direct>,
    /// The last receive filled the buffer.
    filled: bool,
}

impl Inbound {
    pub(super) fn new() -> Self {
        Self {
            buffer: Some(Buffer::new(SMALL_BYTES)),
            bytes: 0..0,
            receiving: false,
            direct: None,
            filled: false,
        }
    }

    /// Begins with bytes that were received elsewhere.
    pub(super) fn begin_with(&mut self, received: &[u8]) {
        let mut buffer = Buffer::new(if received.len() <= SMALL_BYTES { SMALL_BYTES } else { LARGE_BYTES });
        let count = received.len().min(buffer.len());
        buffer.as_mut_slice()[..count].copy_from_slice(&received[..count]);
        self.buffer = Some(buffer);
        self.bytes = 0..count;
    }

    pub(super) fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// The task whose place the receive under way goes to.
    pub(super) fn direct_task(&self) -> Option<TaskId> {
        self.direct.as_ref().map(|direct| direct.task)
    }

    /// Takes back what the receive owns of a task, so that nothing more goes there. None: it owns nothing of it, or it has
    /// just finished and will give it back by itself.
    pub(super) fn retract<D: Driver>(
        &mut self,
        stream: Handle,
        task: TaskId,
        driver: &mut D,
    ) -> Option<Chunks> {
        let direct = self.direct.take_if(|direct| direct.task == task && driver.retract(stream))?;
        Some(direct.chunks)
    }

    /// Everything that arrived has been parsed.
    pub(super) fn is_drained(&self) -> bool {
        !self.receiving && self.bytes.is_empty()
    }

    /// The unparsed bytes and the buffer that they lie in. `None` while a receive is under way.
    pub(super) fn take(&mut self) -> Option<(Buffer, Range<usize>)> {
        if self.receiving {
            return None;
        }
        self.buffer.take().map(|buffer| (buffer, self.bytes.clone()))
    }

    pub(super) fn put_back(&mut self, buffer: Buffer, bytes: Range<usize>) {
        self.buffer = Some(buffer);
        self.bytes = bytes;
    }

    /// However much has arrived, the next receive needs no large buffer.
    pub(super) fn stay_small(&mut self) {
        self.filled = false;
    }

    /// Starts to receive: payload into `segs`, which are those of `direct`, the rest into the buffer. Only a peer that
    /// has just filled the buffer, or did so and has yet to send the rest (`expects_more`), gets a large one: a buffer
    /// stays in use while the peer sends nothing.
    pub(super) fn receive<D: Driver>(
        &mut self,
        stream: Handle,
        context: &mut WorkerContext<D>,
        direct: Option<Direct>,
        segs: &[Seg],
        expects_more: impl FnOnce() -> bool,
    ) {
        let Some(mut buffer) = self.buffer.take() else { return };
        let wants_large = self.filled || (buffer.len() == LARGE_BYTES && expects_more());
        if wants_large != (buffer.len() == LARGE_BYTES) {
            let (spare, wanted) = if wants_large {
                (context.large_buffers.pop(), LARGE_BYTES)
            } else {
                (context.small_buffers.pop(), SMALL_BYTES)
            };
            let other = spare.unwrap_or_else(|| Buffer::new(wanted));
            context.keep_buffer(std::mem::replace(&mut buffer, other), !wants_large);
        }
        self.direct = direct;
        self.receiving = true;
        context.driver.recv(stream, segs, buffer);
    }

    /// Takes over a finished receive of `count` bytes. Returns what went straight to its place, and how many bytes that
    /// were.
    pub(super) fn received(&mut self, buffer: Buffer, count: usize) -> (Option<Direct>, u32) {
        let direct = self.direct.take();
        let placed = direct.as_ref().map_or(0, |direct| direct.len as usize).min(count);
        let buffered = count - placed;
        self.receiving = false;
        self.filled = buffered == buffer.len();
        self.bytes = 0..buffered;
        self.buffer = Some(buffer);
        (direct, placed as u32)
    }
}
