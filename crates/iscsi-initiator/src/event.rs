//! The reports of an [`crate::Initiator`] to its caller: completed I/Os, read data, and events of sessions.

use crate::facts::{DeviceId, PathState, SessionId};
use linerate_blame::Blame;
use linerate_io::Nanos;
use linerate_scsi_proto::sense::SenseCode;
use linerate_scsi_proto::status::Status;

/// Receives the reports of an initiator while it handles a completion or the time.
///
/// `Vec<IoDone>` is the simplest sink: it keeps the I/Os and ignores the rest.
pub trait IoSink {
    /// An I/O has ended.
    fn done(&mut self, done: IoDone);

    /// A piece of an I/O's read data, still in the receive buffer (only for [`crate::ReadInto::Shown`]). Pieces of one
    /// I/O are in order of `offset_bytes` unless the target chose another order, and each byte is shown at least once.
    fn read_data(&mut self, device: DeviceId, slot: u32, offset_bytes: u32, bytes: &[u8]) {
        let _ = (device, slot, offset_bytes, bytes);
    }

    /// An event that is not the end of an I/O: for the run's event log.
    fn event(&mut self, event: Event) {
        let _ = event;
    }
}

impl IoSink for Vec<IoDone> {
    fn done(&mut self, done: IoDone) {
        self.push(done);
    }
}

/// The end of one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoDone {
    /// The device it was submitted to.
    pub device: DeviceId,
    /// The caller's slot.
    pub slot: u32,
    /// Success, or why not.
    pub result: Result<(), IoError>,
}

/// Why an I/O failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// The target ended the command with CHECK CONDITION (peer).
    #[error("target: {0}")]
    CheckCondition(SenseCode),
    /// The target ended the command with another status (peer): RESERVATION CONFLICT, TASK ABORTED and so on.
    #[error("target: {words}", words = status_words(*.0))]
    Status(u8),
    /// The target moved fewer bytes than requested and answered GOOD (peer).
    #[error("target moved {missing_bytes} bytes less than asked for")]
    Short {
        /// How many bytes did not move.
        missing_bytes: u32,
    },
    /// The target broke the protocol in this command (peer).
    #[error("target broke the protocol: {0}")]
    Protocol(&'static str),
    /// Not answered within the command's timeout (peer or network).
    #[error("no answer within the command timeout")]
    Timeout,
    /// The session was lost and was not restored within the replacement timeout (peer or network).
    #[error("session lost and not restored within the replacement timeout")]
    SessionLost,
    /// After a new login the LUN was a different or smaller one; the I/O was not sent to it, or may have been lost (peer).
    #[error("after a new login the LUN is another one or has shrunk")]
    DeviceChanged,
    /// No path of the device was usable for `no_path_queue_s` (peer or network).
    #[error("no path to the device within no_path_queue")]
    NoPath,
    /// The device was closed while the I/O waited (us).
    #[error("device closed")]
    Closed,
}

/// The name of a status byte.
fn status_words(status: u8) -> String {
    Status::from_code(status).map_or_else(|| format!("status {status:#04x}"), |status| status.to_string())
}

/// Why a session or device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Whose fault.
    pub blame: Blame,
    /// What happened, and what to check.
    pub message: String,
    /// What can be done about it, if that is known.
    pub remedy: Option<Remedy>,
}

/// What a user can do about a [`Failure`] of an array that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The target refused user name or secret, or did not authenticate itself: correct them.
    Credentials,
    /// The array is up and answers, and its ports do not serve the LUN now (ALUA): use others, or have it changed.
    AccessState,
}

impl Failure {
    /// A failure without a remedy of its own.
    pub(crate) fn new(blame: Blame, message: String) -> Self {
        Self { blame, message, remedy: None }
    }
}

/// An event of a session or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on the driver's clock.
    pub at: Nanos,
    /// On which session; none before a session exists.
    pub session: Option<SessionId>,
    /// The device, if the event concerns one.
    pub device: Option<DeviceId>,
    /// What happened.
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A device can take I/O.
    DeviceReady,
    /// A device could not be opened, or lost its last path.
    DeviceFailed(Failure),
    /// The target sent the login elsewhere.
    Redirected {
        /// To this portal.
        to: String,
    },
    /// A session runs with fewer connections than wanted.
    FewerConnections {
        /// How many were wanted.
        wanted: u16,
        /// How many there are.
        count: u16,
        /// Why.
        reason: String,
    },
    /// A session lost a connection, and so all of its connections.
    SessionLost(String),
    /// A session is back.
    SessionRestored {
        /// Commands that are sent again.
        retried_commands: u32,
    },
    /// A session is given up.
    SessionFailed(Failure),
    /// The target sent an asynchronous message.
    AsyncMessage(&'static str),
    /// A command was not answered in time and is being aborted.
    CommandTimeout,
    /// A path of a device failed. Paths are identified by their index in [`crate::Initiator::path_facts`].
    PathFailed {
        /// Which path.
        path: usize,
        /// Why.
        reason: String,
        /// I/Os that were in flight on it and are sent again over other paths.
        requeued: u32,
    },
    /// A path is back: logged in, and with the right LUN.
    PathRestored {
        /// Which path.
        path: usize,
    },
    /// The array changed the access state of a path (ALUA).
    PathStateChanged {
        /// Which path.
        path: usize,
        /// The state from now on.
        state: PathState,
    },
    /// The first I/O that a failed path had in flight has completed on another path.
    FailoverDone {
        /// The path that failed.
        path: usize,
        /// The path that did it.
        to: usize,
        /// Time since [`Self::PathFailed`].
        after_ns: Nanos,
    },
    /// A device has no usable path left; I/O waits.
    NoPath,
    /// A device has a usable path again.
    PathsBack {
        /// I/Os that waited for it.
        waiting: u32,
    },
}
