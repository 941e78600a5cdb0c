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

    /// Waits until a condition holds, of which [`Self::notify`] tells, or the run is over.
    pub(super) fn wait_for(&self, holds: impl Fn() -> bool) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        while !holds() && !self.is_stopped() {
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
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

#[cfg(test)]
mod tests {
    use super::Signal;
    use std::{
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        thread,
    };

    #[test]
    fn a_wait_for_what_never_holds_ends_with_the_run() {
        let signal = Signal::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| signal.wait_for(|| false));
            signal.notify();
            thread::yield_now();
            assert!(!waits.is_finished());
            signal.stop();
        });
        assert!(signal.is_stopped());
    }

    #[test]
    fn a_wait_ends_when_its_condition_holds() {
        let (signal, holds) = (Signal::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| signal.wait_for(|| holds.load(SeqCst)));
            holds.store(true, SeqCst);
            signal.notify();
        });
        assert!(!signal.is_stopped());
    }
}
