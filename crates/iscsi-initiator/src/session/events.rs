//! What a session needs from its owner, and what it reports to it.

use crate::event::Failure;
use crate::facts::{DeviceId, SessionId};
use crate::request::Regions;
use crate::task::{Answer, NewTask};
use linerate_io::Nanos;
use linerate_scsi_proto::alua::AccessState;

/// What a session needs from its owner while it works, and where it leaves what its owner must know.
pub(crate) struct Context<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) events: &'a mut Vec<(SessionId, SessionEvent)>,
    /// I/Os that the session could not do.
    pub(crate) returned: &'a mut Vec<Returned>,
    pub(crate) regions: &'a Regions,
    pub(crate) random: &'a mut Random,
    /// When the owner must give the session time again, at the latest.
    pub(crate) wake_at: Nanos,
}

/// Fills a slice with unpredictable bytes.
pub type Random = dyn FnMut(&mut [u8]) + Send;

/// An I/O that a session could not do.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) session: SessionId,
    pub(crate) task: NewTask,
    pub(crate) progress: ReturnedFrom,
}

/// How far an I/O had come when its session handed it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnedFrom {
    /// The target does not have it: it was not sent, or it was refused or aborted.
    Queue,
    /// The target may have it and may still run it.
    Flight,
    /// The same, and its command timeout is over.
    Abort,
}

/// A connection that was lost, or an attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(crate) failure: Failure,
    /// I/Os that were in flight and have been handed back.
    pub(crate) in_flight: u32,
}

/// What a session reports to the paths that use it.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    /// Full feature phase has begun.
    LoggedIn,
    /// The connection is lost, or an attempt to bring it back has failed; the next one follows.
    Lost(Loss),
    /// The session is given up.
    Failed(Loss),
    /// A login has ended the target's part of the lost session.
    Reinstated,
    /// The target's port does not take I/O, and says why.
    AccessRefused(AccessState),
    /// The access state of the target's port may have changed.
    AccessChanged,
    /// The target has aborted an I/O, which was handed back.
    HandedBack,
    /// The command of a device's probe has ended.
    Probed { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// A poll of a device's access states has ended.
    AccessPolled { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// An I/O that had been lost in flight before has ended.
    RetryDone { device: DeviceId, order: u64 },
    /// `SendTargets` text is complete.
    Targets(Vec<u8>),
}
