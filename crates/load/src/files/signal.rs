//! The end of a run: a flag on which threads can wait.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Signal {
    is_stopped: AtomicBool,
    guard: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Ends all waits, now and later.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
        self.notify();
    }

    /// Ends the waits of this moment.
    pub(super) fn notify(&self) {
        drop(self.guard.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Whether the run is over.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Waits at most so long. Returns whether the run is over.
    pub(super) fn wait(&self, ns: u64) -> bool {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() {
            drop(self.changed.wait_timeout(guard, Duration::from_nanos(ns)));
        }
        self.is_stopped()
    }
}
