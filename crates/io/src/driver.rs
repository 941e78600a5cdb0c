//! The driver trait: all services of the operating system for target, initiator and load.
//!
//! A driver is a completion queue owned by one thread. Callers submit operations, then call [`Driver::poll`] and get
//! completions. Memory of an operation is either *owned by the operation* while it is in flight ([`Buffer`],
//! [`Outgoing`]: passed in, returned with the completion) or is in a [`Region`] that the driver keeps alive. There is
//! no reference into either while the kernel may write to it, so the interface is safe.
//!
//! Cost (one busy connection, n PDUs that arrived together): epoll driver = 1 `epoll_wait` + 1 `recvmsg` + 1 `sendmsg`
//! for all n; `io_uring` driver = 1 `io_uring_enter` + 1 `recv`, and 1 `send` if the list is short. No allocation per
//! operation after the start.

use crate::{Buffer, FileOptions, Outgoing, Region, SocketOptions, TcpInfo};
use std::{io, net::SocketAddr, path::Path, sync::Arc};

/// Nanoseconds on the driver's monotonic clock. Real drivers: `CLOCK_MONOTONIC`. The simulator: virtual time.
pub type Nanos = u64;

/// A listener, stream or file of one driver. A closed handle is never reused for another object (generation check).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Handle {
    /// Made by drivers only: `index` of the object in its driver's table, `generation` of that entry.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Position in the driver's table. Small and dense, so callers may use it as an index of their own tables.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How often the table entry was reused.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

/// A [`Region`] attached to one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionId(pub(crate) u32);

impl RegionId {
    /// Made by drivers only: position in the driver's list of regions.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Position in the driver's list of regions.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A byte range of an attached region. Ranges are checked when an operation is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seg {
    /// Which region.
    pub region: RegionId,
    /// First byte, from the region's start.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// How long [`Driver::poll`] may wait if nothing has completed yet. A wait may end early without a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Do not wait (busy polling).
    Never,
    /// Wait until this instant on the driver's clock.
    Until(Nanos),
    /// Wait for the next completion, however long.
    Forever,
}

/// The result of an operation.
#[derive(Debug)]
pub enum Completion<S> {
    /// A listener accepted a connection. The socket may be sent to another thread and added to its driver.
    Accepted {
        /// The listener.
        listener: Handle,
        /// The new connection, or why accepting failed (the listener continues to accept).
        result: io::Result<(S, SocketAddr)>,
    },
    /// [`Driver::connect`] finished.
    Connected {
        /// The stream.
        stream: Handle,
        /// Success, or why not.
        result: io::Result<()>,
    },
    /// [`Driver::recv`] finished: the direct segments were filled first, the rest went to `buffer`.
    Received {
        /// The stream.
        stream: Handle,
        /// Bytes received over direct segments and buffer together; 0 = the peer closed its side.
        result: io::Result<usize>,
        /// A buffer as long as the passed one; the bytes after the received ones are undefined.
        buffer: Buffer,
    },
    /// [`Driver::send`] finished: all bytes were taken by the kernel, or an error.
    Sent {
        /// The stream.
        stream: Handle,
        /// Success, or why not.
        result: io::Result<()>,
        /// The list that was handed in.
        outgoing: Box<Outgoing>,
    },
    /// A file operation finished.
    File {
        /// The file.
        file: Handle,
        /// The caller's tag.
        tag: u64,
        /// Bytes moved (short at end of file), 0 for sync, discard and allocate, or why not.
        result: io::Result<usize>,
    },
    /// A [`Driver::Waker`] was used since the last poll. Wakes coalesce.
    Woken,
}

/// One thread's interface to the operating system. See the module text for the contract.
pub trait Driver {
    /// A connected socket that is not (yet) owned by a driver.
    type Socket: Send + 'static;
    /// Interrupts a waiting [`Driver::poll`] from another thread.
    type Waker: Clone + Send + Sync + 'static;

    /// `"io_uring"`, `"epoll"` or `"sim"`, for the manifest.
    fn name(&self) -> &'static str;
    /// The driver's clock.
    fn now(&self) -> Nanos;
    /// A waker for this driver.
    fn waker(&self) -> Self::Waker;
    /// Wakes the driver of `waker`.
    fn wake(waker: &Self::Waker);

