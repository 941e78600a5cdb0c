//! What the thread of a job and its owner share: the stop request, and the way of results.

use super::record::JobEnd;
use crate::record::Interval;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering::Relaxed},
    mpsc::Sender,
};

/// From the thread to the owner.
pub(super) enum JobMessage {
    /// An interval has ended.
    Interval(Box<Interval>),
    /// The job has ended.
    End(Box<JobEnd>),
}

/// See the module text.
pub(super) struct JobControl {
    is_stopped: AtomicBool,
    wake: Mutex<Option<Box<dyn Fn() + Send>>>,
    sender: Mutex<Sender<JobMessage>>,
}

impl std::fmt::Debug for JobControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobControl").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

impl JobControl {
    pub(super) fn new(sender: Sender<JobMessage>) -> Self {
        Self { is_stopped: AtomicBool::new(false), wake: Mutex::new(None), sender: Mutex::new(sender) }
    }

    /// Asks the thread to end.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            wake();
        }
    }

    /// Whether the owner asked for the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// How the thread's wait is interrupted.
    pub(super) fn set_wake(&self, wake: impl Fn() + Send + 'static) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(wake));
    }

    /// Passes an interval to the owner; one who has left needs none.
    pub(super) fn send(&self, interval: Interval) {
        self.message(JobMessage::Interval(Box::new(interval)));
    }

    /// Passes the end to the owner.
    pub(super) fn end(&self, end: JobEnd) {
        self.message(JobMessage::End(Box::new(end)));
    }

    fn message(&self, message: JobMessage) {
        let _ = self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(message);
    }
}
