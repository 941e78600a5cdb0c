//! The arena: one thread's sessions and devices.

use crate::address::LunAddress;
use crate::device::{DeviceFacts, DeviceId, DeviceState};
use crate::event::{IoDone, IoSink};
use crate::options::{Credentials, OptionsError, SessionOptions};
use linerate_io::{Completion, Driver, Nanos, Seg, TcpInfo};
use std::net::SocketAddr;

/// Names a session of one [`Initiator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) u32);

impl SessionId {
    /// Sessions are numbered from 0 in the order they were made.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether a device may ride on a session that another device opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A session of its own.
    Own,
    /// One session per portal, target, credentials and options.
    Shared,
}

/// Where a read's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadInto {
    /// Nowhere: received, then forgotten. The fastest.
    Nothing,
    /// Shown to [`IoSink::read_data`] in the receive buffer.
    Shown,
    /// Into this segment, which is at least as long as the read. Long pieces are received straight into it.
    Segment(Seg),
}

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// READ.
    Read(ReadInto),
    /// WRITE of this segment's first `len_bytes` bytes, which must not change until the I/O is done.
    Write(Seg),
    /// SYNCHRONIZE CACHE of the whole LUN; offset and length are ignored.
    Sync,
    /// UNMAP of the range.
    Discard,
}

/// One I/O. Offset and length are multiples of the device's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// The caller's name for it, given back in [`IoDone`].
    pub slot: u32,
    /// What to do.
    pub op: IoOp,
    /// First byte on the LUN.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u32,
}

/// What a session turned out to be, read back and not assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// The target's name.
    pub target: String,
    /// The portal that was asked for.
    pub portal: String,
    /// Where the connection really went (redirection may have moved it).
    pub peer_addr: SocketAddr,
    /// Our end.
    pub local_addr: SocketAddr,
    /// Logins so far; above 1 the session was restored.
    pub logins: u32,
}

/// Sessions and devices of one thread. See the crate text for how it is driven:
///
/// 1. [`open`](Self::open) every device, then [`wait_ready`](Self::wait_ready), or poll the driver until each device's
///    [`state`](Self::state) is not `Opening`.
/// 2. [`submit`](Self::submit) I/Os, then [`flush`](Self::flush) once.
/// 3. Poll the driver no longer than [`next_deadline`](Self::next_deadline) allows, hand every completion to
///    [`handle_completion`](Self::handle_completion), call [`on_time`](Self::on_time), submit, flush, and so on.
#[derive(Debug, Default)]
pub struct Initiator {}

impl Initiator {
    /// An initiator without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts to open a LUN: session (new or shared), login, facts. Nothing is waited for.
    pub fn open<D: Driver>(
        &mut self,
        driver: &mut D,
        address: &LunAddress,
        options: &SessionOptions,
        credentials: &Credentials,
        sharing: Sharing,
    ) -> Result<DeviceId, OptionsError> {
        let _ = (driver, address, options, credentials, sharing);
        todo!()
    }

    /// Drives `driver` until no device is `Opening`. For the time before the driver has other work: completions that
    /// belong to nobody here are dropped.
    pub fn wait_ready<D: Driver>(&mut self, driver: &mut D, sink: &mut impl IoSink) -> std::io::Result<()> {
        let _ = (driver, sink);
        todo!()
    }

    /// Whether a device takes I/O.
    pub fn state(&self, device: DeviceId) -> &DeviceState {
        let _ = device;
        todo!()
    }

    /// What the LUN said about itself; zeros until it is ready.
    pub fn facts(&self, device: DeviceId) -> &DeviceFacts {
        let _ = device;
        todo!()
    }

    /// The session that a device uses now.
    pub fn session_of(&self, device: DeviceId) -> SessionId {
        let _ = device;
        todo!()
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> + use<> {
        (0..0).map(SessionId)
    }

    /// What a session negotiated; none before its first login.
    pub fn session_facts(&self, session: SessionId) -> Option<&SessionFacts> {
        let _ = session;
        todo!()
    }

    /// The kernel's statistics of a session's connection; none while it has no connection.
    pub fn tcp_info<D: Driver>(&self, driver: &D, session: SessionId) -> Option<TcpInfo> {
        let _ = (driver, session);
        todo!()
    }

    /// Queues an I/O; it leaves with the next [`flush`](Self::flush). While a session is being restored it takes I/Os
    /// too and sends them afterwards.
    pub fn submit(&mut self, device: DeviceId, request: &IoRequest) -> Result<(), SubmitError> {
        let _ = (device, request);
        todo!()
    }

    /// Sends everything queued, one send per session, and receives again where the last buffer has been used up.
    pub fn flush<D: Driver>(&mut self, driver: &mut D) {
        let _ = driver;
        todo!()
    }

    /// Handles a completion of one of this initiator's streams; hands back one that is not its own.
    pub fn handle_completion<D: Driver>(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        sink: &mut impl IoSink,
    ) -> Option<Completion<D::Socket>> {
        let _ = (driver, completion, sink);
        todo!()
    }

    /// Runs what is due: login and command timeouts, pings, new login attempts. Cheap when nothing is due.
    pub fn on_time<D: Driver>(&mut self, driver: &mut D, now: Nanos, sink: &mut impl IoSink) {
        let _ = (driver, now, sink);
        todo!()
    }

    /// When [`on_time`](Self::on_time) has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        todo!()
    }

    /// Logs out every session and waits at most `timeout_ns`; I/Os still in flight end as [`crate::IoError::Closed`].
    pub fn close<D: Driver>(&mut self, driver: &mut D, timeout_ns: Nanos, sink: &mut impl IoSink) {
        let _ = (driver, timeout_ns, sink, IoDone::clone);
        todo!()
    }
}

/// An I/O that was not taken; all of these are the caller's to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The device is not ready.
    #[error("device is not ready")]
    NotReady,
    /// Offset or length is no multiple of the block, or the length is zero.
    #[error("offset and length must be multiples of the block and not zero")]
    Alignment,
    /// The I/O ends behind the LUN's last block.
    #[error("I/O ends behind the end of the device")]
    OutOfRange,
    /// The segment is shorter than the I/O.
    #[error("segment is shorter than the I/O")]
    Segment,
}
