//! Destination of received bytes: a receive buffer, which is small while little arrives, or the payload's own memory.

use super::tasks::TaskId;
use crate::{buffers::pool::Chunks, context::WorkerContext};
use linerate_io::{Buffer, Driver, Handle, Seg};
use std::ops::Range;

/// Receive buffer of a quiet connection: space for three writes of 8 KiB, 590 reads, or a login.
const SMALL_BYTES: usize = 28 * 1024;
/// Receive buffer of a busy one.
const LARGE_BYTES: usize = 64 * 1024;
/// Least length of payload for a direct receive: below it, the extra piece costs more.
pub(super) const DIRECT_MIN_BYTES: u32 = 2048;

/// The owner of the data segment that is arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Nowhere.
    Discard,
    /// Collected completely, then handled together with its header: login and text requests, pings.
    Whole,
    /// A write command's data.
    Task {
        /// The task, which may have ended meanwhile.
        task: TaskId,
        /// Offset of the segment in the command's data.
        base: u32,
    },
}

/// The part of a receive that goes directly to its destination: I/O buffers, which it owns until it ends, or the pages
/// of a memory volume.
#[derive(Debug)]
pub(super) struct Direct {
    pub(super) task: TaskId,
    pub(super) chunks: Chunks,
    /// Offset of the payload in the command's data.
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

    /// The task that owns the destination of the current receive.
    pub(super) fn direct_task(&self) -> Option<TaskId> {
        self.direct.as_ref().map(|direct| direct.task)
    }

    /// Returns the memory of a task that the receive owns, so that nothing more is stored there. None: it owns none, or
    /// it has just finished and will return it itself.
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

    /// The unparsed bytes and their buffer. `None` while a receive is in progress.
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

    /// The next receive needs no large buffer, even if much has arrived.
    pub(super) fn stay_small(&mut self) {
        self.filled = false;
    }

    /// Starts a receive: payload into `segs`, which belong to `direct`, the rest into the buffer. A peer gets a large
    /// buffer only if it has just filled its buffer, or has done so and must still send the rest (`expects_more`). A
    /// buffer stays in use while the peer sends nothing.
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

    /// Accepts a finished receive of `count` bytes. Returns the direct part, and its number of bytes.
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
