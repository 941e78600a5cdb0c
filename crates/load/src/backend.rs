//! What I/Os go to. A worker has one backend of each kind, and each serves all of the worker's volumes of its kind: so
//! iSCSI volumes can share sessions, and one flush per turn carries everything.
//!
//! The contract: [`Backend::submit`] queues, [`Backend::flush`] sends what is queued, completions of the driver go to
//! [`Backend::complete`]; each I/O submitted ends in exactly one [`Done`]. Nothing here allocates per I/O.

pub(crate) mod file;
pub(crate) mod iscsi;
pub(crate) mod null;

use crate::record::Op;
use linerate_blame::Blame;
use linerate_io::{Completion, Driver, Nanos, Seg};
use linerate_iscsi_initiator::IoError;
use std::{fmt, io};

/// Notices that wait to be told; more than any turn of a worker brings.
const NOTICES_MAX: usize = 100_000;

/// One I/O for a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// The worker's name for it.
    pub(crate) slot: u32,
    /// Which of the backend's volumes.
    pub(crate) unit: u32,
    pub(crate) op: Op,
    /// Offset on the device, in bytes.
    pub(crate) offset: u64,
    /// The data; its length is the I/O's.
    pub(crate) data: Seg,
    /// Somebody looks at the data of a read.
    pub(crate) keep: bool,
    /// A write is on stable storage when it is done.
    pub(crate) durable: bool,
}

/// The end of an I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) slot: u32,
    pub(crate) result: Result<(), Failure>,
}

/// Why an I/O failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// A system call said so.
    System(io::ErrorKind, Option<i32>),
    /// Fewer bytes than asked for.
    Short {
        /// Bytes moved.
        moved: u32,
    },
    /// The initiator said so.
    Iscsi(IoError),
}

impl Failure {
    /// The volume will not come back during this run.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Iscsi(IoError::SessionLost | IoError::DeviceChanged | IoError::Closed))
    }

    /// Whose fault.
    pub(crate) fn blame(self) -> Blame {
        match self {
            Self::System(io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied, _) => Blame::User,
            Self::System(io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull, _) => Blame::Host,
            Self::System(..) | Self::Short { .. } | Self::Iscsi(_) => Blame::Peer,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(_, Some(code)) => io::Error::from_raw_os_error(*code).fmt(f),
            Self::System(kind, None) => kind.fmt(f),
            Self::Short { moved } => write!(f, "only {moved} bytes moved (the volume has become smaller?)"),
            Self::Iscsi(error) => error.fmt(f),
        }
    }
}

/// Something that happened to a volume besides I/Os.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// When, on the driver's clock.
    pub(crate) at: Nanos,
    /// The backend's volume; none = several.
    pub(crate) unit: Option<u32>,
    /// The place of the path that it is about in the volume's list.
    pub(crate) path: Option<usize>,
    /// The event's kind.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) blame: Blame,
    /// The volume will not come back.
    pub(crate) fatal: bool,
}

/// What backends report; reused, so empty of allocations once warm.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(crate) done: Vec<Done>,
    pub(crate) notices: Vec<Notice>,
}

impl Reports {
    /// Takes a notice. While nobody looks (before the start, after the end) a target may send many of them.
    fn note(&mut self, notice: Notice) {
        if notice.fatal || self.notices.len() < NOTICES_MAX {
            self.notices.push(notice);
        }
    }
}

/// What one volume turned out to be.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// Which of the backend's volumes.
    pub(crate) unit: u32,
    /// `iscsi`, `file`, `block`, `null` or `array`.
    pub(crate) kind: &'static str,
    pub(crate) capacity_bytes: u64,
    pub(crate) block_bytes: u32,
    /// Largest single transfer; 0 = no limit.
    pub(crate) max_transfer_bytes: u64,
    pub(crate) session: serde_json::Value,
}

/// A kind of volume. See the module text.
pub(crate) trait Backend<D: Driver> {
    /// Queues an I/O.
    fn submit(&mut self, driver: &mut D, io: &Io, reports: &mut Reports);

    /// Sends what is queued.
    fn flush(&mut self, driver: &mut D);

    /// Handles a completion; hands back one that belongs to another backend.
    fn complete(
        &mut self,
        driver: &mut D,
        completion: Completion<D::Socket>,
        reports: &mut Reports,
    ) -> Option<Completion<D::Socket>>;

    /// Runs what is due.
    fn on_time(&mut self, driver: &mut D, now: Nanos, reports: &mut Reports);

    /// When something is due next.
    fn next_deadline(&self) -> Option<Nanos>;

    /// Ends everything, in at most `timeout_ns`.
    fn close(&mut self, driver: &mut D, timeout_ns: Nanos);
}

/// A volume could not be opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenError {
    pub(crate) message: String,
    pub(crate) blame: Blame,
    /// User name or secret were refused.
    pub(crate) wrong_credentials: bool,
}

impl OpenError {
    /// With whose fault it is.
    pub(crate) fn new(blame: Blame, message: impl Into<String>) -> Self {
        Self { message: message.into(), blame, wrong_credentials: false }
    }
}
