//! The context that a session needs from its owner, and its events for the owner.

use crate::event::Failure;
use crate::facts::{DeviceId, SessionId};
use crate::task::{Answer, NewTask};
use linerate_io::{AttachedRegions, Nanos};
use linerate_scsi_proto::alua::AccessState;

/// The context that a session needs from its owner, and its results for the owner.
pub(crate) struct Context<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) events: &'a mut Vec<(SessionId, SessionEvent)>,
    /// I/Os that the session could not do.
    pub(crate) returned: &'a mut Vec<Returned>,
    pub(crate) regions: &'a AttachedRegions,
    pub(crate) random: &'a mut Random,
    /// When the owner must call the session again, at the latest.
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

/// The progress of an I/O when its session returned it.
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
    /// I/Os that were in flight and were returned.
    pub(crate) in_flight: u32,
}

/// The events of a session for the paths that use it.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    /// Full feature phase has begun.
    LoggedIn,
    /// The connection is lost, or an attempt to restore it has failed; the next attempt follows.
    Lost(Loss),
    /// The session has failed for good.
    Failed(Loss),
    /// A login has ended the target's part of the lost session.
    Reinstated,
    /// The target's port does not accept I/O, and reports its state.
    AccessRefused(AccessState),
    /// The access state of the target's port may have changed.
    AccessChanged,
    /// The target has aborted an I/O, which was returned.
    HandedBack,
    /// The command of a device's probe has ended.
    Probed { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// A poll of a device's access states has ended.
    AccessPolled { device: DeviceId, answer: Answer, reply: Vec<u8> },
    /// An I/O that was lost in flight before has ended.
    RetryDone { device: DeviceId, order: u64 },
    /// `SendTargets` text is complete.
    Targets(Vec<u8>),
}