    /// Makes a region usable in segments. The driver keeps it alive until it is detached or the driver is dropped.
    fn attach(&mut self, region: Arc<Region>) -> RegionId;
    /// No operation names the region any more, and none in progress does. A driver may keep it nevertheless.
    fn detach(&mut self, _region: RegionId) {}

    /// Listens on `addr` (port 0 = any); accepting starts at once. Errors: address in use, not local, no permission.
    fn listen(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle>;
    /// The address that a listener or stream is bound to.
    fn local_addr(&self, handle: Handle) -> io::Result<SocketAddr>;
    /// Starts a connection; ends in [`Completion::Connected`], and only then may it send or receive. The caller limits
    /// its time by closing the handle.
    fn connect(&mut self, addr: SocketAddr, options: &SocketOptions) -> io::Result<Handle>;
    /// Takes over an accepted socket.
    fn add_stream(&mut self, socket: Self::Socket, options: &SocketOptions) -> io::Result<Handle>;
    /// Returns a stream without a receive or a send in flight, so that another driver may take its socket. Errors: it
    /// has one, or it is not a stream; then nothing has changed.
    fn release(&mut self, stream: Handle) -> io::Result<Self::Socket> {
        let _ = stream;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Kernel statistics of a stream's TCP connection.
    fn tcp_info(&self, stream: Handle) -> io::Result<TcpInfo>;

    /// Receives at least one byte into `direct` (in order) and then into a buffer as long as `buffer`. It may be
    /// another buffer, so that streams served in turn share memory that is in the core's cache. One receive per stream
    /// at a time.
    fn recv(&mut self, stream: Handle, direct: &[Seg], buffer: Buffer);
    /// Takes the direct segments back from a receive that waits for bytes: later bytes go to its buffer only, and the
    /// driver does not use the segments any more. False: no receive of this stream waits. A receive that has just
    /// finished may have filled them; its completion reports how far. The receive must have a buffer.
    fn retract(&mut self, stream: Handle) -> bool;
    /// Sends the whole list, resuming after short sends. One send per stream at a time. The bytes are sent at the next
    /// [`Driver::poll`] at the latest.
    fn send(&mut self, stream: Handle, outgoing: Box<Outgoing>);

    /// Opens a file or block device.
    fn open(&mut self, path: &Path, options: &FileOptions) -> io::Result<Handle>;
    /// Size in bytes of an open file or block device.
    fn file_size(&self, file: Handle) -> io::Result<u64>;
    /// Reads at `offset` into `segs` in order.
    fn read_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64);
    /// Writes `segs` in order at `offset`; with `durable` the bytes are on stable storage when it completes (`RWF_DSYNC`).
    fn write_at(&mut self, file: Handle, tag: u64, segs: &[Seg], offset: u64, durable: bool);
    /// Makes everything durable that was written to the file before (fdatasync).
    fn sync(&mut self, file: Handle, tag: u64);
    /// Deallocates a byte range, which then reads as zeros (`FALLOC_FL_PUNCH_HOLE`, `BLKZEROOUT`). For a file that must
    /// stay allocated ([`FileOptions::allocate`]) it only zeroes the range (`FALLOC_FL_ZERO_RANGE`). `Unsupported`: it
    /// cannot.
    fn discard(&mut self, file: Handle, tag: u64, offset: u64, len: u64);
    /// Reserves space for writes to a byte range of a regular file; its contents do not change (`fallocate`). Errors:
    /// `StorageFull`, `QuotaExceeded`, `Unsupported` (also for block devices).
    fn allocate(&mut self, file: Handle, tag: u64, offset: u64, len: u64);

    /// Closes a handle. Operations in flight complete with [`io::ErrorKind::ConnectionAborted`] and return their
    /// buffers.
    fn close(&mut self, handle: Handle);

    /// Submits what is pending, waits by `wait` if nothing has completed, and appends completions to `out`.
    fn poll(&mut self, wait: Wait, out: &mut Vec<Completion<Self::Socket>>) -> io::Result<()>;
}
